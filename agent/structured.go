package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// answerName is the tool with which a model gives a structured answer.
const answerName = "answer"

// maxReminders is how often a model is reminded of a missing answer, and maxMisfits how many
// answers it may give that do not fit.
const (
	maxReminders = 2
	maxMisfits   = 3
)

// Answer is Agent.Send for an answer that is a struct. The model gives it by calling a tool
// named answer, which every provider supports; the schema follows from T as in NewTool. The
// turn ends with it. If the answer does not fit, the model learns why, and tries again, twice
// at most; a model that ends its turn without an answer is reminded, at most twice. If there
// is still no answer, Answer returns an error. If the turn is interrupted, or waits for
// approval, ResumeAnswer finishes it.
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
	isNew := false
	tool, err := NewTool(answerName, "Gives the final answer to the user. Call it once, when you know the answer, and say nothing more after it.",
		func(_ context.Context, _ Call, in T) (Result, error) {
			given, isNew = &in, true
			return Result{Text: "[taken]", endsTurn: true}, nil
		})
	if err != nil {
		return *new(T), nil, err
	}
	tool.Repeatable, tool.Alone = true, true
	misfits, refusal := 0, ""
	out, err := a.runTurn(ctx, func(t *turn) error {
		if err := t.addTool(&tool); err != nil {
			return err
		}
		pending, open, err := begin(t)
		if err != nil || !open {
			return err
		}
		t.isOver = func(done []Pending) bool {
			if isNew {
				isNew = false
				return true
			}
			if i := slices.IndexFunc(done, func(p Pending) bool { return p.Name == answerName }); i >= 0 {
				misfits, refusal = misfits+1, t.resultOf(&done[i])
			}
			return misfits >= maxMisfits
		}
		return t.runUntil(pending, func() bool { return given != nil || misfits >= maxMisfits })
	})
	switch {
	case err != nil:
	case given == nil && misfits >= maxMisfits:
		err = fmt.Errorf("the model gave %d answers that do not fit; the last one: %s", misfits, refusal)
	case given == nil:
		err = fmt.Errorf("the model gave no fitting answer: its turn ended with %q", out.Stop)
	default:
		return *given, out, nil
	}
	return *new(T), out, err
}

// resultOf returns the result of a call as the model read it, or "" if it cannot be read.
func (t *turn) resultOf(p *Pending) string {
	for e, err := range t.s.Path("") {
		if err != nil || e.ID == p.Entry {
			break
		}
		if e.Message == nil {
			continue
		}
		for i := range e.Message.Content {
			if r := e.Message.Content[i].ToolResult; r != nil && r.ToolUseID == p.ID {
				return r.Content
			}
		}
	}
	return ""
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

// runUntil runs a turn, and reminds the model of its answer until it is done.
func (t *turn) runUntil(pending []Pending, isDone func() bool) error {
	for reminders := 0; ; reminders++ {
		err := t.run(pending)
		if err != nil || isDone() || t.out.Why != "" || t.out.Stop == StopApproval || reminders == maxReminders {
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
