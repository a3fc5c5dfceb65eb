package tools

import (
	"cmp"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a command with the processes that it starts: a job of Windows.
type group struct {
	cmd *exec.Cmd
	job windows.Handle // 0 if there is none
}

// newGroup keeps a command away from the terminal.
func newGroup(cmd *exec.Cmd) *group {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW | windows.CREATE_NEW_PROCESS_GROUP}
	return &group{cmd: cmd}
}

// started puts the command into a job, in which everything is that it starts from then
// on. Without one, only the command itself can be ended.
func (g *group) started() {
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

// end ends the processes: Windows has no way to ask them.
func (g *group) end() { g.kill() }

// kill ends those that are left.
func (g *group) kill() {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
		g.job = 0
	}
	_ = g.cmd.Process.Kill()
}
