//go:build !unix

package main

import "syscall"

// failNext would tell the disk to fail its next write, if there were such a disk.
const failNext = syscall.SIGTERM
