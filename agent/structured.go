package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// answerName is the tool with which a model gives a structured answer.
const answerName = "answer"

// maxReminders is how often a model is told that its answer is missing.
const maxReminders = 2

// Answer is Agent.Send for an answer that is a struct. The model gives it by calling a tool
// named answer, which every provider supports; the schema follows from T as in NewTool. What
// does not fit is told to the model, and a model that ends its turn without an answer is
// reminded, twice at most. If there is none even then, the error says so.
func Answer[T any](ctx context.Context, a *Agent, content ...session.Content) (T, *Outcome, error) {
	var given *T
	tool, err := NewTool(answerName, "Gives the final answer to the user. Call it once, when you know the answer, and say nothing more after it.",
		func(_ context.Context, _ Call, in T) (Result, error) {
			given = &in
			return Result{Text: "[taken]"}, nil
		})
	if err == nil {
		err = checkPrompt(content)
	}
	if err != nil {
		return *new(T), nil, err
	}
	tool.Repeatable, tool.Alone = true, true
	out, err := a.takeTurn(ctx, func(t *turn) error {
		t.opts.Tools = append(slices.Clone(t.opts.Tools), tool)
		if err := checkTools(t.opts.Tools); err != nil {
			return err
		}
		t.tools[answerName] = &tool
		t.useOptions()
		if err := t.prompt(content); err != nil {
			return err
		}
		for reminders := 0; ; reminders++ {
			err := t.run(nil)
			if err != nil || given != nil || t.out.Why != "" || t.out.Stop == StopApproval || reminders == maxReminders {
				return err
			}
			t.openQueue(true)
			if _, err := t.append(message(&session.MessageEntry{
				Role: session.RoleUser, Metadata: map[string]any{session.MetaInjected: "agent"},
				Content: []session.Content{session.Text("The answer is missing: call the tool " + answerName + " with it.")},
			})); err != nil {
				return err
			}
		}
	})
	switch {
	case err != nil:
	case given == nil:
		err = fmt.Errorf("the model gave no answer that fits: its turn ended with %q", out.Stop)
	default:
		return *given, out, nil
	}
	return *new(T), out, err
}
