package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/term"

	"github.com/coppice-dev/coppice/render/plain"
)

// page writes something long through a pager if a person reads it, and otherwise
// straight to standard output.
func (a *app) page(write func(w io.Writer) error) error {
	pager := a.pager()
	if pager == nil {
		return write(a.out)
	}
	in, err := pager.StdinPipe()
	if err != nil {
		return write(a.out)
	}
	pager.Stdout, pager.Stderr = a.screen, os.Stderr
	if err := pager.Start(); err != nil {
		return write(a.out)
	}
	// What was said in a session must not act on the terminal, pager or not.
	out := plain.NewWriter(in)
	err = write(out)
	if err == nil {
		err = out.Flush()
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		err = nil // they have read enough
	}
	return errors.Join(err, in.Close(), ignoreExit(pager.Wait()))
}

// pager returns the user's pager, or nil if there is none to use: standard input
// or output is no terminal, or they want none.
func (a *app) pager() *exec.Cmd {
	in, ok := a.stdin.(*os.File)
	if a.screen == nil || !ok || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	command := a.getenv("COPPICE_PAGER")
	if command == "" {
		command = a.getenv("PAGER")
	}
	if command == "" {
		if _, err := exec.LookPath("less"); err != nil {
			return nil
		}
		command = "less"
	}
	if command == "cat" {
		return nil
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = os.Environ()
	if a.getenv("LESS") == "" {
		// Leave at once if it fits the screen, keep our colours, do not clear.
		cmd.Env = append(cmd.Env, "LESS=FRX")
	}
	return cmd
}

// ignoreExit drops the exit code of a pager, which says nothing about us.
func ignoreExit(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}
