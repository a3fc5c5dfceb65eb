package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// following is a program that runs and whose lines can be read one by one.
type following struct {
	t     *testing.T
	lines chan string
	talk  bytes.Buffer // complete once it has ended
	code  chan int
	stop  context.CancelFunc
}

// run starts the program with a directory of sessions.
func runProgram(t *testing.T, dir string, args ...string) *following {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	env := map[string]string{"COPPICE_HOME": dir, "HOME": t.TempDir()}
	getenv := func(name string) string { return env[name] }
	f := &following{t: t, lines: make(chan string, 100), code: make(chan int, 1), stop: stop}
	a := &app{talk: newTalk(w, &f.talk, getenv), stdin: strings.NewReader(""), getenv: getenv}
	go func() {
		f.code <- a.run(ctx, args)
		w.Close()
	}()
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			f.lines <- s.Text()
		}
	}()
	t.Cleanup(stop)
	return f
}

func (f *following) next() string {
	f.t.Helper()
	select {
	case line := <-f.lines:
		return line
	case <-time.After(time.Minute):
		f.t.Fatal("no line came")
		return ""
	}
}

// interrupted ends the program and checks how it ended.
func (f *following) interrupted() {
	f.t.Helper()
	f.stop()
	select {
	case code := <-f.code:
		if code != exitInterrupted {
			f.t.Errorf("exit code %d, want %d", code, exitInterrupted)
		}
		if talk := f.talk.String(); strings.Contains(talk, "cancel") {
			f.t.Errorf("an interrupt is reported: %s", talk)
		}
	case <-time.After(time.Minute):
		f.t.Fatal("it did not end")
	}
}

func say(t *testing.T, s *session.Session, text string) string {
	t.Helper()
	id, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func newSession(t *testing.T, dir string) *session.Session {
	t.Helper()
	s, err := session.New(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestFollowOne(t *testing.T) {
	dir := t.TempDir()
	s := newSession(t, dir)
	say(t, s, "too early")
	say(t, s, "first")
	f := runProgram(t, dir, "follow", s.ID(), "--last", "1")
	if line := f.next(); !strings.HasSuffix(line, "  user        first") {
		t.Errorf("last: %q", line)
	}
	say(t, s, "second\nline")
	if line := f.next(); !strings.HasSuffix(line, "  user        second line") {
		t.Errorf("new: %q", line)
	}
	f.interrupted()
}

func TestFollowOneAsJSON(t *testing.T) {
	dir := t.TempDir()
	s := newSession(t, dir)
	id := say(t, s, "first")
	f := runProgram(t, dir, "follow", s.ID(), "--last", "9", "--json")
	var got struct {
		Session string        `json:"session"`
		Entry   session.Entry `json:"entry"`
	}
	if err := json.Unmarshal([]byte(f.next()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Session != s.ID() || got.Entry.ID != id || got.Entry.Message.Role != "user" {
		t.Errorf("got %+v", got)
	}
	f.interrupted()
}

func TestFollowAllSeesNewSessions(t *testing.T) {
	dir := t.TempDir()
	old := newSession(t, dir)
	say(t, old, "before")
	f := runProgram(t, dir, "follow", "--all", "--last", "5")
	if line := f.next(); !strings.HasSuffix(line, "  user        before") {
		t.Errorf("last: %q", line)
	}
	say(t, old, "to the old one")
	if line := f.next(); !strings.HasSuffix(line, "  user        to the old one") {
		t.Errorf("old: %q", line)
	}
	s := newSession(t, dir)
	say(t, s, "to the new one")
	if line := f.next(); !strings.HasSuffix(line, render.ShortID(s.ID())+"  user        to the new one") {
		t.Errorf("new: %q", line)
	}
	f.interrupted()
}

func TestFollowEndsWithTheSession(t *testing.T) {
	dir := t.TempDir()
	s := newSession(t, dir)
	say(t, s, "hello")
	f := runProgram(t, dir, "follow", s.ID(), "--last", "1")
	f.next()
	s.Close()
	if err := os.Remove(filepath.Join(dir, s.ID()+".jsonl")); err != nil {
		t.Skip(err) // Windows keeps files that are open
	}
	select {
	case code := <-f.code:
		if code != exitNotFound {
			t.Errorf("exit code %d, want %d", code, exitNotFound)
		}
	case <-time.After(time.Minute):
		t.Fatal("it did not end")
	}
}

// TestExitCodes has what a script of shell commands cannot see: the numbers.
func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	s := newSession(t, dir)
	say(t, s, "hello")
	for name, text := range map[string]string{"twin-0001": "", "twin-0002": "", "broken": "nothing\n"} {
		if err := os.WriteFile(filepath.Join(dir, name+".jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		args string
		want int
	}{
		{"show " + s.ID(), exitOK},
		{"show unknown", exitNotFound},
		{"show twin", exitUsage},
		{"show broken", exitCorrupt},
		{"tree broken", exitCorrupt},
		{"export broken --format html", exitCorrupt},
		{"context broken", exitCorrupt},
		{"show", exitUsage},
		{"show --what", exitUsage},
		{"follow", exitUsage},
		{"follow --all x", exitUsage},
		{"follow --all --last -1", exitUsage},
		{"append " + s.ID() + " --entry {", exitUsage},
		{"show --dir /nowhere/at/all x", exitNotFound},
	} {
		f := runProgram(t, dir, strings.Fields(test.args)...)
		if code := <-f.code; code != test.want {
			t.Errorf("coppice %s: exit code %d, want %d", test.args, code, test.want)
		}
	}
}
