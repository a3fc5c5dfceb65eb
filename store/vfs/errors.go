package vfs

import (
	"errors"
	"io/fs"
	"syscall"
)

var (
	// ErrSymlink is the cause of the error that OpenFile returns for a symbolic
	// link.
	ErrSymlink = errors.New("is a symbolic link")
	// ErrNotRegular is the cause of the error for something that is not a regular file:
	// a directory, a named pipe, a socket, a device.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge is the cause of the error that ReadFile returns for a file
	// beyond its limit.
	ErrTooLarge = errors.New("too large")
)

// NoDescriptors reports whether an error means that the process, or the system, may
// not open another file.
func NoDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// NoSpace reports whether an error means that the disk is full, or the user's part of it.
func NoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// CannotLock reports whether an error means that a file system has no locks. Some
// network file systems have none, nor do those of some virtual machines.
func CannotLock(err error) bool {
	e, ok := errors.AsType[*fs.PathError](err)
	return ok && e.Op == "lock" && (errors.Is(e, errors.ErrUnsupported) || errors.Is(e, syscall.ENOLCK))
}

// notRegular says what is there instead of a file.
func notRegular(name string, mode fs.FileMode) error {
	return &fs.PathError{Op: "open", Path: name, Err: &specialError{mode}}
}

type specialError struct{ mode fs.FileMode }

func (e *specialError) Error() string {
	what := "something else"
	switch {
	case e.mode.IsDir():
		what = "a directory"
	case e.mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case e.mode&fs.ModeSocket != 0:
		what = "a socket"
	case e.mode&fs.ModeDevice != 0:
		what = "a device"
	case e.mode&fs.ModeSymlink != 0:
		what = "a symbolic link"
	}
	return "it is " + what + ", " + ErrNotRegular.Error() + ": move it away"
}

func (e *specialError) Unwrap() error { return ErrNotRegular }
