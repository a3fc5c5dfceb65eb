package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coppice-dev/coppice/store/vfs"
)

// While a file is written, its directory has no other names in it: a program that is killed
// then leaves nothing behind.
func TestNothingIsSeenOfAFileThatIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if f, err := os.OpenFile(dir, unix.O_TMPFILE|os.O_RDWR, 0o600); err != nil {
		t.Skip("the file system has no files without a name: ", err)
	} else {
		f.Close()
	}
	names := func() int {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		return len(list)
	}
	for want, text := range []string{"one", "two"} {
		o := vfs.Replacement{Perm: 0o644, Before: func() error {
			if names() != want {
				t.Errorf("%d names when the file is complete, want %d", names(), want)
			}
			return nil
		}}
		err := vfs.Replace(vfs.In(root), "file", o, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			if names() != want {
				t.Errorf("%d names during the write, want %d", names(), want)
			}
			return err
		})
		if got, _ := os.ReadFile(dir + "/file"); err != nil || string(got) != text || names() != 1 {
			t.Errorf("%q, %d names: %v", got, names(), err)
		}
	}
	err = vfs.Replace(vfs.In(root), "file", vfs.Replacement{New: true}, vfs.Data(nil))
	if !errors.Is(err, fs.ErrExist) || names() != 1 {
		t.Errorf("%d names: %v", names(), err)
	}
}
