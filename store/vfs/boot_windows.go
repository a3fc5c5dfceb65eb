package vfs

import (
	"fmt"
	"time"

	"golang.org/x/sys/windows"
)

// Boot identifies the current run of the machine since it was started: unsynced writes
// of the same run are still there, unless the file was deleted. It is "" if the run is
// not known. Setting the clock changes it too.
func (OS) Boot() string {
	return fmt.Sprint(time.Now().Add(-windows.DurationSinceBoot()).Round(time.Minute).Unix())
}
