package vfs

import (
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// The lock is one byte far beyond any data: locks of Windows keep other
// processes from reading and writing the locked bytes.
const (
	lockOffsetHigh = 0x7fffffff
	lockBytes      = 1
)

func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrSymlink}
	}
	// A file that Windows opens for appending cannot be truncated; Write
	// appends by itself.
	return openRegular(name, flag&^os.O_APPEND, perm)
}

// nonblock is not needed here: pipes have names outside the file system.
const nonblock = 0

// openRegular opens a file and refuses anything else.
func openRegular(name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(name, info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Write implements File.
func (f *osFile) Write(p []byte) (int, error) {
	if !f.appends {
		return f.f.Write(p)
	}
	if err := f.begin("write"); err != nil {
		return 0, err
	}
	defer f.end()
	if len(p) == 0 {
		return 0, nil
	}
	// This offset means the end of the file, found and written in one step.
	end := windows.Overlapped{Offset: 0xffffffff, OffsetHigh: 0xffffffff}
	var n uint32
	err := windows.WriteFile(windows.Handle(f.fd), p, &n, &end)
	if err == nil && int(n) < len(p) {
		err = io.ErrShortWrite
	}
	return int(n), f.fail("write", err)
}

func statFD(fd uintptr) (Stat, error) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(fd), &info); err != nil {
		return Stat{}, err
	}
	return Stat{
		Size: int64(info.FileSizeHigh)<<32 | int64(info.FileSizeLow),
		File: FileID{uint64(info.VolumeSerialNumber), uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow)},
	}, nil
}

// statName opens the file only to describe it.
func statName(name string) (Stat, error) {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return Stat{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	const how = windows.FILE_FLAG_BACKUP_SEMANTICS | windows.FILE_FLAG_OPEN_REPARSE_POINT
	h, err := windows.CreateFile(path, 0, share, nil, windows.OPEN_EXISTING, how, 0)
	if err != nil {
		return Stat{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	defer windows.CloseHandle(h)
	st, err := statFD(uintptr(h))
	if err != nil {
		return Stat{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return st, nil
}

func lockFD(fd uintptr, kind lockKind) (bool, error) {
	at := windows.Overlapped{OffsetHigh: lockOffsetHigh}
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if kind == lockExclusive {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(fd), how, 0, lockBytes, 0, &at)
	if err == windows.ERROR_LOCK_VIOLATION || err == windows.ERROR_IO_PENDING {
		return false, nil
	}
	return err == nil, err
}

func unlockFD(fd uintptr) error {
	at := windows.Overlapped{OffsetHigh: lockOffsetHigh}
	return windows.UnlockFileEx(windows.Handle(fd), 0, lockBytes, 0, &at)
}

// syncDir does nothing: NTFS journals its directories and cannot flush one.
func syncDir(string) error { return nil }

// ownLikeDir does nothing: Windows has no such owner.
func ownLikeDir(string) error { return nil }
