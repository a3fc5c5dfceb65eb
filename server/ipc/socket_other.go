//go:build !unix

package ipc

import (
	"io/fs"
	"syscall"
)

// errRefused is what connecting to the socket of a dead server returns: WSAECONNREFUSED.
const errRefused = syscall.Errno(10061)

// isSocket is true for anything but a directory: Windows has no mode for sockets.
func isSocket(info fs.FileInfo) bool { return !info.IsDir() && info.Size() == 0 }

// checkDir relies on the directory's access list.
func checkDir(string) error { return nil }

// hungUp always returns false: the next write notices it.
func hungUp(any) bool { return false }
