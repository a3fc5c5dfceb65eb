//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag|unix.O_NOFOLLOW, perm)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return f, err
	}
	// The systems disagree on the error for a link (ELOOP, EMLINK, EFTYPE), and
	// ELOOP also means too many links on the way.
	if info, statErr := os.Lstat(name); statErr == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrSymlink}
	}
	return nil, err
}

// Write implements File. Calling write(2) here directly was no faster than
// os.File, which also handles interrupted and short writes.
func (f *osFile) Write(p []byte) (int, error) { return f.f.Write(p) }

// lockFD uses flock: unlike a POSIX record lock it survives the closing of
// another descriptor of the same file in this process.
func lockFD(fd uintptr) (bool, error) {
	err := retry(func() error { return unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) })
	if err == unix.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}

func unlockFD(fd uintptr) error {
	return retry(func() error { return unix.Flock(int(fd), unix.LOCK_UN) })
}

func syncDir(name string) error {
	dir, err := os.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	err = dir.Sync()
	if closeErr := dir.Close(); err == nil {
		err = closeErr
	}
	return err
}

// retry repeats a call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
