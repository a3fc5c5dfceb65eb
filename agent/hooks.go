package agent

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// Hooks are functions of the program that an agent calls during a turn. For each request:
// BeforeModel, the request, the log, AfterModel. For each call: approval, BeforeTool, the
// tool, AfterTool, the log. Calls that run side by side have their hooks called side by side.
// An error or a panic ends the turn; the log has everything that happened until then. A hook
// must return soon after ctx ends: the agent waits no longer for it than for a tool.
type Hooks struct {
	// BeforeModel sees a copy of a request before it is sent. Changes to it have no effect:
	// the log says what was sent.
	BeforeModel func(ctx context.Context, r *provider.Request) error
	// AfterModel sees a whole answer when it is in the log, before its calls run.
	AfterModel func(ctx context.Context, m *session.MessageEntry) error
	// BeforeTool decides once more about a call that is about to run: Allow, also with other
	// arguments, or Deny, also with a reason. The result tells the model.
	BeforeTool func(ctx context.Context, call Call) (Decision, error)
	// AfterTool returns the result that the log and the model get in place of the tool's.
	AfterTool func(ctx context.Context, call Call, r Result) (Result, error)
}

// callHook calls a hook. After an error, the hook may still be running.
func callHook[T any](ctx context.Context, t *turn, name string, call Call, do func() (T, error)) (T, error) {
	r := foreign(ctx, t, "the hook "+name, call, do)
	if r.err != nil && !r.named {
		r.err = fmt.Errorf("the hook %s: %w", name, r.err)
	}
	return r.value, r.err
}

// look calls a hook that returns nothing.
func (t *turn) look(name string, do func() error) error {
	_, err := callHook(t.ctx, t, name, Call{}, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func (t *turn) beforeModel(r *provider.Request) error {
	if t.opts.Hooks.BeforeModel == nil {
		return nil
	}
	shown := shownRequest(r)
	return t.look("BeforeModel", func() error { return t.opts.Hooks.BeforeModel(t.ctx, shown) })
}

// shownRequest returns a copy of a request that shares nothing with it. If a hook could change
// what is sent, the log could not say what it was.
func shownRequest(r *provider.Request) *provider.Request {
	shown := *r
	shown.Memo = nil
	shown.Entries = make([]session.Entry, len(r.Entries))
	for i := range r.Entries {
		shown.Entries[i] = r.Entries[i].Clone()
	}
	shown.Tools = slices.Clone(r.Tools)
	for i := range shown.Tools {
		shown.Tools[i].Schema = bytes.Clone(shown.Tools[i].Schema)
	}
	shown.Fields = slices.Clone(r.Fields)
	for i := range shown.Fields {
		shown.Fields[i].Value = bytes.Clone(shown.Fields[i].Value)
	}
	if r.Temperature != nil {
		shown.Temperature = new(*r.Temperature)
	}
	shown.Encoded = &provider.Encoded{Body: bytes.Join(r.Encoded.Pieces(), nil), Notes: slices.Clone(r.Encoded.Notes)}
	return &shown
}

func (t *turn) afterModel(m *session.MessageEntry) error {
	if t.opts.Hooks.AfterModel == nil {
		return nil
	}
	e := message(m)
	shown := e.Clone()
	return t.look("AfterModel", func() error { return t.opts.Hooks.AfterModel(t.ctx, shown.Message) })
}

// beforeTool returns the call that runs. If it must not run, denied has its result.
func (t *turn) beforeTool(ctx context.Context, p Pending) (_ Pending, denied *Result, err error) {
	if t.opts.Hooks.BeforeTool == nil {
		return p, nil, nil
	}
	made, err := callHook(ctx, t, "BeforeTool", p.Call, func() (decided, error) {
		decision, err := t.opts.Hooks.BeforeTool(ctx, p.Call)
		if err != nil {
			return decided{}, err
		}
		made := decide(p, decision)
		if made.verdict == Later && made.err == nil {
			made.err = invalid("a call that is about to run cannot be left for later")
		}
		return made, made.err
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
func (t *turn) afterTool(ctx context.Context, call Call, r Result) (Result, error) {
	if t.opts.Hooks.AfterTool == nil {
		return r, nil
	}
	kept, err := callHook(ctx, t, "AfterTool", call, func() (Result, error) { return t.opts.Hooks.AfterTool(ctx, call, r) })
	if err != nil {
		return r, err
	}
	return kept, nil
}
