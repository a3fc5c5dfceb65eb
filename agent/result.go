package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// grace is how long a function of the program may take to return after its context has ended.
const grace = 2 * time.Second

// errTimeout ends a call that took too long.
var errTimeout = errors.New("the call took too long")

// runCall runs one call and returns its result, whatever happens. An error comes from a hook.
func (t *turn) runCall(p *Pending) (Result, error) {
	tool := t.tools[p.Name]
	timeout := tool.Timeout
	if timeout == 0 {
		timeout = t.opts.ToolTimeout
	}
	ctx, cancel := context.WithTimeoutCause(t.ctx, timeout, errTimeout)
	defer cancel()
	changedBy := "user"
	decided, denied, err := t.beforeTool(ctx, *p)
	if denied != nil {
		return t.fitResult(*denied), err
	}
	if string(decided.Input) != string(p.Input) {
		changedBy = "program"
	}
	p = &decided
	ctx, finish := t.traceCall(ctx, p.Call)
	ctx = WithProgress(ctx, func(text string) { t.publish(Event{Type: ToolUpdate, Call: &p.Call, Text: text}) })
	ctx = context.WithValue(ctx, runningKey{}, runningCall{t, p.Entry})
	r := foreign(ctx, t, "the tool", p.Call, func() (Result, error) { return tool.Run(ctx, p.Call) })
	finish(r.err)
	result := t.explain(ctx, r, timeout)
	if result, err = t.afterTool(ctx, p.Call, result); err != nil {
		return t.fitResult(result), err
	}
	if p.changed {
		result = result.after(fmt.Sprintf("[the %s changed the arguments of this call to %s]", changedBy, p.Input))
	}
	return t.fitResult(result), nil
}

// returned is what a function of the program returned.
type returned[T any] struct {
	value T
	err   error
	named bool // err says which function it was
	left  bool // it has not returned yet
}

// foreign calls a function of the program, a tool or a hook, and waits for it as long as ctx
// lasts, and a little longer. what names it.
func foreign[T any](ctx context.Context, t *turn, what string, c Call, do func() (T, error)) (r returned[T]) {
	done := make(chan returned[T], 1)
	go func() {
		r := returned[T]{err: fmt.Errorf("%s ended without a result", what), named: true} // kept if the function ends its goroutine
		defer func() { done <- r }()
		var made returned[T]
		if err := t.guard(what, c, func() { made.value, made.err = do() }); err != nil {
			made = returned[T]{err: err, named: true}
		}
		r = made
	}()
	select {
	case r = <-done:
		return r
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case r = <-done:
	case <-late.C:
		r.err, r.left = context.Cause(ctx), true
	}
	return r
}

// explain turns an error into a result.
func (t *turn) explain(ctx context.Context, r returned[Result], timeout time.Duration) Result {
	if r.err == nil {
		return r.value
	}
	text := r.err.Error()
	isLate := ctx.Err() != nil && errors.Is(context.Cause(ctx), errTimeout)
	switch {
	case t.ctx.Err() != nil && r.left:
		text = leftBehindText
	case t.ctx.Err() != nil:
		text = cancelledText
	case isLate && r.left:
		text = fmt.Sprintf("[the tool took longer than %s and did not stop when it was asked to; it may still be running]", timeout)
	case isLate:
		text = fmt.Sprintf("[the tool was told to stop because it took longer than %s]", timeout)
	}
	if r.value.Text != "" {
		text = r.value.Text + "\n" + text
	}
	parts := slices.Clone(r.value.Parts)
	if len(parts) > 0 {
		parts = append(parts, session.Text(text))
	}
	return Result{Text: text, Parts: parts, IsError: true}
}

// after returns the result with a line before it.
func (r Result) after(line string) Result {
	r.Text = line + "\n" + r.Text
	if len(r.Parts) > 0 {
		r.Parts = append([]session.Content{session.Text(line)}, r.Parts...)
	}
	return r
}

// guard calls foreign code: a tool, a hook, an approval. what names it. If it panics, the
// turn must continue, so guard returns the panic as an error.
func (t *turn) guard(what string, c Call, do func()) (panicked error) {
	defer func() {
		if v := recover(); v != nil {
			panicked = fmt.Errorf("%s panicked: %v", what, v)
			if t.opts.Logger != nil {
				t.opts.Logger.Error(what+" panicked", "tool", c.Name, "call", c.ID, "panic", v, "stack", string(debug.Stack()))
			}
		}
	}()
	do()
	return nil
}

// maxParts is how many images and files a result may have.
const maxParts = 100

// fitResult makes a result fit for a model: not too long, and without blocks that a result cannot
// have. All parts together have at most maxOutput bytes of text.
func (t *turn) fitResult(r Result) Result {
	left := t.maxOutput()
	r.Text = cutMiddle(r.Text, left)
	var parts []session.Content
	var texts []string // those that follow each other become one
	flush := func() {
		if text := strings.Join(texts, "\n"); text != "" {
			parts = append(parts, session.Text(cutMiddle(text, left)))
			left = max(0, left-len(text))
		}
		texts = nil
	}
	others := 0
	for i := range r.Parts {
		switch part := &r.Parts[i]; {
		case part.ToolUse != nil || part.ToolResult != nil || part.Thinking != nil:
			return Result{Text: fmt.Sprintf("[the tool returned a block of type %q, which a result cannot have]", part.Type), IsError: true}
		case part.Text != nil && part.Text.Content != "":
			texts = append(texts, part.Text.Content)
		case part.Text == nil:
			if others++; others <= maxParts {
				flush()
				parts = append(parts, *part)
			}
		}
	}
	if others > maxParts {
		texts = append(texts, fmt.Sprintf("[… %d of %d images and files left out …]", others-maxParts, others))
	}
	flush()
	r.Parts = parts
	return r
}

// maxOutput returns how many bytes of text a result may have.
func (t *turn) maxOutput() int {
	// An eighth of the window, at four bytes a token.
	return share(t.opts.MaxOutput, 48<<10, t.opts.Compaction.window(t.opts.Model.Info()), 2)
}

// cutMiddle leaves out the middle of a text that has more than limit bytes. The end matters
// as much as the beginning: errors are there.
func cutMiddle(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := window.Ends(text, limit/2, limit/2)
	return fmt.Sprintf("%s\n[… %d of %d bytes left out …]\n%s", head, len(text)-len(head)-len(tail), len(text), tail)
}
