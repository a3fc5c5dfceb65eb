package ipc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// peerUser asks the system who is at the other end of a socket.
func peerUser(raw syscall.RawConn) (uid int, err error) {
	var cred *unix.Ucred
	if broken := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); broken != nil {
		return 0, broken
	}
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
