//go:build !windows

package client

// shell runs a command line.
var shell = []string{"/bin/sh", "-c"}
