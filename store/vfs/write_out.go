package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// WriteOut writes a file that a user named, the way users expect:
//
//   - A new file appears when it is complete, and only its owner may read it.
//   - A regular file is replaced as a whole if replace is true, and otherwise left
//     alone: the error matches fs.ErrExist. It keeps its permissions.
//   - A symbolic link is followed, and stays.
//   - A device or a pipe is written to, not replaced.
//
// If check is not nil, it is called with the path of the complete file before the file
// gets its name, and can refuse it. Devices and pipes are not checked.
func WriteOut(path string, replace bool, write func(io.Writer) error, check func(path string) error) error {
	target, info, err := followLinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && (target == path || replace):
		return replaceChecked(target, 0, write, check)
	case errors.Is(err, fs.ErrNotExist): // a dangling link still belongs to the user
		return &fs.PathError{Op: "write", Path: path, Err: fs.ErrExist}
	case err != nil:
		return err
	case info.IsDir():
		return &fs.PathError{Op: "write", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		return writeInto(target, write)
	case !replace:
		return &fs.PathError{Op: "write", Path: path, Err: fs.ErrExist}
	}
	return replaceChecked(target, info.Mode().Perm(), write, check)
}

func replaceChecked(path string, perm fs.FileMode, write func(io.Writer) error, check func(path string) error) error {
	how := Replacement{Perm: perm, Temp: tempFor(path)}
	if check != nil {
		how.Before = func() error { return check(how.Temp) }
	}
	return Replace(OS{KeepOwner: true}, path, how, write)
}

// maxLinks is how many links in a row are followed, as in operating systems.
const maxLinks = 40

// followLinks returns where a path leads and what is there. If nothing is there, the
// error matches fs.ErrNotExist, and the path is where a file could be made.
func followLinks(path string) (string, fs.FileInfo, error) {
	for range maxLinks {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return path, info, err
		}
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return path, info, nil // what /dev/stdout leads to may have no name of its own
		}
		next, err := os.Readlink(path)
		if err != nil {
			return path, nil, err
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		path = next
	}
	return path, nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
}

// writeInto writes into what is not a regular file.
func writeInto(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
