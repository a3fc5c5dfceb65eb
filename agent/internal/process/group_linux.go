package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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
			stat, err := os.ReadFile(name)
			if err != nil {
				continue // it has ended
			}
			// After the name of the program come its state, parent, group and session.
			fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
			if len(fields) < 4 || fields[3] != number || fields[2] == number || fields[0] == "Z" {
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
