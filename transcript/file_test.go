package transcript_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/transcript"
)

func writeFile(t *testing.T, path string, data string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, path string) *transcript.File {
	t.Helper()
	f, err := transcript.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func zstdOf(t testing.TB, data []byte) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return enc.EncodeAll(data, nil)
}

func gzipOf(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCompressedFiles(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a line of text\n", 10)
	for name, data := range map[string][]byte{
		"plain": []byte(text), "zstd": zstdOf(t, []byte(text)), "gzip": gzipOf(t, []byte(text)),
	} {
		path := writeFile(t, filepath.Join(t.TempDir(), "x.jsonl"), string(data))
		for _, f := range []*transcript.File{open(t, path), transcript.FileOf("x", data)} {
			got, err := f.ReadAll()
			if err != nil || string(got) != text {
				t.Errorf("%s: ReadAll gave %d bytes, %v", name, len(got), err)
			}
			for range 2 { // the second time it is remembered
				if got := f.Head(); string(got) != text {
					t.Errorf("%s: Head gave %q", name, got)
				}
			}
			n := 0
			for l, err := range f.LinesFrom(context.Background(), 30, 2) {
				if err != nil || l.No != int64(3+n) {
					t.Fatalf("%s: line %d, %v", name, l.No, err)
				}
				n++
			}
			if n != 8 {
				t.Errorf("%s: %d lines after the second", name, n)
			}
		}
	}
}

// A file that takes no room on the disk takes none in memory either, if it is too large
// to be read as one document.
func TestDocumentOverTheLimitIsNotRead(t *testing.T) {
	// Not parallel: it measures what the process allocates.
	path := filepath.Join(t.TempDir(), "sparse.json")
	if err := errors.Join(os.WriteFile(path, []byte("{"), 0o600), os.Truncate(path, 1<<30+1)); err != nil {
		t.Fatal(err)
	}
	storetest.Bounded(t, 1<<20, func() {
		f, err := transcript.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAll(); !errors.Is(err, session.ErrTooLarge) {
			t.Errorf("ReadAll: %v", err)
		}
	})
}

func TestBombs(t *testing.T) {
	t.Parallel()
	zeros := make([]byte, 64<<20)
	for name, data := range map[string][]byte{"zstd": zstdOf(t, zeros), "gzip": gzipOf(t, zeros)} {
		f := transcript.FileOf("bomb", data)
		if _, err := f.ReadAll(); !errors.Is(err, session.ErrTooLarge) {
			t.Errorf("%s: ReadAll of %d bytes: %v", name, len(data), err)
		}
		var failed error
		for _, err := range f.Lines(context.Background()) {
			failed = err
		}
		if !errors.Is(failed, session.ErrTooLarge) {
			t.Errorf("%s: Lines: %v", name, failed)
		}
	}
}

func TestDamagedCompression(t *testing.T) {
	t.Parallel()
	packed := gzipOf(t, []byte(strings.Repeat("text", 1000)))
	for name, data := range map[string][]byte{
		"gzip, cut": packed[:len(packed)/2], "gzip, no more than its head": packed[:5],
		"zstd, cut": zstdOf(t, bytes.Repeat([]byte("text"), 1000))[:10],
	} {
		if _, err := transcript.FileOf("x", data).ReadAll(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestOpenFileRefuses(t *testing.T) {
	t.Parallel()
	if _, err := transcript.OpenFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := transcript.OpenFile(t.TempDir()); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a directory: %v", err)
	}
	f := open(t, writeFile(t, filepath.Join(t.TempDir(), "x"), "text"))
	if err := os.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
	if f.Head() != nil {
		t.Error("a file that vanished has a head")
	}
	if _, err := f.ReadAll(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadAll of a file that vanished: %v", err)
	}
	for _, err := range f.Lines(context.Background()) {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Lines of a file that vanished: %v", err)
		}
	}
}

func TestBesideStaysInside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "secret"), "outside")
	f := open(t, writeFile(t, filepath.Join(dir, "in", "x.jsonl"), "{}\n"))
	writeFile(t, filepath.Join(dir, "in", "sub", "near"), "inside")
	if got, err := f.Beside("sub/near"); err != nil || string(got) != "inside" {
		t.Errorf("Beside gave %q, %v", got, err)
	}
	if runtime.GOOS != "windows" {
		for name, target := range map[string]string{"link": "../secret", "absolute": filepath.Join(dir, "secret"), "dir": ".."} {
			if err := os.Symlink(target, filepath.Join(dir, "in", name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, path := range []string{"../secret", "sub/../../secret", filepath.Join(dir, "secret"), "link", "absolute", "dir/secret", "none", "sub", ""} {
		if got, err := f.Beside(path); err == nil {
			t.Errorf("Beside(%q) gave %q", path, got)
		}
	}
	if _, err := transcript.FileOf("x", nil).Beside("x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("beside bytes: %v", err)
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := open(t, writeFile(t, filepath.Join(dir, "in", "x.jsonl"), ""))
	writeFile(t, filepath.Join(dir, "in", "sub", "a"), "")
	names := func(d string) string {
		entries, err := f.Around(d)
		var list []string
		for _, e := range entries {
			list = append(list, e.Name())
		}
		if err != nil {
			return err.Error()
		}
		return strings.Join(list, " ")
	}
	for d, want := range map[string]string{".": "sub x.jsonl", "sub": "a", "none": ""} {
		if got := names(d); got != want {
			t.Errorf("Around(%q) = %q, want %q", d, got, want)
		}
	}
	if got := names(".."); !strings.Contains(got, "invalid") {
		t.Errorf("Around(..) = %q", got)
	}
	if _, err := transcript.FileOf("x", nil).Around("."); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("around bytes: %v", err)
	}
}

func TestOpenReads(t *testing.T) {
	t.Parallel()
	r, err := transcript.FileOf("x", gzipOf(t, []byte("text"))).Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != "text" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestHashID(t *testing.T) {
	t.Parallel()
	a := transcript.HashID("a", "b")
	if a != transcript.HashID("a", "b") {
		t.Error("the same parts give another id")
	}
	for _, parts := range [][]string{{"ab"}, {"a", "b", ""}, {"", "a", "b"}, {"b", "a"}, {}} {
		if transcript.HashID(parts...) == a {
			t.Errorf("%q has the id of others", parts)
		}
	}
	if len(a) != 36 || a[14] != '8' || !strings.ContainsRune("89ab", rune(a[19])) {
		t.Errorf("%s is no UUID of version 8", a)
	}
}

func TestEnvDir(t *testing.T) {
	t.Parallel()
	abs := t.TempDir()
	env := transcript.Env{Home: filepath.Join(abs, "home"), Getenv: func(k string) string {
		return map[string]string{"GOOD": abs, "BAD": "relative"}[k]
	}}
	for variable, want := range map[string]string{
		"GOOD": abs, "BAD": filepath.Join(env.Home, "a", "b"), "NONE": filepath.Join(env.Home, "a", "b"),
	} {
		if got := env.Dir(variable, "a/b"); got != want {
			t.Errorf("Dir(%s) = %s, want %s", variable, got, want)
		}
	}
}

// TestSeenLooksOnce: what formats learn of a file is learnt once, and each kind of
// answer is kept apart.
func TestSeenLooksOnce(t *testing.T) {
	t.Parallel()
	type length int
	type first byte
	looks := 0
	for range 2 {
		f := transcript.FileOf("x", []byte("abc"))
		for range 3 {
			n := transcript.Seen(f, func(f *transcript.File) length { looks++; return length(len(f.HeadText())) })
			c := transcript.Seen(f, func(f *transcript.File) first { looks++; return first(f.Head()[0]) })
			if n != 3 || c != 'a' {
				t.Errorf("saw %d and %c", n, c)
			}
		}
	}
	if looks != 4 {
		t.Errorf("looked %d times at two files for two answers", looks)
	}
}
