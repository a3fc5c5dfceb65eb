package tools_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
		newBench(t, tools.Options{Dir: dir}).run("bash", "command", "exec 9>pipe; echo begun >&9; for i in {1..6000}; do sleep 0.1; done")
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
		case <-time.After(4 * time.Minute):
			t.Fatal("the command did not begin, or it did not end")
		}
		_ = program.Process.Kill()
	}
	_ = program.Wait() // it was killed
}

// The jobs of a shell with job control end with the command.
func TestJobsEndWithTheirCommand(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	b.run("bash", "command", "set -m; sleep 1000 > /dev/null 2>&1 & echo $! > pid")
	waitGone(t, strings.TrimSpace(b.content("pid")))
}

// A command cannot read the keys in the environment of the program that runs it.
func TestTheKeysOfTheProgramAreHidden(t *testing.T) {
	t.Parallel()
	const isChild = "COPPICE_TEST_HAS_A_KEY"
	if os.Getenv(isChild) != "" { // this is the program
		r := newBench(t, tools.Options{}).run("bash", "command", "tr '\\0' '\\n' < /proc/$PPID/environ || echo refused")
		fmt.Println("seen:", r, "own:", os.Getenv("SOME_API_KEY"))
		return
	}
	program := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	program.Env = append(os.Environ(), isChild+"=1", "SOME_API_KEY=abc-the-key-xyz")
	out, err := program.Output()
	if err != nil || strings.Count(string(out), "abc-the-key-xyz") != 1 || !strings.Contains(string(out), "own: abc-the-key-xyz") {
		t.Errorf("%v: %s", err, out)
	}
}
