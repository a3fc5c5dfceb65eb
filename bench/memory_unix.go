//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
	"time"
)

// peakMemory is the most memory that a process had.
func peakMemory(p *os.ProcessState) int64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	switch {
	case !ok:
		return 0
	case runtime.GOOS == "darwin":
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) << 10
}

// processorTime is what this process has had of all processors together.
func processorTime() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
