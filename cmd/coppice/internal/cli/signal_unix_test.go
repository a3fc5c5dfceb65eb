//go:build unix

package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// started is a program that runs.
type started struct {
	*exec.Cmd
	t     *testing.T
	in    io.WriteCloser
	lines *bufio.Scanner
	ended chan error
}

func start(t *testing.T, name string, args ...string) *started {
	t.Helper()
	cmd := exec.Command(name, args...)
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
	p := &started{cmd, t, in, bufio.NewScanner(out), make(chan error, 1)}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return p
}

// says waits for the next line of output.
func (p *started) says(want string) {
	p.t.Helper()
	if !p.lines.Scan() || !strings.Contains(p.lines.Text(), want) {
		p.t.Fatalf("it says %q, want %q", p.lines.Text(), want)
	}
}

func (p *started) send(sig os.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits until the program ends, and checks its exit code.
func (p *started) ends(want int) {
	p.t.Helper()
	go func() { p.ended <- p.Wait() }()
	select {
	case err := <-p.ended:
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != want {
			p.t.Errorf("it ended with %v, want exit code %d", err, want)
		}
	case <-time.After(2 * time.Minute):
		p.t.Error("it does not end")
	}
}

func TestSecondSignalEndsWhatComputes(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]os.Signal{{os.Interrupt, os.Interrupt}, {syscall.SIGTERM, os.Interrupt}, {os.Interrupt, syscall.SIGTERM}} {
		p := start(t, "coppice-stubborn")
		p.says("computing")
		p.send(pair[0])
		p.says("still computing")
		p.send(pair[1])
		p.ends(exitInterrupted)
	}
}

// Two signals that come together are two.
func TestSignalsThatComeTogether(t *testing.T) {
	t.Parallel()
	p := start(t, "coppice-stubborn")
	p.says("computing")
	p.send(os.Interrupt)
	p.send(syscall.SIGTERM) // two of one kind may become one on the way
	p.ends(exitInterrupted)
}

func TestSecondSignalEndsWhatWaits(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sessions")
	s, err := session.New(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("hello")}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	p := start(t, "coppice", "--dir", dir, "append", s.ID(), "--role", "user", "-")
	if _, err := io.WriteString(p.in, strings.Repeat("more than a pipe holds ", 20_000)); err != nil { // now it reads
		t.Fatal(err)
	}
	p.send(os.Interrupt)
	p.send(syscall.SIGTERM)
	p.ends(exitInterrupted)

	p = start(t, "coppice", "--dir", dir, "follow", s.ID(), "--last", "1")
	p.says("hello")
	p.send(os.Interrupt) // one is enough for what looks after it
	p.ends(exitInterrupted)
}
