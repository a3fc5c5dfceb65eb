package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// TestMain is the bot itself when a test starts it.
func TestMain(m *testing.M) {
	if dir := os.Getenv("BOT_DIR"); dir != "" {
		if err := run(context.Background(), dir, os.Stdin, os.Stdout); err != nil {
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

// TestBotSurvivesKills: every answer that was given is remembered, and the chats do not
// mix.
func TestBotSurvivesKills(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "chats")
	const a, b = "telegram-1", "discord-2"
	p := start(t, dir)
	p.says(a, "hello", "You said: hello")
	p.says(a, `call add {"A":2,"B":3}`, "add answered: 5")
	p.says(b, "hi", "You said: hi")
	p.kill()
	p = start(t, dir)
	p.says(a, `call add {"A":1,"B":1}`, "add answered: 2")
	p.says(b, "again", "You said: again")
	p.kill()

	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for chat, want := range map[string]int{a: 11, b: 5} {
		s, err := session.Open(t.Context(), st, chat, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.MessageCount(); n != want || err != nil {
			t.Errorf("%s has %d messages, %v, want %d", chat, n, err, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBotGoesOnAfterABadLine: a message that cannot be answered does not end the bot.
func TestBotGoesOnAfterABadLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), t.TempDir()+"/chats", strings.NewReader("no tab\n../x\thi\nk\thi\n"), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 4 || !strings.Contains(lines[0], "Sorry: ") || !strings.Contains(lines[1], "Sorry: ") || lines[2] != "k\tYou said: hi" {
		t.Errorf("the answers are %q", lines)
	}
}
