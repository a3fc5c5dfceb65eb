//go:build darwin || freebsd || netbsd || openbsd

package vfs

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Boot identifies the time since the machine was started: what was written in it
// and not synced is still there, unless somebody deleted it. It is "" if that
// cannot be told.
func (OS) Boot() string {
	t, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return ""
	}
	return fmt.Sprint(t.Sec) // the microseconds follow adjustments of the clock
}
