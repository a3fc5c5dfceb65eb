package cli

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/coppice-dev/coppice/render/plain"
)

// pagedCommands are those that print for a reader. What is longer than the screen goes
// through a pager.
var pagedCommands = []string{
	"ls", "search", "stats", "show", "tree", "context", "compare", "images", "tag", "fsck", "resume",
	"config", "config show", "trash", "trash ls",
}

// pageLong makes the commands that print for a reader use a pager.
func (a *app) pageLong(root *cobra.Command) {
	for _, path := range pagedCommands {
		cmd, _, err := root.Find(strings.Fields(path))
		if err != nil || cmd.RunE == nil {
			continue
		}
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			return a.paged(func() error { return run(cmd, args) })
		}
	}
}

// paged runs something whose output a person reads, through a pager if it is longer than
// the screen. Talk that comes after the first line of output waits until the reader has
// seen the output, so that neither garbles the other.
func (a *app) paged(run func() error) error {
	command := a.pagerCommand()
	if command == "" {
		return run()
	}
	_, rows, err := term.GetSize(int(a.screen.Fd()))
	if err != nil || rows <= 0 {
		return run()
	}
	p := &pager{command: command, env: a.getenv, screen: a.screen, rows: rows - 1, columns: a.width()}
	out, data, talk := a.out, a.data, a.err
	a.out, a.data, a.err = plain.NewWriter(p), p, plain.NewWriter(heldTalk{p, a.words})
	err = run()
	err = errors.Join(err, a.out.Flush(), a.err.Flush())
	a.out, a.data, a.err = out, data, talk
	err = errors.Join(err, p.close())
	_, _ = a.words.Write(p.talk)
	return err
}

// pager shows the output of a command. It holds the output back until there is more of it
// than the screen has rows, and only then starts the reader's program.
type pager struct {
	command       string
	env           func(string) string
	screen        *os.File
	rows, columns int

	held    bytes.Buffer
	used    int // how many rows held takes
	talk    []byte
	program *exec.Cmd      // once it runs
	in      io.WriteCloser // its standard input
	left    bool           // the reader has seen enough
}

// Write never fails because the reader left: who has seen enough does not want an error for it,
// and the command may still have something to do.
func (p *pager) Write(b []byte) (int, error) {
	if p.program == nil {
		p.held.Write(b)
		for line := range bytes.Lines(b) {
			p.used += 1 + ansi.StringWidth(string(line))/max(p.columns, 1)
		}
		if p.used <= p.rows || p.start() != nil {
			return len(b), nil
		}
		b = p.held.Bytes()
	}
	if !p.left {
		if _, err := p.in.Write(b); errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
			p.left = true
		} else if err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// start starts the reader's program. Should that fail, everything goes to the screen.
func (p *pager) start() error {
	cmd := exec.Command("sh", "-c", p.command)
	cmd.Env = os.Environ()
	if p.env("LESS") == "" {
		// Leave at once if it fits the screen, keep our colours, do not clear.
		cmd.Env = append(cmd.Env, "LESS=FRX")
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		cmd.Stdout, cmd.Stderr = p.screen, os.Stderr
		err = cmd.Start()
	}
	if err != nil {
		p.rows = int(^uint(0) >> 1) // do not try again
		return err
	}
	p.program, p.in = cmd, in
	return nil
}

// close shows what was held back, or waits until the reader is done.
func (p *pager) close() error {
	if p.program == nil {
		_, err := p.screen.Write(p.held.Bytes())
		return err
	}
	err := p.in.Close()
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return errors.Join(err, ignoreExit(p.program.Wait()))
}

// heldTalk passes talk on as long as there is no output that it belongs behind.
type heldTalk struct {
	pager *pager
	to    io.Writer
}

// Write holds talk back once there is output.
func (h heldTalk) Write(b []byte) (int, error) {
	if h.pager.program == nil && h.pager.held.Len() == 0 {
		return h.to.Write(b)
	}
	h.pager.talk = append(h.pager.talk, b...)
	return len(b), nil
}

// pagerCommand returns the user's pager, or "" if there is none to use: standard input
// or output is no terminal, or they want none.
func (a *app) pagerCommand() string {
	if a.screen == nil || terminalOf(a.stdin) == nil {
		return ""
	}
	command := cmp.Or(a.getenv("COPPICE_PAGER"), a.getenv("PAGER"))
	if command == "" {
		if _, err := exec.LookPath("less"); err != nil {
			return ""
		}
		command = "less"
	}
	if slices.Contains([]string{"cat", "off", "false"}, command) {
		return ""
	}
	return command
}

// ignoreExit drops the exit code of a pager, which says nothing about us.
func ignoreExit(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}
