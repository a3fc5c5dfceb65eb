package vfs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// unnamed makes a file in a directory that has no name: if the process dies, it is gone.
// give gives it a name, which must be free. Not every file system has such files.
func (r rootFS) unnamed(dir string, perm fs.FileMode) (f *osFile, give func(name string) error, err error) {
	file, err := r.root.OpenFile(dir, unix.O_TMPFILE|os.O_RDWR, perm)
	if err != nil {
		return nil, nil, err
	}
	give = func(name string) error {
		parent, err := r.root.OpenFile(filepath.Dir(name), unix.O_DIRECTORY|os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer parent.Close()
		err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", file.Fd()), int(parent.Fd()), filepath.Base(name), unix.AT_SYMLINK_FOLLOW)
		if err != nil {
			return &fs.PathError{Op: "link", Path: name, Err: err}
		}
		return nil
	}
	return &osFile{f: file, fd: file.Fd()}, give, nil
}
