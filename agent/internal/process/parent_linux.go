package process

import "syscall"

// EndWithParent makes the kernel kill the program when this process dies, even by
// SIGKILL. Processes that the program started keep running. The kernel watches the thread
// that calls Start, not the process: lock it to the goroutine until the program has
// ended.
func (g *Group) EndWithParent() { g.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }
