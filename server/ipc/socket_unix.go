//go:build unix

package ipc

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coppice-dev/coppice/home"
)

// errRefused is what connecting to the socket of a dead server returns.
const errRefused = syscall.ECONNREFUSED

func isSocket(info fs.FileInfo) bool { return info.Mode()&fs.ModeSocket != 0 }

// checkDir refuses a directory in which another user could replace our socket.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner := -1
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = int(stat.Uid)
	}
	why := ""
	switch {
	case !info.IsDir():
		why = "it is not a directory"
	case owner != os.Getuid() && owner != 0:
		why = fmt.Sprintf("it belongs to user %d", owner)
	case info.Mode()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0:
		why = "other users may write to it"
	default:
		return nil
	}
	return &home.ErrorInfo{Kind: home.KindError, Message: fmt.Sprintf("a socket in %s would not be safe: %s", dir, why), Hint: "choose another path"}
}

// hungUp reports whether nobody is left to read what is written to a socket or a pipe. One
// whose other end only stopped writing has not hung up.
func hungUp(w any) bool {
	file, ok := w.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		_, err := unix.Poll(polled, 0)
		gone = err == nil && polled[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
	})
	return gone || err != nil
}
