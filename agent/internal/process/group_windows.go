package process

import (
	"cmp"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Group is a program with the processes that it starts: a job of Windows.
type Group struct {
	cmd *exec.Cmd
	job windows.Handle // 0 if there is none
}

// NewGroup prepares a program that was not started yet. It gets no terminal.
func NewGroup(cmd *exec.Cmd) *Group {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW | windows.CREATE_NEW_PROCESS_GROUP}
	return &Group{cmd: cmd}
}

// Start starts the program and puts it into a job, with everything that it starts from
// then on. Without a job, only the program itself can be ended.
func (g *Group) Start() error {
	if err := g.cmd.Start(); err != nil {
		return err
	}
	g.enterJob()
	return nil
}

func (g *Group) enterJob() {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		var assigned error
		err = g.cmd.Process.WithHandle(func(process uintptr) {
			assigned = windows.AssignProcessToJobObject(job, windows.Handle(process))
		})
		err = cmp.Or(err, assigned)
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return
	}
	g.job = job
}

// End ends the processes: Windows has no way to ask them.
func (g *Group) End() { g.Kill() }

// Kill ends the processes that are left.
func (g *Group) Kill() {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
		g.job = 0
	}
	_ = g.cmd.Process.Kill()
}
