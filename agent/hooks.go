package agent

import (
	"context"
	"fmt"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// Hooks are functions of the program that an agent calls during a turn. For each request:
// BeforeModel, the request, the log, AfterModel. For each call: approval, BeforeTool, the
// tool, AfterTool, the log. Calls that run side by side have their hooks called side by side.
// An error or a panic ends the turn; the log has everything that happened until then.
type Hooks struct {
	// BeforeModel sees a request before it is sent, and must not change it: the log says what
	// was sent.
	BeforeModel func(ctx context.Context, r *provider.Request) error
	// AfterModel sees a whole answer when it is in the log, before its calls run.
	AfterModel func(ctx context.Context, m *session.MessageEntry) error
	// BeforeTool decides once more about a call that is about to run: Allow, also with other
	// arguments, or Deny, also with a reason. The result tells the model.
	BeforeTool func(ctx context.Context, call Call) (Decision, error)
	// AfterTool returns the result that the log and the model get in place of the tool's.
	AfterTool func(ctx context.Context, call Call, r Result) (Result, error)
}

// hook calls a hook.
func (t *turn) hook(name string, call Call, do func() error) error {
	var err error
	panicked := t.guard("the hook "+name, call, func() { err = do() })
	if err != nil {
		return fmt.Errorf("the hook %s: %w", name, err)
	}
	return panicked
}

func (t *turn) beforeModel(r *provider.Request) error {
	if t.opts.Hooks.BeforeModel == nil {
		return nil
	}
	return t.hook("BeforeModel", Call{}, func() error { return t.opts.Hooks.BeforeModel(t.ctx, r) })
}

func (t *turn) afterModel(m *session.MessageEntry) error {
	if t.opts.Hooks.AfterModel == nil {
		return nil
	}
	return t.hook("AfterModel", Call{}, func() error { return t.opts.Hooks.AfterModel(t.ctx, m) })
}

// beforeTool returns the call that runs. If it must not run, denied has its result.
func (t *turn) beforeTool(ctx context.Context, p Pending) (_ Pending, denied *Result, err error) {
	if t.opts.Hooks.BeforeTool == nil {
		return p, nil, nil
	}
	made := decided{Pending: p}
	err = t.hook("BeforeTool", p.Call, func() error {
		decision, err := t.opts.Hooks.BeforeTool(ctx, p.Call)
		if err != nil {
			return err
		}
		if made = decide(p, decision); made.verdict == Later && made.err == nil {
			made.err = invalid("a call that is about to run cannot be left for later")
		}
		return made.err
	})
	switch {
	case err != nil:
		return p, &Result{Text: fmt.Sprintf("[not run: %v]", err), IsError: true}, err
	case made.verdict == Deny:
		denial := made.denial().result
		return p, &denial, nil
	}
	return made.Pending, nil, nil
}

// afterTool returns the result that is kept.
func (t *turn) afterTool(ctx context.Context, call Call, r Result) (kept Result, err error) {
	if t.opts.Hooks.AfterTool == nil {
		return r, nil
	}
	err = t.hook("AfterTool", call, func() error {
		kept, err = t.opts.Hooks.AfterTool(ctx, call, r)
		return err
	})
	if err != nil {
		return r, err
	}
	return kept, nil
}
