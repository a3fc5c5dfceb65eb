//go:build unix

package file_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
)

// Conversations are private, whatever the process's mask says.
func TestPermissions(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := filepath.Join(t.TempDir(), "new", "sessions")
	st, err := file.Open(dir, nil)
	must(t, err)
	defer st.Close()
	for _, name := range []string{"plain", "archived", "removed", "back", "torn"} {
		storetest.MustCreate(t, st, name, "{}").Close()
	}
	storetest.MustPut(t, st.Blobs(), []byte("blob"))
	for _, name := range []string{"archived", "back"} {
		must(t, st.Archive(t.Context(), name))
	}
	must(t, st.Unarchive(t.Context(), "back"))
	must(t, st.Remove(t.Context(), "removed"))
	writeRaw(t, st.Path("torn"), "{")
	storetest.MustAppend(t, storetest.MustOpen(t, st, "torn"), "{}")
	files := 0
	err = filepath.WalkDir(filepath.Dir(dir), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		want := os.FileMode(0o600)
		if entry.IsDir() {
			want = 0o700
		} else {
			files++
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
		return err
	})
	must(t, err)
	if files < 8 {
		t.Errorf("only %d files were looked at", files)
	}
}
