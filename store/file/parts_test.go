package file_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// withCopies makes a store that has a copy of log a.b of each kind.
func withCopies(t *testing.T) *file.Store {
	t.Helper()
	st := open(t, nil)
	mustCreate(t, st, "a.b", "one", "two").Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(st.Remove(t.Context(), "a.b")) // plain in the trash
	mustCreate(t, st, "a.b", "one", "two").Close()
	must(st.Archive(t.Context(), "a.b"))
	must(st.Remove(t.Context(), "a.b")) // archived in the trash
	mustCreate(t, st, "a.b", "one", "two").Close()
	must(st.Archive(t.Context(), "a.b"))
	packed, err := os.ReadFile(archiveOf(st, "a.b"))
	must(err)
	must(st.Unarchive(t.Context(), "a.b"))
	must(os.WriteFile(archiveOf(st, "a.b"), packed, 0o600))
	raw := mustRaw(t, st, "a.b")
	_, err = raw.Rewrite(t.Context(), pieces(store.Piece{To: store.Pos(raw.Size())})) // both forms in quarantine
	must(err)
	must(os.WriteFile(archiveOf(st, "a.b"), packed, 0o600)) // left over
	must(os.WriteFile(st.Path("a.b")+".bak", []byte("one\ntwo"), 0o600))
	mustCreate(t, st, "a", "other").Close()
	must(st.Remove(t.Context(), "a"))
	return st
}

func archiveOf(st *file.Store, name string) string {
	return filepath.Join(st.Where(), ".coppice", "archive", name+".jsonl.zst")
}

func houseOf(st *file.Store) string { return filepath.Dir(st.IndexPath()) }

func lockOf(st *file.Store, name string) string {
	return filepath.Join(houseOf(st), "locks", name+".lock")
}

func partLines(t *testing.T, st *file.Store, p store.Part) (lines []string) {
	t.Helper()
	for line, err := range st.Parts().Lines(t.Context(), p) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line.Data))
	}
	return lines
}

func TestCopies(t *testing.T) {
	t.Parallel()
	st := withCopies(t)
	copies, err := st.Parts().Copies(t.Context(), "a.b")
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[string]int)
	for _, c := range copies {
		kinds[filepath.Base(filepath.Dir(c.Place))]++
		if diff := cmp.Diff([]string{"one", "two"}, partLines(t, st, c)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.Place, diff)
		}
	}
	if diff := cmp.Diff(map[string]int{filepath.Base(st.Where()): 1, "archive": 1, "trash": 2, "quarantine": 2}, kinds); diff != "" {
		t.Errorf("kinds (-want +got)\n%s", diff)
	}
	if all, err := st.Parts().Copies(t.Context(), ""); err != nil || len(all) != len(copies)+1 {
		t.Errorf("%d copies in all, %v", len(all), err)
	}
	if none, err := open(t, nil).Parts().Copies(t.Context(), ""); err != nil || none != nil {
		t.Errorf("an empty store has copies: %v, %v", none, err)
	}
}

// An edited copy is what it was, but for what was edited, and nothing is left of
// that.
func TestEditCopy(t *testing.T) {
	t.Parallel()
	st := withCopies(t)
	copies, err := st.Parts().Copies(t.Context(), "a.b")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range copies {
		before, err := os.ReadFile(c.Place)
		if err != nil {
			t.Fatal(err)
		}
		err = st.Parts().Edit(t.Context(), c, func(line []byte) ([]byte, error) { return bytes.ReplaceAll(line, []byte("two"), []byte("zwei")), nil })
		if err != nil {
			t.Fatal(err)
		}
		after, _ := os.ReadFile(c.Place)
		if want := strings.ReplaceAll(string(before), "two", "zwei"); !strings.HasSuffix(c.Place, ".zst") && string(after) != want {
			t.Errorf("%s is %q, want %q", c.Place, after, want)
		}
		if diff := cmp.Diff([]string{"one", "zwei"}, partLines(t, st, c)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.Place, diff)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(st.Where(), ".coppice", "tmp")); len(left) > 0 {
		t.Errorf("left in tmp/: %v", left)
	}
}

func TestEditCopyFails(t *testing.T) {
	t.Parallel()
	st := withCopies(t)
	copies, err := st.Parts().Copies(t.Context(), "a.b")
	if err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	for _, c := range copies {
		before, _ := os.ReadFile(c.Place)
		if err := st.Parts().Edit(t.Context(), c, func([]byte) ([]byte, error) { return nil, no }); !errors.Is(err, no) {
			t.Errorf("%s: %v", c.Place, err)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		for _, err := range st.Parts().Lines(canceled, c) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", c.Place, err)
			}
		}
		if after, _ := os.ReadFile(c.Place); !bytes.Equal(after, before) {
			t.Errorf("%s was changed", c.Place)
		}
	}
	gone := store.Part{Kind: store.PartCopy, Name: "a", Place: filepath.Join(st.Where(), "nothing")}
	if err := st.Parts().Edit(t.Context(), gone, nil); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(gone.Place+".zst", []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	gone.Place += ".zst"
	if err := st.Parts().Edit(t.Context(), gone, nil); err == nil {
		t.Error("what is no archive was edited")
	}
}

// Replace keeps nothing of what was there.
func TestReplace(t *testing.T) {
	t.Parallel()
	for _, archived := range []bool{false, true} {
		st := open(t, nil)
		mustCreate(t, st, "a", "one", "secret").Close()
		if err := st.Archive(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if !archived {
			packed, err := os.ReadFile(archiveOf(st, "a"))
			if err == nil {
				err = errors.Join(st.Unarchive(t.Context(), "a"), os.WriteFile(archiveOf(st, "a"), packed, 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		err := mustRaw(t, st, "a").Replace(t.Context(), pieces(store.Piece{Line: []byte("ONE")}, store.Piece{Line: []byte("…")}))
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, st, "a"); got != "ONE …" {
			t.Errorf("got %q", got)
		}
		if copies, err := st.Parts().Copies(t.Context(), ""); err != nil || len(copies) > 0 {
			t.Errorf("copies %v, %v", copies, err)
		}
		if _, err := os.Stat(archiveOf(st, "a")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the archive is still there: %v", err)
		}
	}
}

func TestReplaceSurvivesCrashes(t *testing.T) {
	t.Parallel()
	for op := int64(1); ; op++ {
		disk := vfstest.NewMemory()
		var crashed *vfstest.Memory
		var armed int64
		faulty := &vfstest.Faulty{FS: disk, Before: func(o vfstest.Op) error {
			if armed > 0 && o.Kind.Mutates() {
				if armed++; armed-1 == op {
					crashed = disk.CrashClone(nil, vfstest.LoseAll)
				}
			}
			return nil
		}}
		st := open(t, &file.Options{FS: faulty})
		mustCreate(t, st, "a", "one", "two").Close()
		raw := mustRaw(t, st, "a")
		armed = 1
		err := raw.Replace(t.Context(), pieces(store.Piece{Line: []byte("ONE")}, store.Piece{From: 4, To: 8}))
		armed = 0
		if err != nil {
			t.Fatal(err)
		}
		done := crashed == nil
		if done {
			crashed = disk.CrashClone(nil, vfstest.LoseAll)
		}
		after, err := file.Open(st.Where(), &file.Options{FS: crashed})
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, after, "a"); got != "ONE two" && (done || got != "one two") {
			t.Errorf("crash before change %d: the log reads %q", op, got)
		}
		if err := after.Close(); err != nil {
			t.Fatal(err)
		}
		if done {
			return
		}
	}
}
