package process

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// hideSecrets overwrites the secrets in the environment that the system keeps for this
// process, in /proc/PID/environ, which all programs of the user can read. The program
// still has its own copy. If there were any, other programs of the user can no longer
// look into its memory either.
func hideSecrets() {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return
	}
	// The name of the program may have spaces and parentheses. The fields after it begin
	// with the third; the 50th and 51st say where the environment is.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 49 {
		return
	}
	from, err1 := strconv.ParseInt(string(fields[50-3]), 10, 64)
	to, err2 := strconv.ParseInt(string(fields[51-3]), 10, 64)
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err1 != nil || err2 != nil || err != nil || from >= to {
		return
	}
	defer memory.Close()
	environ := make([]byte, to-from)
	if _, err := memory.ReadAt(environ, from); err != nil {
		return
	}
	for at := 0; at < len(environ); {
		setting, _, _ := bytes.Cut(environ[at:], []byte{0})
		if isSecret(string(setting)) {
			value := bytes.IndexByte(setting, '=') + 1
			_, _ = memory.WriteAt(make([]byte, len(setting)-value), from+int64(at+value))
			_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
		}
		at += len(setting) + 1
	}
}
