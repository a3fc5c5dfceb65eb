package vfs

import (
	"fmt"
	"time"

	"golang.org/x/sys/windows"
)

// Boot identifies the time since the machine was started: what was written in it
// and not synced is still there, unless somebody deleted it. It is "" if that
// cannot be told. A clock that is set changes it, too.
func (OS) Boot() string {
	return fmt.Sprint(time.Now().Add(-windows.DurationSinceBoot()).Round(time.Minute).Unix())
}
