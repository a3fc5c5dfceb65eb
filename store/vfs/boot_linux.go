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

// Boot identifies the current run of the machine since it was started: unsynced writes
// of the same run are still there, unless the file was deleted. It is "" if the run is
// not known.
func (OS) Boot() string { return bootID() }
