//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !windows

package vfs

// Boot identifies the time since the machine was started. Here that cannot be told.
func (OS) Boot() string { return "" }
