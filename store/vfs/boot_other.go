//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !windows

package vfs

// Boot identifies the current run of the machine. Here it is not known.
func (OS) Boot() string { return "" }
