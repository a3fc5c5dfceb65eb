//go:build unix && !linux

package vfs

import "golang.org/x/sys/unix"

func statFD(fd uintptr) (Stat, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(int(fd), &st) }); err != nil {
		return Stat{}, err
	}
	return Stat{Size: st.Size, File: FileID{uint64(st.Dev), st.Ino}, Linked: st.Nlink > 0}, nil
}
