//go:build !linux && !darwin && !freebsd

package ipc

import "net"

// checkPeer leaves it to the permissions of the socket and of its directory.
func checkPeer(net.Conn, int) error { return nil }
