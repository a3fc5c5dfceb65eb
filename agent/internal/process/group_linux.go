package process

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/coppice-dev/coppice/store/vfs"
)

// EndWithParent makes the kernel kill the program when this process dies, even by
// SIGKILL. Processes that the program started keep running. The kernel watches the thread
// that calls Start, not the process: lock it to the goroutine until the program has
// ended.
func (g *Group) EndWithParent() { g.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// maxRounds is how often a session is looked through: its processes may start others in
// the meantime.
const maxRounds = 20

// signalSession sends a signal to the processes of a session that are in groups of their
// own, such as the jobs of a shell with job control.
func signalSession(leader int, s syscall.Signal) {
	number, sent := strconv.Itoa(leader), make(map[int]bool)
	for range maxRounds {
		found := false
		names, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, name := range names {
			fields := statFields(name)
			if len(fields) < 6 || fields[5] != number || fields[4] == number || fields[2] == "Z" {
				continue
			}
			if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name))); !sent[pid] {
				found, sent[pid] = true, true
				_ = syscall.Kill(pid, s)
			}
		}
		if !found {
			return
		}
	}
}

// statFields returns what /proc says about a process: among others the state is 2, the
// group 4 and the session 5. It returns nil if the process has ended.
func statFields(name string) []string {
	stat, err := vfs.ReadFile(name, vfs.SmallFile)
	at := bytes.LastIndexByte(stat, ')') // the name of a program may have spaces and parentheses
	if err != nil || at < 0 {
		return nil
	}
	return append([]string{"pid", "name"}, strings.Fields(string(stat[at+1:]))...)
}
