//go:build unix && !linux

package process

import "syscall"

// signalSession does nothing where processes cannot be listed by their session: a process in
// a group of its own escapes.
func signalSession(int, syscall.Signal) {}
