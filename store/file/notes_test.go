package file_test

import (
	"context"
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
	if _, err := notes.Read(t.Context(), "a"); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("a note that was never written: %v", err)
	}
	if err := notes.Remove(t.Context(), "a"); err != nil {
		t.Errorf("removing it: %v", err)
	}
	for _, write := range []func(context.Context, string, []byte) error{notes.Write, notes.WriteHint} {
		if err := write(t.Context(), "a", []byte("text")); err != nil {
			t.Fatal(err)
		}
		if data, err := notes.Read(t.Context(), "a"); string(data) != "text" || err != nil {
			t.Errorf("read %q, %v", data, err)
		}
		if info, err := os.Stat(st.Parts().Where(store.PartNote, "imports/a")); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("the note is %v, %v", info, err)
		}
		if err := os.RemoveAll(filepath.Dir(st.Parts().Where(store.PartNote, "imports/a"))); err != nil { // as anybody may
			t.Fatal(err)
		}
	}
	for _, name := range []string{"", ".", "..", "../x", "a/b", `a\b`, "/x"} {
		if err := notes.Write(t.Context(), name, nil); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("a note of the name %q: %v", name, err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := notes.Read(t.Context(), "a"); !errors.Is(err, store.ErrClosed) {
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
	if data, err := st.Notes("").Read(t.Context(), "count"); string(data) != "100" || err != nil {
		t.Errorf("the count is %q, %v", data, err)
	}
}

// What is not in the store is not written.
func TestEditOutsideOfTheStore(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	outside := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(outside, []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := store.Part{Kind: store.PartNote, Name: "other", Place: outside}
	err = st.Parts().Edit(t.Context(), p, func([]byte) ([]byte, error) { return []byte("changed"), nil })
	if !errors.Is(err, store.ErrInvalid) {
		t.Errorf("edit: %v", err)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "as it was" {
		t.Errorf("it is now %q, %v", data, err)
	}
}

// Every file of a store is found in its room.
func TestParts(t *testing.T) {
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
	must(st.Notes("imports").Write(t.Context(), "n", []byte("note")))
	must(os.WriteFile(st.Path("a")+".bak", nil, 0o600))
	must(os.WriteFile(st.IndexPath()+"-wal", nil, 0o600))
	must(os.MkdirAll(filepath.Join(houseOf(st), "quarantine"), 0o700))
	must(os.WriteFile(filepath.Join(houseOf(st), "quarantine", "a.0.12.torn"), nil, 0o600))
	must(os.WriteFile(filepath.Join(houseOf(st), "tmp", "x"), nil, 0o600))
	got := make(map[string]string)
	for f, err := range st.Parts().All(t.Context()) {
		must(err)
		got[f.Place] = string(f.Kind) + " " + f.Name
	}
	for path, want := range map[string]string{
		st.Path("a"): "log a", st.Path("a") + ".bak": "copy a", archiveOf(st, "b"): "log b", lockOf(st, "a"): "other a",
		blobPath(st, ref): "blob " + string(ref), st.Parts().Where(store.PartNote, "imports/n"): "note imports/n", st.IndexPath() + "-wal": "index ",
		filepath.Join(houseOf(st), "quarantine", "a.0.12.torn"): "copy a", filepath.Join(houseOf(st), "tmp", "x"): "temp ",
	} {
		if got[path] != want {
			t.Errorf("%s is in %q, want %q", path, got[path], want)
		}
	}
	trash, err := st.Trash().List(t.Context())
	must(err)
	if path := filepath.Join(houseOf(st), "trash", trash[0].ID+".jsonl"); got[path] != "copy c" {
		t.Errorf("the removed log is in %q", got[path])
	}
}
