//go:build unix && !linux

package process

import "syscall"

// signalSession does nothing where processes cannot be listed by their session: what is
// in a group of its own gets away.
func signalSession(int, syscall.Signal) {}
