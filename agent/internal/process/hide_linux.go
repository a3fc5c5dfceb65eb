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
	fields := statFields("/proc/self/stat")
	if len(fields) < 51 {
		return
	}
	from, err1 := strconv.ParseInt(fields[49], 10, 64) // where the environment is
	to, err2 := strconv.ParseInt(fields[50], 10, 64)
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
