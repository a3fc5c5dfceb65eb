package file_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// A process is killed before any of its operations. Another finds the directories
// that it made, and works in them: what it acknowledges survives a power cut,
// although the first did not come to make the directories durable.
func TestDirectoriesOfAKilledProcessAreMadeDurable(t *testing.T) {
	t.Parallel()
	const dir = "/home/share/deep/sessions"
	work := func(disk vfs.FS, name string) error {
		st, err := file.Open(filepath.FromSlash(dir), &file.Options{FS: disk})
		if err != nil {
			return err
		}
		defer st.Close()
		log, err := st.Create(t.Context(), name, store.Lines([]byte(`{}`)))
		if err != nil {
			return err
		}
		if _, err := st.Blobs().Put(t.Context(), []byte("content")); err != nil {
			return err
		}
		end, err := log.End(t.Context())
		if err == nil {
			_, err = log.Append(t.Context(), end, []byte(`{"n":1}`))
		}
		if err == nil {
			err = st.Notes("imports").Write(t.Context(), "x", []byte("note"))
		}
		return err
	}
	count := &vfstest.Faulty{FS: vfstest.NewMemory()}
	if err := work(count, "count"); err != nil {
		t.Fatal(err)
	}
	killed := errors.New("killed")
	for n := int64(1); n <= count.Count(vfstest.OpMutating)+1; n++ {
		disk := vfstest.NewMemory()
		if err := disk.MkdirAll("/home", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := disk.SyncDir("/"); err != nil {
			t.Fatal(err)
		}
		_ = work(&vfstest.Faulty{FS: disk, Before: vfstest.FailFrom(n, vfstest.OpMutating, killed)}, "first") // as far as it comes
		if err := work(disk, "second"); err != nil {
			t.Fatal(err)
		}
		if err := check(t, disk.CrashClone(nil, vfstest.LoseAll), dir); err != nil {
			t.Errorf("the first was killed before operation %d: %v", n, err)
		}
	}
}

func check(t *testing.T, disk vfs.FS, dir string) error {
	st, err := file.Open(filepath.FromSlash(dir), &file.Options{FS: disk})
	if err != nil {
		return err
	}
	defer st.Close()
	log, err := st.Open(t.Context(), "second")
	if err != nil {
		return err
	}
	lines := 0
	for _, err := range log.Forward(t.Context(), 0) {
		if err != nil {
			return err
		}
		lines++
	}
	if lines != 2 {
		return fmt.Errorf("%d lines", lines)
	}
	if _, err := st.Blobs().Get(t.Context(), store.RefOf([]byte("content"))); err != nil {
		return err
	}
	_, err = st.Notes("imports").Read(t.Context(), "x")
	return err
}
