package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/keyed"
)

// TestMain is the bot itself when a test starts it.
func TestMain(m *testing.M) {
	if dir := os.Getenv("BOT_DIR"); dir != "" {
		if err := run(dir, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// process is a bot that runs.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, dir string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BOT_DIR="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t, cmd, in, bufio.NewReader(out)}
	t.Cleanup(p.kill)
	return p
}

// kill ends the process as a crash would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
}

// says sends a message and compares the answer.
func (p *process) says(key, text, want string) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, "%s\t%s\n", key, text); err != nil {
		p.t.Fatal(err)
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	if line = strings.TrimSuffix(line, "\n"); line != key+"\t"+want {
		p.t.Errorf("%q is answered with %q, want %q", text, line, want)
	}
}

// TestBotSurvivesKills: every answer that was given is remembered.
func TestBotSurvivesKills(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "chats")
	const a, b = "telegram:1", "discord:2"
	p := start(t, dir)
	p.says(a, "hello", "You said: hello")
	p.says(a, "add 2 3", "The sum is 5.")
	p.says(b, "hi", "You said: hi")
	p.kill()
	p = start(t, dir)
	p.says(a, "/history", `6 messages, summary: ""`)
	p.says(b, "/history", `2 messages, summary: ""`)
	p.says(a, "add 1 x", `The sum is not a number: "x".`)
	for i := range 10 {
		p.says(a, fmt.Sprint("word ", i), fmt.Sprint("You said: word ", i))
	}
	p.kill()
	p = start(t, dir)
	p.says(a, "/rename telegram:9", "This is telegram:9 now.")
	p.says(a, "/history", `0 messages, summary: ""`)
	p.says(b, "/forget", "Forgotten.")
	p.kill()
	p = start(t, dir)
	p.says(b, "/history", `0 messages, summary: ""`)
	p.says("telegram:9", "still there?", "You said: still there?")
	p.in.Close() // an orderly end
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}

	sm := keyed.NewSessionManager(dir)
	defer sm.Close()
	if s := sm.GetSummary("telegram:9"); !strings.HasPrefix(s, "The user said ") {
		t.Errorf("the summary is %q", s)
	}
	all, err := sm.History("telegram:9", keyed.All)
	if err != nil || len(all) != 32 {
		t.Errorf("%d messages, %v, want 32", len(all), err)
	}
}

// TestBotKilledWhileAToolRuns: the model is told that the call was interrupted.
func TestBotKilledWhileAToolRuns(t *testing.T) {
	dir := t.TempDir()
	sm := keyed.NewSessionManager(dir)
	sm.AddMessage("k", "user", "add 2 2")
	sm.AddFullMessage("k", parrot{}.reply(sm.GetHistory("k"))) // and then the power went
	if err := sm.Close(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(dir, strings.NewReader("k\tare you there?\nno tab\n"), &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != "k\tYou said: are you there?\n" {
		t.Errorf("the answer is %q", out.String())
	}
	sm = keyed.NewSessionManager(dir)
	defer sm.Close()
	context, err := sm.BuildContext("k", "", "")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range context {
		if len(m.ToolCalls) > 0 && context[i+1].ToolCallID != m.ToolCalls[0].ID {
			t.Errorf("the call is followed by %+v", context[i+1])
		}
	}
}
