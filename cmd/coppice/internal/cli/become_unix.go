//go:build unix

package cli

import (
	"os"
	"syscall"
)

// become runs another program in the place of this one, so that signals and the
// terminal are its own.
func become(program string, argv []string) error { return syscall.Exec(program, argv, os.Environ()) }
