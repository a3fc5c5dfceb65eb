//go:build unix && !linux

package vfs

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

func statFD(fd uintptr) (Stat, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(int(fd), &st) }); err != nil {
		return Stat{}, err
	}
	return Stat{Size: st.Size, File: FileID{uint64(st.Dev), st.Ino}}, nil
}

func statName(name string) (Stat, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Lstat(name, &st) }); err != nil {
		return Stat{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return Stat{Size: st.Size, File: FileID{uint64(st.Dev), st.Ino}}, nil
}
