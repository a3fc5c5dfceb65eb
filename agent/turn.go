package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/lease"
)

// turn is one piece of work of an agent: from a prompt, or from where the log stops,
// to the point where the model is done.
type turn struct {
	*Agent
	ctx   context.Context
	stop  context.CancelCauseFunc // ends ctx
	lease *lease.Lease
	s     *session.Session // the log, with a context that does not end
	opts  Options
	tools map[string]*Tool
	out   Outcome
	last  *Event // published when the turn has ended

	cutOffs   int            // answers in a row that were cut off
	offer     map[string]any // the tools, as recordTools records them
	offerSum  string
	disturbed bool // another writer has added to the session
	begun     time.Time
	cost      int // in millionths of a US dollar

	unanswered int    // calls that wait for their results
	asked      string // the entry that says that the model is asked next, until a record names it
}

// Send adds what the user says and lets the model answer until it is done. When it returns,
// subscribers that read have read the last event: see Subscribe. If ctx
// ends, what has arrived is kept, and the error is context.Cause(ctx). Calls of earlier
// turns that have no result get one that says they were interrupted.
//
// An error does not undo anything: the outcome says how far the turn came, and Resume
// tries to continue from there.
func (a *Agent) Send(ctx context.Context, content ...session.Content) (*Outcome, error) {
	if err := checkPrompt(content); err != nil {
		return nil, err
	}
	return a.takeTurn(ctx, func(t *turn) error {
		if err := t.adoptDraft(); err != nil {
			return err
		}
		pending, err := t.pending()
		if err != nil {
			return err
		}
		var entries []session.Entry
		for _, a := range answersTo(supersededText, pending...) {
			entries = append(entries, resultEntry(a.Call, a.result))
		}
		settings, err := t.settings()
		if err != nil {
			return err
		}
		entries = append(entries, settings...)
		entries = append(entries, message(&session.MessageEntry{Role: session.RoleUser, Content: content}))
		if _, err := t.append(entries...); err != nil {
			return err
		}
		for _, p := range pending {
			t.forgetCall(p)
		}
		return t.run(nil)
	})
}

// checkPrompt refuses what a user cannot say. Once that is in the log, providers would
// refuse every further request.
func checkPrompt(content []session.Content) error {
	empty := true
	for i := range content {
		switch c := &content[i]; {
		case c.ToolUse != nil || c.ToolResult != nil || c.Thinking != nil:
			return invalid("a user's message cannot have a block of type %q", c.Type)
		case c.Text == nil || strings.TrimSpace(c.Text.Content) != "":
			empty = false
		}
	}
	if empty {
		return invalid("the message is empty")
	}
	return nil
}

// Resume continues where the session stopped: after a crash, after an error, or after
// decisions about waiting calls. Calls that never started are run, and so are those of
// tools that may be repeated. Other calls that were running get a result that says they
// were interrupted, because they may be half done; so do those that were started on
// another branch. If there is nothing to do, the outcome has no steps. An answer that
// broke off becomes a branch, and the model is asked again, unless the user cancelled
// it.
func (a *Agent) Resume(ctx context.Context) (*Outcome, error) {
	return a.takeTurn(ctx, func(t *turn) error {
		if err := t.adoptDraft(); err != nil {
			return err
		}
		if err := t.leaveBroken(); err != nil {
			return err
		}
		pending, open, err := t.unfinished()
		if err != nil || !open {
			return err
		}
		return t.proceed(pending)
	})
}

// Unfinished reports whether Resume would have something to do. While another agent works
// on the session, that cannot be told, and the error is a *lease.HeldError.
func (a *Agent) Unfinished() (bool, error) {
	a.mu.Lock()
	busy := a.busy != nil
	a.mu.Unlock()
	if h, err := a.Holder(context.Background()); err != nil || h != nil && !busy {
		if err == nil {
			err = &lease.HeldError{Name: a.log.ID(), Holder: *h}
		}
		return false, err
	}
	t := &turn{Agent: a, s: a.log}
	_, open, err := t.unfinished()
	return open, err
}

// Retry has the last turn answered again, on a new branch. The old answer stays on its
// own branch. If the conversation has no turn, it returns session.ErrInvalid.
func (a *Agent) Retry(ctx context.Context) (*Outcome, error) {
	return a.takeTurn(ctx, func(t *turn) error {
		if err := t.adoptDraft(); err != nil {
			return err
		}
		prompt, err := t.lastPrompt()
		if err != nil {
			return err
		}
		if prompt == "" {
			return invalid("there is nothing to answer again")
		}
		if err := t.moveTo(prompt); err != nil {
			return err
		}
		return t.proceed(nil)
	})
}

// lastPrompt returns the entry that began the last turn, or "". It may be in the part of
// the path that a compaction has replaced.
func (t *turn) lastPrompt() (string, error) {
	path, err := t.s.OutlinePath("")
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(path) {
		if e.Type != session.TypeMessage {
			continue
		}
		found, err := t.s.Peek(e.ID)
		if err != nil {
			return "", err
		}
		if found[0].BeginsTurn() {
			return e.ID, nil
		}
	}
	return "", nil
}

// errPanicked is the error of a turn that ended in a panic, for example in a model.
var errPanicked = errors.New("the turn panicked")

// takeTurn runs a turn and publishes its end.
func (a *Agent) takeTurn(ctx context.Context, f func(*turn) error) (_ *Outcome, err error) {
	t, end, err := a.begin(ctx)
	if err != nil {
		return &Outcome{}, err
	}
	defer a.events.drain()
	defer end()
	t.begun = time.Now()
	finish := t.traceTurn()
	a.publish(Event{Type: TurnStart})
	err = errPanicked
	defer func() {
		finish(err)
		out := t.out // the caller may change its own copy
		t.last = &Event{Type: TurnEnd, Outcome: &out, Err: err}
	}()
	err = t.whyEnded(t.settle(t.afterCatchUp(f)))
	return &t.out, err
}

// settle writes down that the model was not asked after all, and returns why the turn
// ended.
func (t *turn) settle(cause error) error {
	if t.asked == "" {
		return cause
	}
	why := cmp.Or(t.out.Why, t.out.Stop)
	if cause != nil {
		why = t.whyEnded(cause).Error()
	}
	r := t.newRecord()
	r.Error = "it was not sent: " + why
	if _, err := t.append(r.entry()); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// afterCatchUp does f after taking in what others wrote.
func (t *turn) afterCatchUp(f func(*turn) error) error {
	if err := t.catchUp(); err != nil {
		return err
	}
	return f(t)
}

// whyEnded returns the error of a turn. For a cancelled turn that is the cause, and
// what else went wrong with the log.
func (t *turn) whyEnded(err error) error {
	if err == nil || t.ctx.Err() == nil || !errors.Is(err, t.ctx.Err()) {
		return err
	}
	var failed *session.Error
	if errors.As(err, &failed) {
		return errors.Join(context.Cause(t.ctx), failed)
	}
	return context.Cause(t.ctx)
}

// proceed records what has changed, and runs the turn from calls that have no result yet
// or, if there are none, from the next request.
func (t *turn) proceed(pending []Pending) error {
	settings, err := t.settings()
	if err != nil {
		return err
	}
	if len(settings) > 0 {
		if _, err := t.append(settings...); err != nil {
			return err
		}
	}
	return t.run(pending)
}

// run asks the model and runs its calls until it makes no more. It begins with calls
// that have no result yet, if there are any.
func (t *turn) run(pending []Pending) error {
	for {
		if t.unanswered = len(pending); len(pending) > 0 {
			waiting, err := t.perform(pending)
			if err != nil {
				return err
			}
			if len(waiting) > 0 {
				t.out.Stop, t.out.Waiting = StopApproval, waiting
				return nil
			}
		}
		if err := t.ctx.Err(); err != nil {
			return err
		}
		if stop, why := t.limit(); stop != "" {
			t.out.Stop, t.out.Why = stop, why
			return nil
		}
		reply, err := t.step()
		if err != nil {
			return err
		}
		pending = reply.calls
		if !t.goesOn(reply) {
			t.out.Stop = reply.stop
			_, err := t.perform(pending) // which says that they are not run
			return err
		}
	}
}

// unfinished returns the calls that wait for a result, and whether anything is left to do:
// such calls, or something that the model has not answered.
func (t *turn) unfinished() (pending []Pending, open bool, _ error) {
	pending, err := t.pending()
	if err != nil || len(pending) > 0 {
		return pending, err == nil, err
	}
	open, err = t.open()
	return nil, open, err
}

// open reports whether the conversation waits for the model: it ends with something that
// the model has not answered, or not to the end.
func (t *turn) open() (bool, error) {
	last, err := t.lastMessage()
	switch {
	case err != nil || last == nil:
		return false, err
	case last.Message.Role == session.RoleAssistant:
		return last.Message.StopReason == provider.StopPause || brokeOff(last.Message), nil
	}
	r, err := t.lastRecord(func(e *session.Entry) bool { return e.Message != nil })
	hadNothingToAdd := r != nil && r.Response == "" && r.Error == ""
	return !hadNothingToAdd, err
}

// lastMessage returns the message with which the conversation ends, or nil. Summaries and
// system messages are not answered.
func (t *turn) lastMessage() (*session.Entry, error) {
	c, err := t.s.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return nil, err
	}
	for i := len(c.Entries) - 1; i >= 0; i-- {
		if m := c.Entries[i].Message; m != nil && m.Role != session.RoleSystem {
			return &c.Entries[i], nil
		}
	}
	return nil, nil
}

// brokeOff reports whether a message is the part of an answer that arrived before the
// connection failed. A cancelled answer did not break off.
func brokeOff(m *session.MessageEntry) bool {
	return m.Role == session.RoleAssistant && m.StopReason == provider.StopFailed && m.Metadata[provider.MetaIncomplete] != nil
}

// leaveBroken goes back to where the model was asked, if the conversation ends with an
// answer that broke off. That answer becomes a branch.
func (t *turn) leaveBroken() error {
	last, err := t.lastMessage()
	if err != nil || last == nil || !brokeOff(last.Message) || last.ParentID == nil {
		return err
	}
	_, askedAt, err := t.s.Draft(*last.ParentID)
	if err != nil {
		return err
	}
	return t.moveTo(askedAt)
}
