package vfs

import (
	"io/fs"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sync implements File. fdatasync writes the size as well, and leaves out only
// the times, which would cost another write. A failed sync is not tried again
// except when interrupted: the kernel reports a lost page once and then forgets.
func (f *osFile) Sync() error {
	if err := f.begin("sync"); err != nil {
		return err
	}
	defer f.end()
	return f.fail("sync", retry(func() error { return unix.Fdatasync(int(f.fd)) }))
}

// statFD asks only for what Stat has, which fstat cannot.
func statFD(fd uintptr) (Stat, error) {
	var empty [1]byte
	return statx(fd, &empty[0], unix.AT_EMPTY_PATH)
}

// statName is on the append path: the buffer keeps names of the usual length off
// the heap.
func statName(name string) (Stat, error) {
	if strings.IndexByte(name, 0) >= 0 {
		return Stat{}, &fs.PathError{Op: "stat", Path: name, Err: unix.EINVAL}
	}
	var buf [256]byte
	path := append(append(buf[:0], name...), 0)
	at := unix.AT_FDCWD // which is negative, and a constant cannot be converted
	st, err := statx(uintptr(at), &path[0], unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return st, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return st, nil
}

// statx calls the system itself: the wrapper of x/sys allocates the path.
func statx(dir uintptr, path *byte, flags uintptr) (Stat, error) {
	const wanted = unix.STATX_SIZE | unix.STATX_INO
	var st unix.Statx_t
	for {
		_, _, errno := unix.Syscall6(unix.SYS_STATX, dir, uintptr(unsafe.Pointer(path)),
			flags, wanted, uintptr(unsafe.Pointer(&st)), 0)
		switch errno {
		case 0:
			return Stat{
				Size: int64(st.Size),
				File: FileID{uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), st.Ino},
			}, nil
		case unix.EINTR:
		default:
			return Stat{}, errno
		}
	}
}
