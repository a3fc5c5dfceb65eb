package lease

import (
	"fmt"
	"os"
	"strings"

	"github.com/coppice-dev/coppice/store/vfs"
)

// machine names this machine since it was started, and the container in it, because both
// decide what the number of a process means.
func machine() string {
	boot, err := vfs.ReadFile("/proc/sys/kernel/random/boot_id", 100)
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + space
}

// started returns when a process began, in the words of the system, or "" if that is not
// known. A process that has ended and still has its number began never.
func started(pid int) string {
	stat, err := vfs.ReadFile(fmt.Sprintf("/proc/%d/stat", pid), 4096)
	if err != nil {
		return "" // it ended just now, or is not ours to see
	}
	// The second field is the program's name in parentheses, which may have any characters.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	switch {
	case len(fields) < 20:
		return ""
	case fields[0] == "Z" || fields[0] == "X":
		return "never"
	}
	return fields[19]
}
