//go:build unix

package main

import (
	"os/exec"
	"syscall"
	"time"
)

// killable puts a command into a process group of its own, and kills the whole group if
// its context ends.
func killable(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	// A grandchild that has left the group may hold the output open.
	cmd.WaitDelay = 5 * time.Second
}

// killRest kills what is left of a command's process group.
func killRest(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // usually there is nobody
	}
}
