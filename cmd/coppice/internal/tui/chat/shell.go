package chat

import (
	"context"
	"errors"
	"strings"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
)

// shellIn returns the command of the person that a text is: !command, which the model is told
// about, or !!command, which it is not. Text of several lines is none.
func shellIn(text string) (command string, tell, ok bool) {
	command, ok = strings.CutPrefix(text, "!")
	ok = ok && !strings.Contains(text, "\n")
	command, quiet := strings.CutPrefix(command, "!")
	command = strings.TrimSpace(command)
	return command, !quiet, ok && command != ""
}

// maxShell is how many rows of what a command of the person prints stay on the screen.
const maxShell = 500

// shell runs a command of the person, and adds it to the conversation.
func (u *ui) shell(ctx context.Context, command string, tell bool) {
	var result agent.Result
	j := u.work(ctx, func(ctx context.Context, tell func(home.TurnEvent) error) (err error) {
		watched := agent.WithProgress(ctx, func(text string) {
			_ = tell(home.TurnEvent{Event: agent.Event{Type: agent.ToolUpdate, Text: text}})
		})
		result, err = u.chat.Shell(watched, command)
		return err
	}, func(err error) {
		if err != nil && !errors.Is(err, context.Canceled) {
			u.fail(err)
			return
		}
		u.showOutput(result)
		if !tell {
			return
		}
		if err := u.chat.Told(ctx, command, result.Text); err != nil {
			u.fail(err)
			return
		}
		u.note("  the model sees this with your next message")
	})
	j.silent, j.view.doing = true, "running "+render.OneLine(command, 40)
}

func (u *ui) cmdOutput(context.Context, string) error {
	if u.result == nil {
		u.note("  no call has ended yet")
		return nil
	}
	u.showOutput(agent.Result{Text: resultText(u.result), IsError: u.result.IsError})
	return nil
}

// showOutput prints all that a command printed, unless it is very long.
func (u *ui) showOutput(result agent.Result) {
	s := u.style()
	rows := 0
	for line := range strings.SplitSeq(strings.Trim(plain.Text(result.Text), "\n"), "\n") {
		if rows++; rows > maxShell {
			u.note("  │ … the rest is not shown")
			return
		}
		c := terminal.Colour("")
		if result.IsError {
			c = terminal.Red
		}
		u.print(wrapped(line, c, s)...)
	}
}
