package file_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

func blobPath(st *file.Store, ref store.Ref) string {
	digits, _ := ref.Hex()
	return filepath.Join(st.Where(), ".coppice", "blobs", digits[:2], digits)
}

// A blob is a file with exactly its content, named by it, and kept once.
func TestBlobFiles(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	content := bytes.Repeat([]byte("image"), 10_000)
	ref := storetest.MustPut(t, st.Blobs(), content)
	if got := mustReadFile(t, blobPath(st, ref)); !bytes.Equal(got, content) {
		t.Errorf("the file has %d bytes, want %d", len(got), len(content))
	}
	before := snapshot(t, st.Where())
	storetest.MustPut(t, openAt(t, st.Where(), nil).Blobs(), content)
	if diff := cmp.Diff(before, snapshot(t, st.Where())); diff != "" {
		t.Errorf("putting it again changed files (-before +after):\n%s", diff)
	}
}

// A blob is on the disk before its name is, and its name before Put returns.
func TestBlobIsSynced(t *testing.T) {
	t.Parallel()
	disk := newRecorder()
	st := openAt(t, "/s", &file.Options{FS: disk})
	storetest.MustPut(t, st.Blobs(), []byte("212")) // a neighbour, for which the directories are made
	ref := store.RefOf([]byte("blob"))
	digits, _ := ref.Hex()
	got := disk.during(vfstest.OpMutating&^vfstest.OpMkdir, func() { storetest.MustPut(t, st.Blobs(), []byte("blob")) })
	want := []string{"create tmp", "write tmp", "sync tmp", "rename tmp to " + digits, "syncdir " + digits[:2]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("putting a blob (-want +got):\n%s", diff)
	}
}

// Putting content again replaces whatever has taken its place, also what has the
// right size.
func TestPutReplacesDamage(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("large "), 200_000)
	for _, content := range [][]byte{[]byte("content"), large} {
		st := open(t, &file.Options{Sync: file.Never})
		ref := storetest.MustPut(t, st.Blobs(), content)
		path := blobPath(st, ref)
		last := bytes.Clone(content)
		last[len(last)-1]++
		for what, damage := range map[string]func() error{
			"zeros":     func() error { return os.WriteFile(path, make([]byte, len(content)), 0o600) },
			"last byte": func() error { return os.WriteFile(path, last, 0o600) },
			"shorter":   func() error { return os.WriteFile(path, content[:len(content)/2], 0o600) },
			"longer":    func() error { return os.WriteFile(path, append(content[:len(content):len(content)], 'x'), 0o600) },
			"empty":     func() error { return os.WriteFile(path, nil, 0o600) },
			"gone":      func() error { return os.Remove(path) },
			"link": func() error {
				return errors.Join(os.Remove(path), os.Symlink(filepath.Join(st.Where(), "elsewhere"), path))
			},
		} {
			must(t, damage())
			storetest.MustPut(t, st.Blobs(), content)
			if got, err := st.Blobs().Get(t.Context(), ref); !bytes.Equal(got, content) || err != nil {
				t.Errorf("%s: %d bytes, %v", what, len(got), err)
			}
		}
		if entries, err := os.ReadDir(filepath.Join(st.Where(), ".coppice")); err != nil || len(entries) != 2 {
			t.Errorf("want blobs and tmp, got %v, %v", entries, err)
		}
	}
}

// What another process has published without a sync is synced before it is taken
// for kept; what this one has synced is not synced again.
func TestPutSyncsWhatIsThere(t *testing.T) {
	t.Parallel()
	disk := newRecorder()
	hasty := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never})
	ref := storetest.MustPut(t, hasty.Blobs(), []byte("blob"))
	digits, _ := ref.Hex()
	const kinds = vfstest.OpMutating &^ vfstest.OpMkdir
	st := openAt(t, "/s", &file.Options{FS: disk})
	put := func() { storetest.MustPut(t, st.Blobs(), []byte("blob")) }
	if diff := cmp.Diff([]string{"sync " + digits, "syncdir " + digits[:2]}, disk.during(kinds, put)); diff != "" {
		t.Errorf("the first time (-want +got):\n%s", diff)
	}
	if got := disk.during(kinds, put); len(got) > 0 {
		t.Errorf("the second time: %q", got)
	}
	must(t, disk.FS.Remove(blobPath(st, ref)))
	storetest.MustPut(t, hasty.Blobs(), []byte("blob")) // another file of the same name
	if got := disk.during(kinds, put); len(got) != 2 {
		t.Errorf("after somebody else put it again: %q", got)
	}
}

func TestDamagedBlob(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	ref := storetest.MustPut(t, st.Blobs(), []byte("content"))
	path := blobPath(st, ref)
	for _, damage := range []string{"Content", "conten", "", "content and more"} {
		must(t, os.WriteFile(path, []byte(damage), 0o600))
		_, err := st.Blobs().Get(t.Context(), ref)
		wantKind(t, err, store.ErrCorrupt, "get blob", path, "does not match its name")
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
// Blobs may be on a disk of their own. While it is not mounted, they are not gone.
func TestBlobsOutOfReach(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	ref := storetest.MustPut(t, st.Blobs(), []byte("content"))
	dir := filepath.Dir(filepath.Dir(blobPath(st, ref)))
	must(t, os.RemoveAll(dir))
	_, err := st.Blobs().Get(t.Context(), ref)
	wantKind(t, err, store.ErrNotExist, "get blob")
	if err := os.Symlink(filepath.Join(t.TempDir(), "unmounted"), dir); err != nil {
		t.Skip(err) // Windows lets few make links
	}
	if _, err := st.Blobs().Get(t.Context(), ref); err == nil || errors.Is(err, store.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v, want an error that names %s and does not say that the blob is gone", err, dir)
	}
	for _, err := range st.Blobs().All(t.Context()) {
		if err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%v, want an error that names %s", err, dir)
		}
		return
	}
	t.Error("the blobs out of reach are listed as none")
}

func TestListBlobs(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	for ref, err := range st.Blobs().All(t.Context()) {
		t.Errorf("a new store has blob %q, %v", ref, err)
	}
	want := map[store.Ref]bool{}
	for _, content := range []string{"a", "b", "c", "d"} {
		want[storetest.MustPut(t, st.Blobs(), []byte(content))] = true
	}
	room := filepath.Join(st.Where(), ".coppice", "blobs")
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

// What it costs to put content that is there, as an agent does that reads the same
// file again and again.
func BenchmarkPutAgain(b *testing.B) {
	for _, size := range []int{40_000, 1 << 20} {
		for name, sync := range map[string]file.Sync{"always": file.Always, "never": file.Never} {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) {
				st := openAt(b, b.TempDir(), &file.Options{Sync: sync})
				content := bytes.Repeat([]byte("x"), size)
				storetest.MustPut(b, st.Blobs(), content)
				for b.Loop() {
					storetest.MustPut(b, st.Blobs(), content)
				}
			})
		}
	}
}

// A file of holes costs no memory on the disk, and must cost none here.
func TestBlobThatClaimsToBeHuge(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	st := open(t, nil)
	ref := storetest.MustPut(t, st.Blobs(), []byte("small"))
	must(t, os.Truncate(blobPath(st, ref), 1<<42))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := st.Blobs().Get(ctx, ref); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("get: %v, want %v", err, context.DeadlineExceeded)
	}
}
