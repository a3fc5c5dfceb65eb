package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync is the cheapest sync that makes an append durable.
func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
