package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// grace is how long a function of the program may take to return after it was told to stop.
const grace = 2 * time.Second

var (
	// errTimeout ends a call that took too long.
	errTimeout = errors.New("the call took too long")
	// errNoResult is the error of a call whose tool ended without returning.
	errNoResult = errors.New("the tool ended without a result")
)

// runCall runs one call and returns its result, whatever happens.
func (t *turn) runCall(p *Pending) Result {
	tool := t.tools[p.Name]
	timeout := tool.Timeout
	if timeout == 0 {
		timeout = t.opts.ToolTimeout
	}
	ctx, cancel := context.WithTimeoutCause(t.ctx, timeout, errTimeout)
	defer cancel()
	ctx, finish := t.traceCall(ctx, p.Call)
	done := make(chan returned, 1)
	go func() {
		r := returned{err: errNoResult} // which stays if the tool ends its goroutine
		defer func() {
			if v := recover(); v != nil {
				t.logPanic(p.Call, v)
				r = returned{err: fmt.Errorf("the tool panicked: %v", v)}
			}
			done <- r
		}()
		result, err := tool.Run(ctx, p.Call)
		r = returned{result, err}
	}()
	var r returned
	select {
	case r = <-done:
	case <-ctx.Done():
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case r = <-done:
		case <-late.C:
			r.err = context.Cause(ctx)
		}
	}
	finish(r.err)
	return t.fit(t.explain(ctx, r.result, r.err, timeout))
}

// returned is what the function of a tool returned.
type returned struct {
	result Result
	err    error
}

// explain turns an error into a result.
func (t *turn) explain(ctx context.Context, r Result, err error, timeout time.Duration) Result {
	if err == nil {
		return r
	}
	text := err.Error()
	switch {
	case t.ctx.Err() != nil:
		text = cancelledText
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errTimeout):
		text = fmt.Sprintf("[the tool was stopped because it took longer than %s]", timeout)
	}
	if r.Text != "" {
		text = r.Text + "\n" + text
	}
	return Result{Text: text, Parts: withText(r.Parts, text), IsError: true}
}

// withText adds a text to parts, if there are any.
func withText(parts []session.Content, text string) []session.Content {
	if len(parts) == 0 {
		return nil
	}
	return append(slices.Clone(parts), session.Text(text))
}

func (t *turn) logPanic(c Call, v any) {
	if t.opts.Logger != nil {
		t.opts.Logger.Error("a tool panicked", "tool", c.Name, "call", c.ID, "panic", v, "stack", string(debug.Stack()))
	}
}

// fit makes a result fit for a model: not too long, and without blocks that a result cannot
// have. All parts together have at most maxOutput bytes of text.
func (t *turn) fit(r Result) Result {
	left := t.maxOutput()
	r.Text = cutMiddle(r.Text, left)
	var parts []session.Content
	for i := range r.Parts {
		switch part := &r.Parts[i]; {
		case part.ToolUse != nil || part.ToolResult != nil || part.Thinking != nil:
			return Result{Text: fmt.Sprintf("[the tool returned a block of type %q, which a result cannot have]", part.Type), IsError: true}
		case part.Text == nil:
			parts = append(parts, *part)
		case part.Text.Content != "":
			text := cutMiddle(part.Text.Content, left)
			left = max(0, left-len(part.Text.Content))
			parts = append(parts, session.Text(text))
		}
	}
	r.Parts = parts
	return r
}

// maxOutput returns how many bytes of text a result may have.
func (t *turn) maxOutput() int {
	// An eighth of the window, at four bytes a token.
	return share(t.opts.MaxOutput, 48<<10, t.opts.Compaction.window(t.opts.Model.Info()), 2)
}

// cutMiddle leaves out the middle of a text that has more than limit bytes. The end is
// worth as much as the beginning: that is where errors are.
func cutMiddle(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := window.Ends(text, limit/2, limit/2)
	return fmt.Sprintf("%s\n[… %d of %d bytes left out …]\n%s", head, len(text)-len(head)-len(tail), len(text), tail)
}
