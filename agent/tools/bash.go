package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/internal/process"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/window"
)

const (
	// leftTime is how long to wait for the rest of the output once a command has ended.
	leftTime = time.Second
	// reportTime is how often the output of a running command is shown, and maxReport how
	// many bytes of its end.
	reportTime = 100 * time.Millisecond
	maxReport  = 4 << 10
)

var (
	errTimeout = errors.New("it took too long")
	errNoShell = errors.New("there is no bash on this machine; on Windows, install Git for Windows, which has one")
)

type bashInput struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"seconds"`
}

func (k *toolset) bash() (agent.Tool, error) {
	longest := int(k.MaxTimeout / time.Second)
	t, err := agent.NewTool(Bash, fmt.Sprintf("Run a command with bash in the working directory. There is no terminal and no input. Returns what it prints, "+
		"up to %s: the middle of a longer output is left out. It may take %d seconds, or as many as timeout says, up to %d. What it leaves running in the background is ended.",
		size(int64(k.MaxOutput)), int(k.Timeout/time.Second), longest),
		func(ctx context.Context, call agent.Call, in bashInput) (agent.Result, error) {
			if err := k.checkCommand(call); err != nil {
				return refused(err)
			}
			return k.runCommand(ctx, in.Command, cmp.Or(time.Duration(in.Timeout)*time.Second, k.Timeout))
		})
	t.Alone = true
	t.Timeout = k.MaxTimeout + k.Grace + 10*time.Second // the command's own timeout should come first
	t.Check = k.checkCommand
	t.Ask = func(call agent.Call) (bool, string) { return commandOf(call) != "", "" }
	return t, err
}

// checkCommand returns why a call cannot run.
func (k *toolset) checkCommand(call agent.Call) error {
	in, err := agent.Arguments[bashInput](call.Input)
	if err == nil {
		err = words("command", in.Command)
	}
	if err == nil {
		_, err = number("timeout", in.Timeout, 0, int(k.MaxTimeout/time.Second))
	}
	if err == nil && k.shell == "" {
		err = errNoShell
	}
	return err
}

// commandOf returns the command line of a call, or "" if it cannot run.
func commandOf(call agent.Call) string {
	in, err := agent.Arguments[bashInput](call.Input)
	if err != nil || words("command", in.Command) != nil {
		return ""
	}
	return in.Command
}

func (k *toolset) runCommand(ctx context.Context, command string, timeout time.Duration) (agent.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	out := newClipped(k.MaxOutput)
	show := func() string { return plain.Strip(strings.ToValidUTF8(out.String(), "\uFFFD")) }
	stop := report(ctx, out, show)
	err := k.execute(ctx, exec.Command(k.shell, "-c", "--", command), out)
	stop()
	text := show()
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	var exit *exec.ExitError
	cause := ended(ctx)
	switch {
	case cause != nil && err != nil && errors.Is(cause, errTimeout):
		text += fmt.Sprintf("[ended after %s because it took too long: give it more time by timeout, up to %d]", timeout, int(k.MaxTimeout/time.Second))
	case cause != nil && err != nil:
		text += fmt.Sprintf("[ended before it was done: %v]", cause)
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		text += fmt.Sprintf("[exit code %d]", exit.ExitCode())
	case err != nil: // killed by a signal, or it never started
		text += fmt.Sprintf("[%v]", err)
	case text == "":
		text = "[no output]"
	}
	return agent.Result{Text: text, IsError: err != nil}, nil
}

// report shows the output of a command while it runs. The returned function stops it.
func report(ctx context.Context, out *clipped, show func() string) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(reportTime)
		defer tick.Stop()
		var told int64
		for {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			if n := out.written(); n > told {
				text := show()
				_, text = window.Ends(text, 0, min(len(text), maxReport))
				told = n
				agent.Progress(ctx, text)
			}
		}
	}()
	return func() { close(end); <-ended }
}

// execute runs a command, with everything it starts, until it ends or ctx does.
//
// The output goes through our own pipe. With one of exec.Cmd, Wait would block until
// the last background process closes it.
func (k *toolset) execute(ctx context.Context, cmd *exec.Cmd, out io.Writer) error {
	if err := ended(ctx); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = k.dir.path, k.Env, w, w
	g := process.NewGroup(cmd)
	g.EndWithParent()
	started, exited := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // see EndWithParent
		defer runtime.UnlockOSThread()
		err := g.Start()
		started <- err
		if err == nil {
			exited <- cmd.Wait()
		}
	}()
	err = <-started
	w.Close()
	if err != nil {
		return err
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(out, r)
	}()
	select {
	case err = <-exited:
	case <-ctx.Done():
		g.End()
		select {
		case err = <-exited:
		case <-time.After(k.Grace):
			g.Kill()
			err = <-exited
		}
		err = cmp.Or(err, ended(ctx))
	}
	g.Kill() // the processes it left behind
	select {
	case <-copied:
	case <-time.After(leftTime): // an escaped process still holds the output open
		_ = r.Close()
		<-copied
	}
	return err
}

// quiet is the environment that keeps programs from waiting for input.
var quiet = []string{"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true"}

func findShell() string {
	for _, name := range []string{"bash", "sh"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
