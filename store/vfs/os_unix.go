//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := openRegular(name, flag|unix.O_NOFOLLOW, perm)
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

// openRegular opens a file without ever waiting: opening a named pipe waits for its
// other end. So it opens without blocking, checks the file, and only then switches
// back to blocking.
func openRegular(name string, flag int, perm fs.FileMode) (*os.File, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Open(name, flag|nonblock|unix.O_CLOEXEC, uint32(perm.Perm()))
		return err
	})
	if err == unix.ENOENT {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if err != nil {
		// A socket cannot be opened at all, nor a pipe without a reader for writing,
		// nor a directory for writing. Their errors would not say why.
		if info, statErr := os.Stat(name); statErr == nil && !info.Mode().IsRegular() && flag&os.O_EXCL == 0 {
			return nil, notRegular(name, info.Mode())
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	var st unix.Stat_t
	if err = retry(func() error { return unix.Fstat(fd, &st) }); err == nil {
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			unix.Close(fd)
			return nil, notRegular(name, modeOf(uint32(st.Mode)))
		}
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		unix.Close(fd)
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// nonblock keeps an open from waiting.
const nonblock = unix.O_NONBLOCK

func modeOf(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	case unix.S_IFCHR, unix.S_IFBLK:
		return fs.ModeDevice
	}
	return fs.ModeIrregular
}

// Write implements File. Calling write(2) here directly was no faster than
// os.File, which also handles interrupted and short writes.
func (f *osFile) Write(p []byte) (int, error) { return f.f.Write(p) }

// lockFD uses flock: unlike a POSIX record lock it survives the closing of
// another descriptor of the same file in this process.
func lockFD(fd uintptr, kind lockKind) (bool, error) {
	how := unix.LOCK_EX
	if kind == lockShared {
		how = unix.LOCK_SH
	}
	err := retry(func() error { return unix.Flock(int(fd), how|unix.LOCK_NB) })
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

// ownLikeDir gives what root has made to the owner of the directory it is in.
func ownLikeDir(name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var made, dir unix.Stat_t
	if err := unix.Lstat(name, &made); err != nil {
		return &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if err := unix.Stat(filepath.Dir(name), &dir); err != nil {
		return &fs.PathError{Op: "stat", Path: filepath.Dir(name), Err: err}
	}
	if made.Uid != 0 || dir.Uid == 0 {
		return nil
	}
	return os.Lchown(name, int(dir.Uid), int(dir.Gid))
}
