package app

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// talk gives a program the terminal until it ends, and comes back.
func (a *App) talk(c *exec.Cmd) tea.Cmd {
	return tea.Exec(&borrower{Cmd: c}, func(err error) tea.Msg {
		if err != nil {
			return err
		}
		return done{what: "ran coppice " + strings.Join(c.Args[1:], " "), silent: true, why: "what another program did is not undone here"}
	})
}

// borrower is a program that has the terminal for itself. What it says on standard error is gone
// from the screen when it has ended, so the end of that is kept.
type borrower struct {
	*exec.Cmd
	said tail
}

// SetStdin implements tea.ExecCommand.
func (b *borrower) SetStdin(r io.Reader) { b.Stdin = r }

// SetStdout implements tea.ExecCommand.
func (b *borrower) SetStdout(w io.Writer) { b.Stdout = w }

// SetStderr implements tea.ExecCommand.
func (b *borrower) SetStderr(w io.Writer) { b.Stderr = io.MultiWriter(w, &b.said) }

// interruptedCode is how a program ends that was interrupted, as shells have it.
const interruptedCode = 130

// Run implements tea.ExecCommand. An interrupt is the way to end some programs, and no failure.
func (b *borrower) Run() error {
	b.WaitDelay = time.Second // something that it has left behind may hold its standard error
	err := b.Cmd.Run()
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	case failed && (exit.ExitCode() == interruptedCode || exit.String() == "signal: interrupt"):
		return nil
	case failed:
		if why := reason(string(b.said)); why != "" {
			err = errors.New(why)
		}
	}
	return errors.New(b.Args[min(1, len(b.Args)-1)] + ": " + err.Error())
}

// reason returns why a program failed, from the end of what it said: its last error with the hint,
// or else the last line.
func reason(said string) (why string) {
	for line := range strings.Lines(ansi.Strip(said)) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "coppice: "); ok {
			why = text
		} else if hint, ok := strings.CutPrefix(line, "hint: "); ok && why != "" {
			why += "; " + hint
		} else if line != "" {
			why = line
		}
	}
	return why
}

// tail is the end of what was written.
type tail []byte

const maxTail = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	all := append(*t, p...)
	*t = bytes.Clone(all[max(len(all)-maxTail, 0):])
	return len(p), nil
}
