package tools_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/agent/tools"
)

// A command does not go on when the program that runs it is killed.
func TestACommandEndsWithAKilledProgram(t *testing.T) {
	t.Parallel()
	const where = "COPPICE_TEST_KILLED_IN"
	if dir := os.Getenv(where); dir != "" { // this is the program
		newBench(t, tools.Options{Dir: dir}).run("bash", "command", "exec 9>pipe; echo begun >&9; for i in {1..600}; do sleep 0.1; done")
		return
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	program := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	program.Env = append(os.Environ(), where+"="+dir)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	begun, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		r, err := os.Open(pipe)
		if err != nil {
			begun <- err
			return
		}
		defer r.Close()
		lines := bufio.NewReader(r)
		_, err = lines.ReadString('\n')
		begun <- err
		_, err = io.Copy(io.Discard, lines) // until nobody has the pipe any more
		ended <- err
	}()
	for _, step := range []chan error{begun, ended} {
		select {
		case err := <-step:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(40 * time.Second):
			t.Fatal("the command did not begin, or it did not end")
		}
		_ = program.Process.Kill()
	}
	_ = program.Wait() // it was killed
}
