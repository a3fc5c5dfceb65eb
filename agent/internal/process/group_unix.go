//go:build unix

package process

import (
	"os/exec"
	"syscall"
)

// Group is a program with the processes that it starts.
type Group struct{ cmd *exec.Cmd }

// NewGroup prepares a program that was not started yet. It gets a session of its own: it has
// no terminal that it could ask for a password, an interrupt from the keyboard does not reach
// it, and its session holds all processes that it starts, except those that create their own
// session.
func NewGroup(cmd *exec.Cmd) *Group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return &Group{cmd}
}

// Start starts the program.
func (g *Group) Start() error { return g.cmd.Start() }

// End asks the processes to end.
func (g *Group) End() { g.signal(syscall.SIGTERM) }

// Kill ends the processes that are left, even right after the program itself has ended:
// no other group or session gets its number while a process is left in it.
func (g *Group) Kill() { g.signal(syscall.SIGKILL) }

func (g *Group) signal(s syscall.Signal) {
	leader := g.cmd.Process.Pid
	_ = syscall.Kill(-leader, s)
	signalSession(leader, s)
}
