package file_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
)

func blobPath(st *file.Store, ref store.Ref) string {
	digits, _ := ref.Hex()
	return filepath.Join(st.Dir(), ".coppice", "blobs", digits[:2], digits)
}

// A blob is a file with exactly its content, named by it, and kept once.
func TestBlobFiles(t *testing.T) {
	st := open(t, nil)
	content := bytes.Repeat([]byte("image"), 10_000)
	ref := storetest.MustPut(t, st.Blobs(), content)
	if got := mustReadFile(t, blobPath(st, ref)); !bytes.Equal(got, content) {
		t.Errorf("the file has %d bytes, want %d", len(got), len(content))
	}
	before := snapshot(t, st.Dir())
	storetest.MustPut(t, openAt(t, st.Dir(), nil).Blobs(), content)
	if diff := cmp.Diff(before, snapshot(t, st.Dir())); diff != "" {
		t.Errorf("putting it again changed files (-before +after):\n%s", diff)
	}
}

// A blob is on the disk before its name is, and its name before Put returns.
func TestBlobIsSynced(t *testing.T) {
	disk := newRecorder()
	st := openAt(t, "/s", &file.Options{FS: disk})
	storetest.MustPut(t, st.Blobs(), []byte("212")) // a neighbour, for which the directories are made
	ref := store.RefOf([]byte("blob"))
	digits, _ := ref.Hex()
	got := disk.during(vfs.OpMutating&^vfs.OpMkdir, func() { storetest.MustPut(t, st.Blobs(), []byte("blob")) })
	want := []string{"create tmp", "write tmp", "sync tmp", "rename tmp to " + digits, "syncdir " + digits[:2]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("putting a blob (-want +got):\n%s", diff)
	}
}

func TestDamagedBlob(t *testing.T) {
	st := open(t, nil)
	ref := storetest.MustPut(t, st.Blobs(), []byte("content"))
	path := blobPath(st, ref)
	for _, damage := range []string{"Content", "conten", "", "content and more"} {
		must(t, os.WriteFile(path, []byte(damage), 0o600))
		_, err := st.Blobs().Get(t.Context(), ref)
		wantKind(t, err, store.ErrCorrupt, "get blob", path, "does not match its name")
	}
	// Putting it again repairs what has the wrong size.
	storetest.MustPut(t, st.Blobs(), []byte("content"))
	if got, err := st.Blobs().Get(t.Context(), ref); string(got) != "content" || err != nil {
		t.Errorf("Get = %q, %v", got, err)
	}
	must(t, os.Remove(path))
	_, err := st.Blobs().Get(t.Context(), ref)
	wantKind(t, err, store.ErrNotExist, "get blob", path)
	_, err = st.Blobs().Get(t.Context(), "sha256:../../../etc/passwd")
	wantKind(t, err, store.ErrInvalid, "get blob", "not a blob's name")
	must(t, os.Mkdir(path, 0o700))
	if _, err := st.Blobs().Get(t.Context(), ref); err == nil {
		t.Error("a directory is a blob")
	}
}

// Files that are no blobs do not prevent listing those that are.
func TestListBlobs(t *testing.T) {
	st := open(t, nil)
	for ref, err := range st.Blobs().All(t.Context()) {
		t.Errorf("a new store has blob %q, %v", ref, err)
	}
	want := map[store.Ref]bool{}
	for _, content := range []string{"a", "b", "c", "d"} {
		want[storetest.MustPut(t, st.Blobs(), []byte(content))] = true
	}
	room := filepath.Join(st.Dir(), ".coppice", "blobs")
	putLog(t, vfs.OS{}, filepath.Join(room, ".DS_Store"), []byte("x"))
	putLog(t, vfs.OS{}, filepath.Join(room, "zz", "notes"), []byte("x"))
	got := map[store.Ref]bool{}
	for ref, err := range st.Blobs().All(t.Context()) {
		must(t, err)
		got[ref] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("blobs (-want +got):\n%s", diff)
	}
	for range st.Blobs().All(t.Context()) {
		break
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range st.Blobs().All(cancelled) {
		wantKind(t, err, context.Canceled)
	}
	must(t, st.Close())
	_, err := st.Blobs().Put(t.Context(), nil)
	wantKind(t, err, store.ErrClosed)
	_, err = st.Blobs().Get(t.Context(), store.RefOf(nil))
	wantKind(t, err, store.ErrClosed)
	for _, err := range st.Blobs().All(t.Context()) {
		wantKind(t, err, store.ErrClosed)
	}
}
