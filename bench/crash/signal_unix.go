//go:build unix

package main

import "syscall"

// failNext tells the disk to fail its next write.
const failNext = syscall.SIGUSR1
