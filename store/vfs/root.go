package vfs

import (
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// In returns the file system of a directory, for names that come from outside. Names
// are relative to the directory, and none leads out of it: not by "..", not by a
// symbolic link, and not by one that is put there at the last moment. The caller keeps
// root open while the file system is used, and closes it.
func In(root *os.Root) FS { return rootFS{root} }

type rootFS struct{ root *os.Root }

// OpenFile implements FS. A link that appears after the check is followed, but not out
// of the directory; with O_EXCL there is no such race.
func (r rootFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if info, err := r.root.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 && flag&os.O_EXCL == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrSymlink}
	}
	appends := flag&os.O_APPEND != 0
	if runtime.GOOS == "windows" {
		flag &^= os.O_APPEND // see openFile there
	}
	f, err := openIn(r.root, name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &osFile{f: f, fd: f.Fd(), appends: appends}, nil
}

// MkdirAll implements FS.
func (r rootFS) MkdirAll(name string, perm fs.FileMode) error { return r.root.MkdirAll(name, perm) }

// Rename implements FS.
func (r rootFS) Rename(oldname, newname string) error { return r.root.Rename(oldname, newname) }

// Link implements FS.
func (r rootFS) Link(oldname, newname string) error { return r.root.Link(oldname, newname) }

// Remove implements FS.
func (r rootFS) Remove(name string) error { return r.root.Remove(name) }

// ReadDir implements FS.
func (r rootFS) ReadDir(name string) ([]fs.DirEntry, error) {
	dir, err := r.root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	list, err := dir.ReadDir(-1)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}

// Lstat implements FS.
func (r rootFS) Lstat(name string) (fs.FileInfo, error) { return r.root.Lstat(name) }

// Stat implements FS.
func (r rootFS) Stat(name string) (Stat, error) {
	f, err := r.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return Stat{}, err
	}
	defer f.Close()
	return f.Stat()
}

// Chtimes implements FS.
func (r rootFS) Chtimes(name string, modified time.Time) error {
	return r.root.Chtimes(name, time.Time{}, modified)
}

// Chmod implements FS.
func (r rootFS) Chmod(name string, mode fs.FileMode) error { return r.root.Chmod(name, mode) }

// SyncDir implements FS.
func (r rootFS) SyncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil // see syncDir there
	}
	dir, err := r.root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return err
	}
	info, err := dir.Stat()
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "sync", Path: name, Err: syscall.ENOTDIR}
	}
	if err == nil {
		err = dir.Sync()
	}
	if closeErr := dir.Close(); err == nil {
		err = closeErr
	}
	return err
}
