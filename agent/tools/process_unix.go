//go:build unix

package tools

import (
	"os/exec"
	"syscall"
)

// group is a command with the processes that it starts.
type group struct{ cmd *exec.Cmd }

// newGroup gives a command a session of its own: it has no terminal that it could ask
// for a password, and a process group that holds all that it starts, except for what
// leaves it on purpose.
func newGroup(cmd *exec.Cmd) *group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return &group{cmd}
}

func (g *group) started() {}

// end asks the processes to end.
func (g *group) end() { _ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGTERM) }

// kill ends those that are left. While there are any, no other process gets the number
// of the group.
func (g *group) kill() { _ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL) }
