package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// OS is the file system of the operating system. On Windows a file cannot be
// removed or replaced while it is open, and directories need no sync.
type OS struct {
	// KeepOwner gives files that root makes to the owner of their directory, so that a
	// command run as root on a user's sessions does not lock that user out. For other
	// users it changes nothing.
	KeepOwner bool
	// Notices tells of changes: see package notify. Default: nobody does.
	Notices Notifier
}

// Notify implements Notifier.
func (o OS) Notify(dir string, changed func(name string)) (stop func(), err error) {
	if o.Notices == nil {
		return nil, errors.ErrUnsupported
	}
	return o.Notices.Notify(dir, changed)
}

var (
	_ FS   = OS{}
	_ File = (*osFile)(nil)
)

// OpenFile implements FS.
func (o OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := openFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	if o.KeepOwner && flag&os.O_CREATE != 0 {
		if err := ownLikeDir(name); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return &osFile{f: f, fd: f.Fd(), appends: flag&os.O_APPEND != 0}, nil
}

// MkdirAll implements FS.
func (o OS) MkdirAll(name string, perm fs.FileMode) error {
	if o.KeepOwner {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			return nil
		}
		if parent := filepath.Dir(filepath.Clean(name)); parent != name {
			if err := o.MkdirAll(parent, perm); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(name, perm); err != nil || !o.KeepOwner {
		return err
	}
	return ownLikeDir(name)
}

// Rename implements FS.
func (OS) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }

// Link implements FS.
func (OS) Link(oldname, newname string) error { return os.Link(oldname, newname) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// ReadDir implements FS.
func (OS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// Lstat implements FS.
func (OS) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// Stat implements FS.
func (OS) Stat(name string) (Stat, error) { return statName(name) }

// Chtimes implements FS.
func (OS) Chtimes(name string, modified time.Time) error {
	return os.Chtimes(name, time.Time{}, modified)
}

// Chmod implements FS.
func (OS) Chmod(name string, mode fs.FileMode) error { return os.Chmod(name, mode) }

// SyncDir implements FS.
func (OS) SyncDir(name string) error { return syncDir(name) }

// osFile is an open file. Stat and the lock use the descriptor itself: they sit
// on the append path, os.File.Stat allocates, and os.File has no lock.
type osFile struct {
	f       *os.File
	fd      uintptr
	appends bool

	// use guards the descriptor: held for reading by each call that uses fd,
	// for writing by Close. Without it a call could reach another file that
	// got the same number after Close.
	use    sync.RWMutex
	closed bool

	lock   sync.Mutex // makes taking the lock and noting it one step; taken after use
	locked lockKind
}

// lockKind is the lock that an open file has.
type lockKind uint8

const (
	lockNone lockKind = iota
	lockShared
	lockExclusive
)

// begin reserves fd until end is called.
func (f *osFile) begin(op string) error {
	f.use.RLock()
	if f.closed {
		f.use.RUnlock()
		return f.fail(op, fs.ErrClosed)
	}
	return nil
}

func (f *osFile) end() { f.use.RUnlock() }

// fail wraps an error of the system; nil stays nil.
func (f *osFile) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: f.f.Name(), Err: err}
}

// ReadAt implements File.
func (f *osFile) ReadAt(p []byte, off int64) (int, error) { return f.f.ReadAt(p, off) }

// Truncate implements File.
func (f *osFile) Truncate(size int64) error { return f.f.Truncate(size) }

// Stat implements File.
func (f *osFile) Stat() (Stat, error) {
	if err := f.begin("stat"); err != nil {
		return Stat{}, err
	}
	defer f.end()
	st, err := statFD(f.fd)
	return st, f.fail("stat", err)
}

// TryLock implements File.
func (f *osFile) TryLock() (bool, error) { return f.tryLock(lockExclusive) }

// TryRLock implements File.
func (f *osFile) TryRLock() (bool, error) { return f.tryLock(lockShared) }

func (f *osFile) tryLock(kind lockKind) (bool, error) {
	if err := f.begin("lock"); err != nil {
		return false, err
	}
	defer f.end()
	f.lock.Lock()
	defer f.lock.Unlock()
	switch f.locked {
	case kind:
		return true, nil
	case lockNone:
	default: // flock would drop one before it has the other
		return false, f.fail("lock", fs.ErrInvalid)
	}
	ok, err := lockFD(f.fd, kind)
	if ok {
		f.locked = kind
	}
	return ok, f.fail("lock", err)
}

// Unlock implements File.
func (f *osFile) Unlock() error {
	if err := f.begin("unlock"); err != nil {
		return err
	}
	defer f.end()
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.fail("unlock", f.unlock())
}

// unlock gives the lock back if this file has it. The caller holds lock, or
// use for writing.
func (f *osFile) unlock() error {
	if f.locked == lockNone {
		return nil
	}
	err := unlockFD(f.fd)
	if err == nil {
		f.locked = lockNone
	}
	return err
}

// Close implements File.
func (f *osFile) Close() error {
	f.use.Lock()
	defer f.use.Unlock()
	if f.closed {
		return f.fail("close", fs.ErrClosed)
	}
	f.closed = true
	// Closing alone is not enough: a child process being started holds a copy
	// of the descriptor, and with it the lock, until it calls exec. Windows
	// drops the locks of a closed file only some time later.
	unlockErr := f.unlock()
	if err := f.f.Close(); err != nil {
		return err
	}
	return f.fail("unlock", unlockErr)
}
