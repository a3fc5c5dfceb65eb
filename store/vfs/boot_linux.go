package vfs

import (
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

var bootID = sync.OnceValue(func() string {
	fd, err := unix.Open("/proc/sys/kernel/random/boot_id", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	id := make([]byte, 64)
	n, err := unix.Read(fd, id)
	if err != nil || n <= 0 {
		return ""
	}
	return strings.TrimSpace(string(id[:n]))
})

// Boot identifies the time since the machine was started: what was written in it
// and not synced is still there, unless somebody deleted it. It is "" if that
// cannot be told.
func (OS) Boot() string { return bootID() }
