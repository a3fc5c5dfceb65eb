package vfs

import (
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

// statFD asks only for what Stat has, which fstat cannot. The wrapper of x/sys
// allocates the empty path; this is on the append path.
func statFD(fd uintptr) (Stat, error) {
	const wanted = unix.STATX_SIZE | unix.STATX_NLINK | unix.STATX_INO
	var st unix.Statx_t
	var path [1]byte
	for {
		_, _, errno := unix.Syscall6(unix.SYS_STATX, fd, uintptr(unsafe.Pointer(&path)),
			unix.AT_EMPTY_PATH, wanted, uintptr(unsafe.Pointer(&st)), 0)
		switch errno {
		case 0:
			return Stat{
				Size:   int64(st.Size),
				File:   FileID{uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), st.Ino},
				Linked: st.Nlink > 0,
			}, nil
		case unix.EINTR:
		default:
			return Stat{}, errno
		}
	}
}
