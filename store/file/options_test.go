package file_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	_, err := file.Open("", nil)
	wantKind(t, err, store.ErrInvalid, "open store", "empty")
	path := filepath.Join(t.TempDir(), "a.jsonl")
	must(t, os.WriteFile(path, nil, 0o600))
	_, err = file.Open(path, nil)
	wantKind(t, err, store.ErrInvalid, "open store", path, "is a file, not a directory")
	_, err = file.Open(filepath.Join(path, "below"), nil)
	if err == nil {
		t.Error("a store below a file")
	} else {
		wantKind(t, err, err, "open store", path)
	}
}

// Opening a store touches nothing; the directory comes with the first log.
func TestOpenIsLazy(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not", "yet")
	st := openAt(t, dir, nil)
	for stat, err := range st.List(t.Context()) {
		t.Errorf("listed %+v, %v", stat, err)
	}
	_, err := st.Open(t.Context(), "a")
	wantKind(t, err, store.ErrNotExist)
	wantKind(t, st.Remove(t.Context(), "a"), store.ErrNotExist)
	wantKind(t, st.Archive(t.Context(), "a"), store.ErrNotExist)
	if _, err := os.Lstat(filepath.Dir(dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the directory: %v", err)
	}
	storetest.MustCreate(t, st, "a", "{}")
	wantLines(t, storetest.MustOpen(t, openAt(t, dir, nil), "a"), "{}")
	if st.Where() != dir || st.Path("a") != filepath.Join(dir, "a.jsonl") {
		t.Errorf("Dir() = %s, Path(a) = %s", st.Where(), st.Path("a"))
	}
	log := storetest.MustOpen(t, st, "a")
	if got := log.(*file.Log).Path(); got != st.Path("a") {
		t.Errorf("the log's path is %s", got)
	}
}

// A directory that vanished is not made again as if nothing had been in it.
func TestVanishedDirectory(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	st := open(t, nil)
	log := storetest.MustCreate(t, st, "a", "{}")
	storetest.MustAppend(t, log, "{}")
	must(t, os.RemoveAll(st.Where()))
	_, err := log.Append(t.Context(), 6, []byte("{}"))
	wantKind(t, err, store.ErrNotExist, "append", st.Path("a"))
	_, err = st.Create(t.Context(), "b", store.Lines())
	wantKind(t, err, store.ErrNotExist, "create")
	_, err = st.Open(t.Context(), "a")
	wantKind(t, err, store.ErrNotExist, "open", st.Path("a"))
	count := 0
	for _, err := range st.List(t.Context()) {
		count++
		wantKind(t, err, store.ErrNotExist, "list", st.Where())
	}
	if count != 1 {
		t.Errorf("listing yielded %d times", count)
	}
	if _, err := os.Lstat(st.Where()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
}

// What is at a log's place and is no file is not followed, not written, not
// listed.
func TestNotAFile(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	st := open(t, nil)
	storetest.MustCreate(t, st, "real", "{}")
	outside := filepath.Join(t.TempDir(), "outside.jsonl")
	must(t, os.WriteFile(outside, []byte("{}\n"), 0o600))
	must(t, os.Symlink(outside, st.Path("link")))
	must(t, os.Mkdir(st.Path("dir"), 0o700))

	_, err := st.Open(t.Context(), "link")
	wantKind(t, err, store.ErrInvalid, "open", st.Path("link"), "symbolic link")
	wantKind(t, st.Archive(t.Context(), "link"), store.ErrInvalid, "archive", st.Path("link"))
	if _, err := st.Open(t.Context(), "dir"); err == nil {
		t.Error("a directory is a log")
	} else {
		wantKind(t, err, err, "open", st.Path("dir"), "is a directory")
	}
	for _, name := range []string{"link", "dir"} {
		_, err := st.Create(t.Context(), name, store.Lines())
		wantKind(t, err, store.ErrExist, "create", st.Path(name))
	}
	for stat, err := range st.List(t.Context()) {
		must(t, err)
		if stat.Name != "real" {
			t.Errorf("listed %+v", stat)
		}
	}
	if got := string(mustReadFile(t, outside)); got != "{}\n" {
		t.Errorf("the file outside has %q", got)
	}
}

// List skips what is not ours, and stops when it is told to.
func TestList(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	for _, name := range []string{"a", "b", "c"} {
		storetest.MustCreate(t, st, name, "{}").Close()
	}
	must(t, st.Archive(t.Context(), "c"))
	for _, name := range []string{"notes.txt", "a.jsonl.bak", ".hidden.jsonl", "nul.jsonl", "z.jsonl.zst"} {
		putLog(t, vfs.OS{}, filepath.Join(st.Where(), name), []byte("{}\n"))
	}
	got := map[string]bool{}
	for stat, err := range st.List(t.Context()) {
		must(t, err)
		got[stat.Name] = stat.Archived
		if stat.Size == 0 || stat.Modified.IsZero() {
			t.Errorf("listed %+v", stat)
		}
	}
	if len(got) != 3 || got["a"] || got["b"] || !got["c"] {
		t.Errorf("listed %v", got)
	}
	for range st.List(t.Context()) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range st.List(ctx) {
		if err != nil {
			wantKind(t, err, context.Canceled)
		}
		cancel()
	}
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	log := storetest.MustCreate(t, st, "a", "{}")
	for range 2 {
		must(t, st.Close())
	}
	_, err := log.Append(t.Context(), 3, []byte("{}"))
	wantKind(t, err, store.ErrClosed, "append")
	_, err = log.End(t.Context())
	wantKind(t, err, store.ErrClosed, "end")
	for _, err := range log.Forward(t.Context(), 0) {
		wantKind(t, err, store.ErrClosed, "read")
	}
	for _, err := range log.Backward(t.Context(), 3) {
		wantKind(t, err, store.ErrClosed, "read")
	}
	_, err = st.Open(t.Context(), "a")
	wantKind(t, err, store.ErrClosed, "open")
	_, err = st.Create(t.Context(), "b", store.Lines())
	wantKind(t, err, store.ErrClosed, "create")
	for _, err := range st.List(t.Context()) {
		wantKind(t, err, store.ErrClosed, "list")
	}
	must(t, log.Close())
}
