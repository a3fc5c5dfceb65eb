package home_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/home"
)

// killedHome tells the child of TestAKilledTurnGoesOn where its home is.
const killedHome = "COPPICE_TEST_KILLED_HOME"

// A program that is killed in the middle of a call leaves a turn that another one goes on with.
// The call is not run a second time.
func TestAKilledTurnGoesOn(t *testing.T) {
	t.Parallel()
	if where := os.Getenv(killedHome); where != "" {
		runUntilKilled(t, where)
		return
	}
	h, dir := newHouseInFiles(t), t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Dir, child.Env = dir, append(os.Environ(), killedHome+"="+h.dir, "TMPDIR="+t.TempDir()) // it cannot tidy up
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var e home.TurnEvent
	for lines := bufio.NewScanner(out); e.Type != agent.ToolUpdate; {
		if !lines.Scan() {
			t.Fatal("the child has ended early")
		}
		_ = json.Unmarshal(lines.Bytes(), &e) // or it is a line of the test itself
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed

	s := h.status(e.Session)
	if s.Running || !s.Unfinished || len(s.Pending) != 1 || s.Pending[0].State != agent.CallRunning {
		t.Errorf("the status is %+v", s)
	}
	resumed := bash(dir)
	resumed.Session = e.Session
	if got := text(h.resume(resumed).end()); !strings.Contains(got, "interrupted") {
		t.Errorf("the answer is %q", got)
	}
	if ran, err := os.ReadFile(filepath.Join(dir, "ran")); err != nil || string(ran) != "once\n" {
		t.Errorf("it ran %q, %v", ran, err)
	}
}

// runUntilKilled has a turn whose call does not end, and prints its events.
func runUntilKilled(t *testing.T, where string) {
	h := newHouseAt(t, where)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	o := bash(dir)
	o.Allow = []string{"bash"}
	out := json.NewEncoder(os.Stdout)
	_, err = h.Turns.Prompt(t.Context(), home.PromptRequest{TurnOptions: o, Text: running("echo once >> ran; echo ran; kill -STOP $$")},
		func(e home.TurnEvent) error { return out.Encode(e) })
	t.Fatal(err)
}
