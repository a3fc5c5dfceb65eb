package file_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// putLog puts a file at the place of a log, past the store.
func putLog(t testing.TB, disk vfs.FS, path string, content []byte) {
	t.Helper()
	err := disk.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		var f vfs.File
		if f, err = disk.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err == nil {
			_, err = f.Write(content)
			f.Close()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// splitLines is what reading a file must give: a naive reader.
func splitLines(content []byte, maxLine int) []store.Line {
	var lines []store.Line
	for at := 0; ; {
		n := bytes.IndexByte(content[at:], '\n')
		if n < 0 {
			return lines
		}
		lines = append(lines, store.Line{
			Data: content[at : at+n], Pos: store.Pos(at), Next: store.Pos(at + n + 1), Cut: n > maxLine,
		})
		at += n + 1
	}
}

// wantRead compares the lines that were read with those that should have been.
// Of a line that is cut there must be some beginning.
func wantRead(t interface {
	Helper()
	Fatalf(string, ...any)
}, how string, got, want []store.Line,
) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d lines, want %d", how, len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		if g.Pos != w.Pos || g.Next != w.Next || g.Cut != w.Cut {
			t.Fatalf("%s: line %d goes from %d to %d, cut %v; want %d to %d, %v", how, i, g.Pos, g.Next, g.Cut, w.Pos, w.Next, w.Cut)
		}
		if !g.Cut && !bytes.Equal(g.Data, w.Data) || g.Cut && (len(g.Data) == 0 || !bytes.HasPrefix(w.Data, g.Data)) {
			t.Fatalf("%s: line %d of %d bytes is %.40q, want %d bytes %.40q", how, i, len(g.Data), g.Data, len(w.Data), w.Data)
		}
	}
}

// Lines are read whole in both directions, whatever their size.
func TestReadAroundBufferSizes(t *testing.T) {
	t.Parallel()
	for _, boundary := range []int{1, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20} {
		var content []byte
		for _, size := range []int{boundary - 2, boundary - 1, 3, boundary, boundary + 1, 0} {
			content = append(append(content, bytes.Repeat([]byte{'x'}, max(size, 0))...), '\n')
		}
		disk := vfstest.NewMemory()
		putLog(t, disk, "/s/a.jsonl", content)
		log := storetest.MustOpen(t, openAt(t, "/s", &file.Options{FS: disk}), "a")
		want := splitLines(content, file.DefaultMaxLine)
		wantRead(t, "forward", storetest.MustRead(t, log, 0), want)
		back := storetest.MustReadBack(t, log, store.Pos(len(content)))
		slices.Reverse(back)
		wantRead(t, "backward", back, want)
		for _, line := range want { // from every line
			wantRead(t, "from the middle", storetest.MustRead(t, log, line.Pos)[:1], []store.Line{line})
		}
	}
}

// For any file and any limit, backward is the reverse of forward, and both are
// what is in the file.
func TestReadAnyFile(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(rt *rapid.T) {
		var content []byte
		for range rapid.IntRange(0, 12).Draw(rt, "lines") {
			size := rapid.OneOf(rapid.IntRange(0, 30), rapid.IntRange(0, 9000), rapid.IntRange(16<<10-3, 16<<10+3), rapid.IntRange(0, 600<<10)).Draw(rt, "size")
			content = append(append(content, bytes.Repeat([]byte{"ab\x00{"[len(content)%4]}, size)...), '\n')
		}
		end := store.Pos(len(content))
		if rapid.Bool().Draw(rt, "torn") {
			content = append(content, `{"torn":`...)
		}
		limit := rapid.OneOf(rapid.IntRange(1, 50), rapid.IntRange(4000, 5000), rapid.IntRange(1, 700<<10)).Draw(rt, "limit")
		disk := vfstest.NewMemory()
		putLog(t, disk, "/s/a.jsonl", content)
		st, err := file.Open("/s", &file.Options{FS: disk, MaxLine: int64(limit)})
		if err != nil {
			rt.Fatal(err)
		}
		defer st.Close()
		log, err := st.Open(t.Context(), "a")
		if err != nil {
			rt.Fatal(err)
		}
		if got := storetest.MustEnd(t, log); got != end {
			rt.Fatalf("end is %d, want %d", got, end)
		}
		want := splitLines(content, limit)
		wantRead(rt, "forward", storetest.MustRead(t, log, 0), want)
		back := storetest.MustReadBack(t, log, end)
		slices.Reverse(back)
		wantRead(rt, "backward", back, want)
	})
}

// A line over the limit does not cost its size in memory.
func TestReadOverLongLine(t *testing.T) {
	const size, limit = 48 << 20, 64 << 10
	content := slices.Concat([]byte("{}\n"), bytes.Repeat([]byte{'x'}, size), []byte("\n{}\n"))
	st := open(t, &file.Options{MaxLine: limit})
	putLog(t, vfs.OS{}, st.Path("a"), content)
	log := storetest.MustOpen(t, st, "a")
	want := splitLines(content, limit)
	for _, test := range []struct {
		name string
		read func() []store.Line
	}{
		{"forward", func() []store.Line { return storetest.MustRead(t, log, 0) }},
		{"backward", func() []store.Line {
			back := storetest.MustReadBack(t, log, store.Pos(len(content)))
			slices.Reverse(back)
			return back
		}},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := test.read()
		runtime.ReadMemStats(&after)
		wantRead(t, test.name, got, want)
		if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
			t.Errorf("reading %s allocated %d bytes", test.name, used)
		}
	}
}

// A long line can be given up on.
func TestReadOverLongLineCancelled(t *testing.T) {
	t.Parallel()
	st := open(t, &file.Options{MaxLine: 1 << 10})
	putLog(t, vfs.OS{}, st.Path("a"), append(bytes.Repeat([]byte{'x'}, 8<<20), '\n'))
	log := storetest.MustOpen(t, st, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range log.Forward(ctx, 0) {
		wantKind(t, err, context.Canceled)
	}
	for _, err := range log.Backward(ctx, 8<<20+1) {
		wantKind(t, err, context.Canceled)
	}
	if _, err := log.End(ctx); err != context.Canceled {
		t.Errorf("End = %v", err)
	}
}

func TestReadFromNowhere(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	log := storetest.MustCreate(t, st, "a", `{"n":1}`, `{"n":2}`)
	for _, test := range []struct {
		from  store.Pos
		back  bool
		words []string
	}{
		{-1, false, []string{"read", st.Path("a"), "position is negative"}},
		{-1, true, []string{"read", st.Path("a"), "position is negative"}},
		{10, true, []string{"byte 10", "not the end of a line"}},
		{1 << 40, true, []string{"beyond the end of the log"}},
	} {
		seq := log.Forward(t.Context(), test.from)
		if test.back {
			seq = log.Backward(t.Context(), test.from)
		}
		count := 0
		for _, err := range seq {
			count++
			wantKind(t, err, store.ErrInvalid, test.words...)
		}
		if count != 1 {
			t.Errorf("reading from %d yielded %d times", test.from, count)
		}
	}
	if lines := storetest.MustRead(t, log, 1<<40); lines != nil {
		t.Errorf("after the end there are %d lines", len(lines))
	}
}

// snapshot returns the names, sizes, times and content of all files.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		files[path] = info.ModTime().Format(time.RFC3339Nano)
		if !entry.IsDir() {
			files[path] += " " + string(mustReadFile(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Whoever only reads changes nothing, also when there is something to repair.
func TestReadersNeverWrite(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	for _, name := range []string{"torn", "zeros", "archived"} {
		log := storetest.MustCreate(t, st, name, "{}", "{}")
		log.Close()
	}
	if err := st.Archive(t.Context(), "archived"); err != nil {
		t.Fatal(err)
	}
	writeRaw(t, st.Path("torn"), `{"torn":`)
	writeRaw(t, st.Path("zeros"), "\x00\x00\x00")
	before := snapshot(t, st.Where())
	reader := openAt(t, st.Where(), nil)
	for stat, err := range reader.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		log := storetest.MustOpen(t, reader, stat.Name)
		want := []string{"{}", "{}"}
		if stat.Name == "zeros" {
			want = append(want, "\x00\x00\x00")
		}
		wantLines(t, log, want...)
		storetest.MustReadBack(t, log, storetest.MustEnd(t, log))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		for _, err := range log.Watch(ctx, 0) {
			if err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := reader.Trash().List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, snapshot(t, st.Where())); diff != "" {
		t.Errorf("reading changed files (-before +after):\n%s", diff)
	}
}

// A reader sees a line when all of it is there, and not before.
func TestReadersSeeWholeLines(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	log := storetest.MustCreate(t, st, "a", "{}")
	lines := []string{"{}"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watched := make(chan string, 100)
	go func() {
		defer close(watched)
		for line, err := range log.Watch(ctx, 0) {
			if err != nil {
				t.Error(err)
				return
			}
			watched <- string(line.Data)
		}
	}()
	for _, size := range []int{10, 16<<10 - 1, 16 << 10, 64 << 10, 256<<10 + 1, 3 << 20} {
		line := strings.Repeat("x", size)
		for _, piece := range []string{line[:size/2], line[size/2:], "\n"} {
			wantLines(t, log, lines...)
			end := storetest.MustEnd(t, log)
			if got := len(storetest.MustReadBack(t, log, end)); got != len(lines) {
				t.Fatalf("backward there are %d lines, want %d", got, len(lines))
			}
			writeRaw(t, st.Path("a"), piece)
			time.Sleep(2 * time.Millisecond) // let the watcher look
		}
		lines = append(lines, line)
	}
	wantLines(t, log, lines...)
	for i, want := range lines {
		select {
		case got := <-watched:
			if got != want {
				t.Fatalf("watched line %d has %d bytes, want %d", i, len(got), len(want))
			}
		case <-time.After(time.Minute):
			t.Fatalf("line %d was not seen", i)
		}
	}
	cancel()
	for line := range watched {
		t.Errorf("watched one line more: %.20q", line)
	}
}
