package process

import "syscall"

// EndWithParent has the program killed when this one dies, even if it cannot say so any
// more. What the program has started itself goes on. The system watches the thread that
// calls Start, and not the process: lock it to the goroutine until the program has ended.
func (g *Group) EndWithParent() { g.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }
