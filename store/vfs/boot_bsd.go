//go:build darwin || freebsd || netbsd || openbsd

package vfs

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Boot identifies the current run of the machine since it was started: unsynced writes
// of the same run are still there, unless the file was deleted. It is "" if the run is
// not known.
func (OS) Boot() string {
	t, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return ""
	}
	return fmt.Sprint(t.Sec) // the microseconds follow adjustments of the clock
}
