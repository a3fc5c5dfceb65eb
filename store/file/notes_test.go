package file_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

func TestNotes(t *testing.T) {
	t.Parallel()
	st, err := file.Open(filepath.Join(t.TempDir(), "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	notes := st.Notes("imports")
	if _, err := notes.Read("a"); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("a note that was never written: %v", err)
	}
	if err := notes.Remove("a"); err != nil {
		t.Errorf("removing it: %v", err)
	}
	for _, write := range []func(string, []byte) error{notes.Write, notes.WriteHint} {
		if err := write("a", []byte("text")); err != nil {
			t.Fatal(err)
		}
		if data, err := notes.Read("a"); string(data) != "text" || err != nil {
			t.Errorf("read %q, %v", data, err)
		}
		if info, err := os.Stat(notes.Path("a")); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("the note is %v, %v", info, err)
		}
		if err := os.RemoveAll(filepath.Dir(notes.Path("a"))); err != nil { // as anybody may
			t.Fatal(err)
		}
	}
	for _, name := range []string{"", ".", "..", "../x", "a/b", `a\b`, "/x"} {
		if err := notes.Write(name, nil); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("a note of the name %q: %v", name, err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := notes.Read("a"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("reading from a closed store: %v", err)
	}
}

// Changes of a note by several processes all count.
func TestNotesChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			st, err := file.Open(dir, &file.Options{Sync: file.Never})
			if err != nil {
				t.Error(err)
				return
			}
			defer st.Close()
			for range 25 {
				err := st.Notes("").Change(t.Context(), "count", func(old []byte) ([]byte, error) {
					n, _ := strconv.Atoi(string(old))
					return []byte(strconv.Itoa(n + 1)), nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if data, err := st.Notes("").Read("count"); string(data) != "100" || err != nil {
		t.Errorf("the count is %q, %v", data, err)
	}
}

// Every file of a store is found in its room.
func TestFiles(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), &file.Options{Sync: file.Never})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		_, err := st.Create(t.Context(), name, store.Lines([]byte("{}")))
		must(err)
	}
	must(st.Archive(t.Context(), "b"))
	must(st.Remove(t.Context(), "c"))
	ref, err := st.Blobs().Put(t.Context(), []byte("blob"))
	must(err)
	must(st.Notes("imports").Write("n", []byte("note")))
	must(os.WriteFile(st.Path("a")+".bak", nil, 0o600))
	must(os.WriteFile(st.IndexPath()+"-wal", nil, 0o600))
	must(os.MkdirAll(filepath.Join(st.House(), "quarantine"), 0o700))
	must(os.WriteFile(filepath.Join(st.House(), "quarantine", "a.0.12.torn"), nil, 0o600))
	must(os.WriteFile(filepath.Join(st.House(), "tmp", "x"), nil, 0o600))
	got := make(map[string]string)
	for f, err := range st.Files(t.Context()) {
		must(err)
		got[f.Path] = string(f.Room) + " " + f.Name
	}
	for path, want := range map[string]string{
		st.Path("a"): "log a", st.Path("a") + ".bak": "log a", st.ArchivePath("b"): "archive b", st.LockPath("a"): "locks a",
		st.BlobPath(ref): "blobs ", st.Notes("imports").Path("n"): "note ", st.IndexPath() + "-wal": "index ",
		filepath.Join(st.House(), "quarantine", "a.0.12.torn"): "quarantine a", filepath.Join(st.House(), "tmp", "x"): "tmp ",
	} {
		if got[path] != want {
			t.Errorf("%s is in %q, want %q", path, got[path], want)
		}
	}
	trash, err := st.Trash(t.Context())
	must(err)
	if path := filepath.Join(st.House(), "trash", trash[0].ID+".jsonl"); got[path] != "trash c" {
		t.Errorf("the removed log is in %q", got[path])
	}
}
