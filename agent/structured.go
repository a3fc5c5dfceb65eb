package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// answerName is the tool with which a model gives a structured answer.
const answerName = "answer"

// maxReminders is how often a model is reminded of a missing answer.
const maxReminders = 2

// Answer is Agent.Send for an answer that is a struct. The model gives it by calling a tool
// named answer, which every provider supports; the schema follows from T as in NewTool. If
// the answer does not fit, the model learns why; a model that ends its turn without an answer
// is reminded, at most twice. If there is still no answer, Answer returns an error. If the
// turn is interrupted, or waits for approval, ResumeAnswer finishes it.
func Answer[T any](ctx context.Context, a *Agent, content ...session.Content) (T, *Outcome, error) {
	if err := checkPrompt(content); err != nil {
		return *new(T), nil, err
	}
	return answer[T](ctx, a, func(t *turn) ([]Pending, bool, error) { return nil, true, t.prompt(content) })
}

// ResumeAnswer is Agent.Resume for a turn that Answer began: it offers the tool for the
// answer again.
func ResumeAnswer[T any](ctx context.Context, a *Agent) (T, *Outcome, error) {
	return answer[T](ctx, a, (*turn).restore)
}

// answer takes a turn that ends with an answer. begin returns the calls that have no result yet,
// and whether there is anything to do.
func answer[T any](ctx context.Context, a *Agent, begin func(*turn) ([]Pending, bool, error)) (T, *Outcome, error) {
	var given *T
	tool, err := NewTool(answerName, "Gives the final answer to the user. Call it once, when you know the answer, and say nothing more after it.",
		func(_ context.Context, _ Call, in T) (Result, error) {
			given = &in
			return Result{Text: "[taken]"}, nil
		})
	if err != nil {
		return *new(T), nil, err
	}
	tool.Repeatable, tool.Alone = true, true
	out, err := a.takeTurn(ctx, func(t *turn) error {
		if err := t.addTool(&tool); err != nil {
			return err
		}
		pending, open, err := begin(t)
		if err != nil || !open {
			return err
		}
		return t.runUntil(pending, func() bool { return given != nil })
	})
	switch {
	case err != nil:
	case given == nil:
		err = fmt.Errorf("the model gave no fitting answer: its turn ended with %q", out.Stop)
	default:
		return *given, out, nil
	}
	return *new(T), out, err
}

// addTool offers the model another tool in this turn.
func (t *turn) addTool(tool *Tool) error {
	t.opts.Tools = append(slices.Clone(t.opts.Tools), *tool)
	if err := checkTools(t.opts.Tools); err != nil {
		return err
	}
	t.tools[tool.Name] = tool
	t.useOptions()
	return nil
}

// runUntil runs a turn, and reminds the model of its answer as long as it has given none.
func (t *turn) runUntil(pending []Pending, given func() bool) error {
	for reminders := 0; ; reminders++ {
		err := t.run(pending)
		if err != nil || given() || t.out.Why != "" || t.out.Stop == StopApproval || reminders == maxReminders {
			return err
		}
		pending = nil
		t.openQueue(true)
		reminder := session.Message(session.RoleUser, session.Text("The answer is missing: call the tool "+answerName+" with it."))
		reminder.Message.Metadata = map[string]any{session.MetaInjected: "agent"}
		if _, err := t.append(reminder); err != nil {
			return err
		}
	}
}
