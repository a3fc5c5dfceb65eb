//go:build !linux && !darwin && !freebsd

package ipc

import "net"

// checkPeer relies on the permissions of the socket and of its directory.
func checkPeer(net.Conn, int) error { return nil }
