//go:build !linux

package vfs

// Sync implements File.
func (f *osFile) Sync() error { return f.f.Sync() }
