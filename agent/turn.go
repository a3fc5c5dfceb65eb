package agent

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/lease"
)

// turn is one piece of work of an agent: from a prompt, or from where the log stops,
// to the point where the model is done.
type turn struct {
	*Agent
	*Keeper
	opts  Options
	tools map[string]*Tool
	out   Outcome
	last  *Event // published when the turn has ended

	cutOffs        int                    // answers in a row that were cut off
	reportedLosses map[provider.Note]bool // losses that the user already knows about
	begun          time.Time

	spending sync.Mutex // guards cost, out.Usage and out.Steps: tasks run side by side
	cost     int        // in millionths of a US dollar

	oneQuestion gate.Mutex // held while Approve is asked

	isOver func(done []Pending) bool // whether calls that were done end the turn; may be nil
}

// Send adds what the user says and lets the model answer until it is done. When it returns,
// subscribers that read have read the last event: see Subscribe. If ctx
// ends, what has arrived is kept, and the error is context.Cause(ctx). Calls of earlier
// turns that have no result get one that says they were interrupted. What was queued in
// earlier turns and not used comes first: see Steer.
//
// An error does not undo anything: the outcome says how far the turn came, and Resume
// tries to continue from there.
func (a *Agent) Send(ctx context.Context, content ...session.Content) (*Outcome, error) {
	if err := checkPrompt(content); err != nil {
		return nil, err
	}
	return a.runTurn(ctx, func(t *turn) error {
		if err := t.prompt(content); err != nil {
			return err
		}
		return t.run(nil)
	})
}

// Resume continues where the session stopped: after a crash, after an error, or after
// decisions about waiting calls. Calls that never started are run, and so are those of
// tools that may be repeated. Other calls that were running get a result that says they
// were interrupted, because they may be half done; so do those that were started on
// another branch. If there is nothing to do, the outcome has no steps. An answer that
// broke off becomes a branch, and the model is asked again, unless the user cancelled
// it.
func (a *Agent) Resume(ctx context.Context) (*Outcome, error) {
	return a.runTurn(ctx, func(t *turn) error {
		pending, open, err := t.restore()
		if err != nil || !open {
			return err
		}
		return t.run(pending)
	})
}

// Unfinished reports whether Resume would have something to do. While another agent works on
// the session, the answer is not known, and the error is a *lease.HeldError.
func (a *Agent) Unfinished() (bool, error) {
	a.mu.Lock()
	busy := a.busy != nil
	a.mu.Unlock()
	if h, err := a.Holder(context.Background()); err != nil || h != nil && !busy {
		if err == nil {
			err = &lease.HeldError{Name: a.keeper.s.ID(), Holder: *h}
		}
		return false, err
	}
	_, open, err := a.keeper.unfinished()
	if err == nil && !open {
		var queued []session.Queued
		queued, err = a.keeper.queued()
		open = len(queued) > 0
	}
	return open, err
}

// Retry lets the model answer the last turn again, on a new branch. The old answer stays on
// its own branch. If the conversation has no turn, it returns session.ErrInvalid.
func (a *Agent) Retry(ctx context.Context) (*Outcome, error) {
	return a.runTurn(ctx, func(t *turn) error {
		if err := t.adoptDraft(); err != nil {
			return err
		}
		prompt, err := t.lastPrompt()
		if err != nil {
			return err
		}
		if prompt == "" {
			return invalid("the conversation has no turn to answer again")
		}
		if err := t.moveTo(prompt); err != nil {
			return err
		}
		if err := t.recordSettings(); err != nil {
			return err
		}
		return t.run(nil)
	})
}

// errPanicked is the error of a turn that ended in a panic, for example in a model.
var errPanicked = errors.New("the turn panicked")

// runTurn runs a turn and publishes its end.
func (a *Agent) runTurn(ctx context.Context, f func(*turn) error) (_ *Outcome, err error) {
	t, end, err := a.begin(ctx)
	if err != nil {
		return &Outcome{}, err
	}
	defer a.events.drain()
	defer end()
	t.begun = time.Now()
	finish := t.traceTurn()
	t.publish(Event{Type: TurnStart})
	err = errPanicked
	defer func() {
		finish(err)
		out := t.out // the caller may change its own copy
		t.last = &Event{Type: TurnEnd, Outcome: &out, Err: err}
	}()
	t.openQueue(true)
	defer t.openQueue(false)
	err = t.afterCatchUp(f)
	err = t.whyEnded(t.recordNotAsked(cmp.Or(t.out.Why, t.out.Stop), err))
	return &t.out, err
}

// afterCatchUp calls f after reading what others wrote.
func (t *turn) afterCatchUp(f func(*turn) error) error {
	if err := t.catchUp(); err != nil {
		return err
	}
	return f(t)
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
			if t.isOver != nil && t.isOver(pending) {
				t.out.Stop = provider.StopEndTurn
				if more, err := t.writeQueued(true, nil); err != nil || !more {
					return err
				}
			}
		}
		if err := t.ctx.Err(); err != nil {
			return err
		}
		if stop, why := t.claimStep(); stop != "" {
			t.out.Stop, t.out.Why = stop, why
			return nil
		}
		reply, err := t.step()
		if err != nil {
			return err
		}
		pending = reply.calls
		if !t.continues(reply) {
			t.out.Stop = reply.stop
			if _, err := t.perform(pending); err != nil { // it writes that they are not run
				return err
			}
			if more, err := t.writeQueued(true, nil); err != nil || !more {
				return err
			}
			pending, t.cutOffs = nil, 0
		}
	}
}

// useOptions gives the keeper the options of the turn.
func (t *turn) useOptions() {
	o := t.opts.keeper()
	o.Files = t.files
	t.Keeper.opts, t.onUsage = o, t.bill
	t.count.setCounter(t.counter())
}

// maxCounting is how long a provider may take to count a request.
const maxCounting = 10 * time.Second

// counter returns the function by which the provider counts a conversation, or nil if its model
// does not count.
func (t *turn) counter() func(*session.Context) (int, error) {
	model, ok := t.opts.Model.(provider.TokenCounter)
	if !ok {
		return nil
	}
	return func(c *session.Context) (int, error) {
		ctx, cancel := context.WithTimeout(t.ctx, maxCounting)
		defer cancel()
		r := t.params(c)
		r.Memo = nil
		return model.CountTokens(ctx, r)
	}
}
