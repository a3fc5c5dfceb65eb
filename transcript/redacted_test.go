package transcript_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
	"github.com/coppice-dev/coppice/transcript"
)

// secretToken makes a secret: none that looks real may stand in the source.
func secretToken(seed uint64) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	r := rand.New(rand.NewPCG(seed, 7))
	b := []byte("ghp_")
	for range 36 {
		b = append(b, alphabet[r.IntN(len(alphabet))])
	}
	return string(b)
}

var inBase64 = regexp.MustCompile(`"data":"([A-Za-z0-9+/=]+)"`)

// secretIn returns the files of a directory that have a text in them, also in what
// is compressed.
func secretIn(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all := [][]byte{data}
		for _, m := range inBase64.FindAllSubmatch(data, -1) {
			packed, _ := base64.StdEncoding.DecodeString(string(m[1]))
			all = append(all, packed)
		}
		for _, b := range all {
			if dec, zerr := zstd.NewReader(nil); zerr == nil {
				if plain, zerr := dec.DecodeAll(b, nil); zerr == nil {
					b = plain
				}
				dec.Close()
			}
			if bytes.Contains(b, []byte(text)) {
				found = append(found, path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Whatever was redacted once is imported clean for ever after, and what is known
// stays known.
func TestRedactedStaysRedacted(t *testing.T) {
	t.Parallel()
	secret, password := secretToken(1), "kX9#mQ2$vL"
	source := func(first string) string {
		return lines(toyLine{Conv: "c", Title: "about " + secret, Tags: []string{password}}, said("1", first), said("2", "key "+secret),
			toyLine{Text: "DB_PASSWORD=" + password}, said("3", "bare "+password),
			toyLine{ID: "4", Row: `{"row":"` + secret + `"}`, Text: "four"}, said("5", strings.Repeat("long ", 20_000)+secret))
	}
	for name, again := range map[string]func(h *home, st *file.Store, path string){
		"nothing happened": func(*home, *file.Store, string) {},
		"read again":       func(h *home, _ *file.Store, _ string) { h.im.Again = true },
		"no ledger": func(h *home, st *file.Store, _ string) {
			if err := os.RemoveAll(filepath.Dir(st.Parts().Where(store.PartNote, "imports/x"))); err != nil {
				h.t.Fatal(err)
			}
		},
		"grown": func(h *home, _ *file.Store, path string) {
			rewrite(h.t, path, source("one")+lines(said("6", "more of "+secret)))
		},
		"rewritten": func(h *home, _ *file.Store, path string) { rewrite(h.t, path, source("another one")) },
		"removed": func(h *home, st *file.Store, _ string) {
			h.im.Again = true
			if err := st.Remove(h.t.Context(), toyID("c")); err != nil {
				h.t.Fatal(err)
			}
		},
		"another file": func(h *home, _ *file.Store, path string) {
			h.bring(toyFile(h.t, lines(toyLine{Conv: "d", Title: password}, said("1", "it has "+secret+" too"))))
		},
	} {
		for _, whole := range []bool{false, true} {
			st, err := file.Open(t.TempDir(), &file.Options{Sync: file.Never})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { st.Close() })
			h := &home{t, st, &transcript.Importer{Store: st, Ledger: transcript.LedgerOf(st)}}
			format := toy()
			if whole {
				format = toyDocument()
			}
			path := toyFile(t, source("one"))
			h.bringAs(format, path)
			if len(secretIn(t, st.Where(), secret)) == 0 || len(secretIn(t, st.Where(), password)) == 0 {
				t.Fatal("the secrets were not imported to begin with")
			}
			sweep, err := clean.Look(t.Context(), st)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := sweep.Apply(t.Context()); err != nil || len(r.Left) > 0 {
				t.Fatalf("receipt %+v, %v", r, err)
			}
			again(h, st, path)
			h.bringAs(format, path)
			h.bringAs(format, path)
			for _, s := range []string{secret, password} {
				if where := secretIn(t, st.Where(), s); len(where) > 0 {
					t.Errorf("%s, whole %v: %q is back in %v", name, whole, s, where)
				}
			}
			s := h.open(toyID("c"))
			healthy(t, s)
			messages := 0
			for e, err := range s.Entries() {
				if err != nil {
					t.Fatal(err)
				}
				if e.Message == nil {
					continue
				}
				messages++
				if raw, err := transcript.Raw(t.Context(), st, s, &e); err != nil || len(raw) == 0 {
					t.Errorf("%s, whole %v: the source of %s: %q, %v", name, whole, e.ID, raw, err)
				}
			}
			want := map[string]int{"grown": 7}[name]
			if want == 0 {
				want = 6
			}
			if messages != want && name != "rewritten" {
				t.Errorf("%s, whole %v: %d messages, want %d: %.300s", name, whole, messages, want, tree(t, s))
			}
		}
	}
}

// What is redacted while a file is imported that has it, too, is taken out of what the
// import wrote, and of the indexes that were made of that meanwhile.
func TestRedactedWhileItIsImported(t *testing.T) {
	t.Parallel()
	secret := secretToken(1)
	st := fileStore(t)
	h := &home{t, st, &transcript.Importer{Store: st, Ledger: transcript.LedgerOf(st)}}
	h.bring(toyFile(t, lines(toyLine{Conv: "before"}, said("1", "key "+secret))))
	dropped := 0
	h.im.DropDerived = func(context.Context) error {
		dropped++
		return nil
	}
	format := *toy()
	read := format.Read
	format.Read = func(ctx context.Context, f *transcript.File, to transcript.Sink) error {
		sweep, err := clean.Look(ctx, st)
		if err != nil {
			return err
		}
		if _, err := sweep.Apply(ctx); err != nil {
			return err
		}
		return read(ctx, f, to)
	}
	h.bringAs(&format, toyFile(t, lines(toyLine{Conv: "c"}, said("1", "the key is "+secret))))
	if where := secretIn(t, st.Where(), secret); len(where) > 0 {
		t.Errorf("%q is back in %v", secret, where)
	}
	if dropped == 0 {
		t.Error("an index may still have it")
	}
}

// A store on another machine is swept there.
func TestRedactedElsewhereWhileItIsImported(t *testing.T) {
	t.Parallel()
	st := fileStore(t)
	h := &home{t, st, &transcript.Importer{Store: st, Ledger: transcript.LedgerOf(st)}}
	h.bring(toyFile(t, lines(toyLine{Conv: "before"}, said("1", "key "+secretToken(1)))))
	var swept []string
	h.im.Elsewhere = func(_ context.Context, sessions []string) error {
		swept = append(swept, sessions...)
		return nil
	}
	h.bring(toyFile(t, lines(toyLine{Conv: "a"}, said("1", "hello"))))
	if len(swept) > 0 {
		t.Errorf("swept %q, and nothing was redacted", swept)
	}
	format := *toy()
	format.Read = func(ctx context.Context, f *transcript.File, to transcript.Sink) error {
		sweep, err := clean.Look(ctx, st)
		if err == nil {
			_, err = sweep.Apply(ctx)
		}
		if err != nil {
			return err
		}
		return toy().Read(ctx, f, to)
	}
	h.bringAs(&format, toyFile(t, lines(toyLine{Conv: "c"}, said("1", "hello"))))
	if !slices.Equal(swept, []string{toyID("c")}) {
		t.Errorf("swept %q, want %q", swept, toyID("c"))
	}
}

// toyDocument is the toy format read at once, as formats are whose file is one
// document.
func toyDocument() *transcript.Format {
	f := *toy()
	f.Read = func(_ context.Context, f *transcript.File, to transcript.Sink) error {
		data, err := f.ReadAll()
		if err != nil {
			return err
		}
		pos, no := int64(0), int64(0)
		for line := range bytes.Lines(data) {
			no++
			l := transcript.Line{Data: bytes.TrimSpace(line), Span: transcript.Span{Pos: pos, Len: int64(len(line))}, No: no}
			pos += l.Len
			if err := readToy(l, to); err != nil {
				return err
			}
		}
		return nil
	}
	return &f
}

// The power fails at any moment of an import. Importing again brings the rest, once.
// A cut that leaves a line damaged costs nothing either: the source has it still.
func TestImportAfterPowerCuts(t *testing.T) {
	t.Parallel()
	text := lines(toyLine{Conv: "c", Title: "T"}, said("1", "one"), toyLine{Text: "no id"}, said("2", strings.Repeat("two ", 3000)), toyLine{ID: "3", Row: "row", Text: "three"})
	source := toyFile(t, text)
	bring := func(disk vfs.FS, torn bool) (string, error) {
		st, err := file.Open("/sessions", &file.Options{FS: disk})
		if err != nil {
			return "", err
		}
		defer st.Close()
		im := &transcript.Importer{Store: st, Ledger: transcript.LedgerOf(st)}
		f, err := transcript.OpenFile(source)
		if err != nil {
			return "", err
		}
		if _, err := im.Import(t.Context(), toy(), f); err != nil {
			return "", err
		}
		h := &home{t, st, im}
		s := h.open(toyID("c"))
		if torn {
			return path(t, s), nil
		}
		healthy(t, s)
		return tree(t, s), nil
	}
	want, err := bring(vfstest.NewMemory(), false)
	if err != nil {
		t.Fatal(err)
	}
	wantPath, err := bring(vfstest.NewMemory(), true)
	if err != nil {
		t.Fatal(err)
	}
	mem, rng := vfstest.NewMemory(), soak.Rand(t)
	var whole, torn []*vfstest.Memory
	keep := func(vfstest.Op) error {
		whole = append(whole, mem.CrashClone(nil, vfstest.LoseAll), mem.CrashClone(nil, vfstest.LoseNothing))
		torn = append(torn, mem.CrashClone(rng), mem.CrashClone(rng))
		return nil
	}
	if _, err := bring(&vfstest.Faulty{FS: mem, Before: func(op vfstest.Op) error {
		if op.Kind.Mutates() {
			return keep(op)
		}
		return nil
	}}, false); err != nil {
		t.Fatal(err)
	}
	_ = keep(vfstest.Op{})
	for range 2 {
		for i, disk := range whole {
			if got, err := bring(disk, false); err != nil || got != want {
				t.Fatalf("image %d of %d: %v, %.300s\nwant %.300s", i, len(whole), err, got, want)
			}
		}
		for i, disk := range torn {
			if got, err := bring(disk, true); err != nil || got != wantPath {
				t.Fatalf("torn image %d of %d: %v, %.300s\nwant %.300s", i, len(torn), err, got, wantPath)
			}
		}
	}
	t.Logf("%d images", len(whole)+len(torn))
}
