package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/session"
)

// person is somebody at a terminal in which the UI runs.
type person struct {
	*testing.T
	master *os.File
	output chan string
	seen   string // since the last key
	cmd    *exec.Cmd

	temporary string // where it puts files that it needs for a while
}

// sitDown opens the UI in a terminal of its own.
func sitDown(t *testing.T, dir string) *person {
	t.Helper()
	return sitDownAs(t, t.TempDir(), dir)
}

// sitDownAs is sitDown for somebody who has a home directory.
func sitDownAs(t *testing.T, user, dir string) *person {
	t.Helper()
	slave, master := openTerminal(t)
	temporary := t.TempDir()
	cmd := exec.Command("coppice")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Env = append(os.Environ(), "COPPICE_HOME="+dir, "HOME="+user, "TERM=xterm-256color",
		"TMPDIR="+temporary, `EDITOR=printf "an editor shows "; cat`, "VISUAL=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	p := &person{T: t, master: master, output: make(chan string), cmd: cmd, temporary: temporary}
	t.Cleanup(func() { _ = cmd.Process.Kill(); master.Close() })
	go func() {
		defer close(p.output)
		buf := make([]byte, 32<<10)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return // the other end is closed
			}
			select {
			case p.output <- string(buf[:n]):
			case <-t.Context().Done():
				return
			}
		}
	}()
	return p
}

func (p *person) types(keys string) {
	p.Helper()
	p.seen = ""
	if _, err := p.master.WriteString(keys); err != nil {
		p.Fatal(err)
	}
}

func (p *person) sees(text string) {
	p.Helper()
	late := time.After(time.Minute)
	for !strings.Contains(ansi.Strip(p.seen), text) {
		select {
		case more, ok := <-p.output:
			if !ok {
				p.Fatalf("it ended without %q: %q", text, ansi.Strip(p.seen))
			}
			p.seen += more
		case <-late:
			p.Fatalf("it does not show %q: %q", text, ansi.Strip(p.seen))
		}
	}
}

// TestProgramsOfTheUI gives commands the terminal: an interrupt ends the command only, and one that
// fails says why.
func TestProgramsOfTheUI(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sessions")
	s, err := session.New(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("Which trees?")}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	p := sitDown(t, dir)
	p.sees("Which trees?")
	p.types(":follow %\r")
	p.sees("following “Which trees?”; Ctrl-C ends it")
	p.types("\x03")
	p.sees("all keys")
	p.types(":follow nowhere\r")
	p.sees(`follow: no such session: "nowhere"`)
	p.types("Oe")
	p.sees("an editor shows # Which trees?")
	p.sees("all keys")
	p.types("q")
	for more := range p.output {
		p.seen += more
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v: %q", err, ansi.Strip(p.seen))
	}
	if left, err := os.ReadDir(p.temporary); err != nil || len(left) > 0 {
		t.Errorf("the editor's copy is still there: %v, %v", left, err)
	}
}

// TestAgentsAreAskedAboutOnce: a person who has never imported anything of an agent is asked, and the
// answer is remembered. Then its sessions appear by themselves.
func TestAgentsAreAskedAboutOnce(t *testing.T) {
	t.Parallel()
	for answer, follows := range map[string]bool{"y": true, "n": false} {
		user := t.TempDir()
		dir, projects := filepath.Join(user, "sessions"), filepath.Join(user, ".claude", "projects", "-w")
		s, err := session.New(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("Which trees?")}); err != nil {
			t.Fatal(err)
		}
		s.Close()
		begins := func(n, text string) {
			t.Helper()
			line := `{"type":"user","uuid":"` + n + `","parentUuid":null,"sessionId":"` + n + `","cwd":"/w","version":"2.0.0","timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"` + text + `"}}` + "\n"
			if err := os.WriteFile(filepath.Join(projects, n+".jsonl"), []byte(line), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(projects, 0o700); err != nil {
			t.Fatal(err)
		}
		begins("00000001-4d57-4a54-9be1-3f6b1b2f6f10", "Prune the hazel")
		p := sitDownAs(t, user, dir)
		p.sees("Claude Code has 1 file.")
		p.sees("Import them, now and from now on? [y/N]")
		p.types(answer + "\r")
		p.sees("Which trees?")
		if follows {
			p.sees("Prune the hazel")
		}
		p.types("q")
		for more := range p.output {
			p.seen += more
		}
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("%v: %q", err, ansi.Strip(p.seen))
		}
		p = sitDownAs(t, user, dir)
		p.sees("Which trees?")
		if asked := strings.Contains(p.seen, "[y/N]"); asked {
			t.Errorf("%q: it asks again", answer)
		}
		begins("00000002-4d57-4a54-9be1-3f6b1b2f6f10", "Water the fern")
		if follows {
			p.sees("Water the fern")
		}
		p.types("q")
		for more := range p.output {
			p.seen += more
		}
		if !follows && strings.Contains(ansi.Strip(p.seen), "hazel") {
			t.Error("the answer was no, and the sessions are there")
		}
	}
}
