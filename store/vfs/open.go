package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// The functions here read files that are not the store's: a setting, a source of an
// import, a file beside one. Unlike FS.OpenFile they follow symbolic links. Like it,
// they never wait for a named pipe and never read from a device: for anything but a
// regular file the error matches ErrNotRegular.

// Open opens a file for reading.
func Open(name string) (*os.File, error) { return openRegular(name, os.O_RDONLY, 0) }

// OpenIn opens a file in a directory for reading.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return openIn(root, name, os.O_RDONLY, 0)
}

func openIn(root *os.Root, name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := root.OpenFile(name, flag|nonblock, perm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(f.Name(), info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// SmallFile is a limit for ReadFile, far above the size of any settings file.
const SmallFile = 16 << 20

// ReadFile returns the content of a file of at most limit bytes; for a larger one
// it returns an error that matches ErrTooLarge. A limit of 0 means no limit.
func ReadFile(name string, limit int64) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if limit == 0 {
		return io.ReadAll(f)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, limit)}
	}
	return data, err
}

// CheckRegular returns an error that matches ErrNotRegular if a path, after following
// symbolic links, is something other than a regular file. It is for files that another
// library opens by their name. A file that is missing is fine.
func CheckRegular(name string) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(name, info.Mode())
	}
	return err
}
