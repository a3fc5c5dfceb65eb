//go:build linux || darwin || freebsd

package ipc

import (
	"fmt"
	"net"
	"syscall"
)

// checkPeer refuses a connection of another user, even of root, who can read the files
// anyway.
func checkPeer(c net.Conn, uid int) error {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return fmt.Errorf("%T is not a socket", c)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	peer, err := peerUser(raw)
	switch {
	case err != nil:
		return fmt.Errorf("the system does not say who connected: %w", err)
	case peer != uid:
		return fmt.Errorf("it belongs to user %d", peer)
	}
	return nil
}
