// Package vfs is the seam between the file store and the disk: the few file
// operations the store needs, behind an interface. OS is the real thing; package vfstest
// has versions for tests.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"time"
)

// FS is a file system. Names are absolute or relative paths in the form of the
// operating system. All methods may be called concurrently.
type FS interface {
	// OpenFile opens a file with flags of package os (O_RDONLY, O_RDWR,
	// O_CREATE, O_EXCL, O_APPEND, O_TRUNC). It does not follow a symbolic link
	// in the last element of name: that is an error, ErrSymlink, or
	// fs.ErrExist with O_EXCL.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// MkdirAll makes a directory and its missing parents. Like files they are
	// durable once the directories that they are in were synced: see Mkdir.
	MkdirAll(name string, perm fs.FileMode) error
	// Rename moves a file, replacing what is at the new name.
	Rename(oldname, newname string) error
	// Link gives a file a second name, which must be free: otherwise it returns
	// fs.ErrExist. On file systems without links it returns another error.
	Link(oldname, newname string) error
	// Remove deletes a file or an empty directory. A file that has another name
	// stays there.
	Remove(name string) error
	// ReadDir returns the entries of a directory, sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	// Lstat describes a file without following a symbolic link.
	Lstat(name string) (fs.FileInfo, error)
	// Stat describes what is at a name now, without following a symbolic link:
	// comparing its File with that of an open File shows whether the open one still has
	// the name.
	Stat(name string) (Stat, error)
	// Chtimes sets the time at which a file was modified last.
	Chtimes(name string, modified time.Time) error
	// Chmod sets a file's permissions.
	Chmod(name string, mode fs.FileMode) error
	// SyncDir makes the creations, renames and removals in a directory durable.
	SyncDir(name string) error
}

// File is an open file. All methods may be called concurrently.
type File interface {
	io.ReaderAt
	// Write writes at the end of a file opened with O_APPEND, and otherwise after the
	// previous Write.
	io.Writer
	io.Closer
	// Truncate changes the file's size.
	Truncate(size int64) error
	// Sync makes the file's data and size durable.
	Sync() error
	// Stat describes the open file.
	Stat() (Stat, error)
	// TryLock takes an exclusive lock on the file if it is free in this process and all
	// others. The lock belongs to this File: another File of the same name does not get
	// it; locking this one again changes nothing. The lock ends when the File is closed
	// or the process ends.
	TryLock() (bool, error)
	// TryRLock takes a shared lock: any number of Files may have one at the same
	// time, as long as none has the exclusive lock. Apart from that it is like
	// TryLock. A File that has one kind of lock cannot take the other before it
	// gives the first back: that is an error, fs.ErrInvalid.
	TryRLock() (bool, error)
	// Unlock gives the lock back, of either kind. Without a lock it does nothing.
	Unlock() error
}

// Stat is what the store needs to know about a file before it writes. It has no times:
// on Linux, asking for a file's times makes the next write slower, because that must
// then give the file a different time. Nor does it count names: a file with one name
// may have it elsewhere, for example in a backup made of hard links.
type Stat struct {
	Size int64
	File FileID
}

// Notifier is a file system that tells of changes. An FS may be one.
type Notifier interface {
	// Notify calls changed with the name of every file in a directory that any process creates,
	// writes, renames or removes, until stop is called. The name is "" if more may have changed
	// than was told: the directory is gone, or there was too much to tell. After that Notify must
	// be called again. changed must return soon and call neither Notify nor stop. The error says
	// why changes are not told of, for example because the directory is on another machine.
	Notify(dir string, changed func(name string)) (stop func(), err error)
}

// HasName reports whether an open file is the one at a name now. What was deleted,
// renamed or replaced is not.
func HasName(fsys FS, f File, name string) (bool, error) {
	open, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := fsys.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && named.File == open.File, err
}

// FileID identifies a file whatever its names: two existing files have the same FileID
// if and only if they are the same file. A file that is open exists; once it is closed
// and deleted, another may get its FileID.
type FileID struct{ Device, File uint64 }
