//go:build !linux

package main

import "os"

// datasync is the cheapest sync that makes an append durable.
func datasync(f *os.File) error { return f.Sync() }
