package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// Because returns a denial that tells the model why.
func (d Decision) Because(reason string) Decision { return d + ": " + Decision(reason) }

// With returns an approval of the call with other arguments, a JSON object. The log
// keeps both, and the result tells the model what ran.
func (d Decision) With(input json.RawMessage) Decision { return d + ": " + Decision(input) }

// decided is a call with the decision about it.
type decided struct {
	Pending
	verdict Decision // Allow, Deny or Later
	reason  string
	err     error
}

// decide applies a decision to a call.
func decide(p Pending, d Decision) decided {
	verdict, more, _ := strings.Cut(string(d), ": ")
	made := decided{Pending: p, verdict: Decision(verdict), reason: more}
	switch {
	case made.verdict == Allow && more != "":
		if made.Input = json.RawMessage(more); !rawjson.Valid(made.Input) || rawjson.Kind(made.Input) != 'o' {
			made.err = invalid("the arguments with which call %q is allowed are not a JSON object", p.ID)
		}
		made.approved, made.changed = true, true
	case made.verdict == Allow:
		made.approved = true
	case made.verdict == Deny || d == Later:
	default:
		made.err = invalid("the decision %q is unknown; use %s, %s or %s", d, Allow, Deny, Later)
	}
	return made
}

// denial returns the result of a call that was denied.
func (d *decided) denial() answered {
	text := deniedText
	if d.reason != "" {
		text = strings.TrimSuffix(deniedText, "]") + ": " + d.reason + "]"
	}
	return answersTo(text, d.Pending)[0]
}

// isDenial reports whether a result says that a call was denied.
func isDenial(text string) bool { return strings.HasPrefix(text, "[denied: ") }

// markWaiting says in the log that calls wait for a decision. This program remembers their
// arguments, of which the log may have a redacted copy only.
func (t *turn) markWaiting(asking []Pending) error {
	var unmarked []Pending
	for i := range asking {
		t.rememberCall(asking[i])
		if asking[i].State != CallWaiting {
			asking[i].State = CallWaiting
			unmarked = append(unmarked, asking[i])
		}
	}
	return t.mark(CallWaiting, unmarked)
}

// question asks for decisions about calls, one at a time, and closes the channel after the
// last one or an error. The caller reads it to its end. If there are no calls, it is nil.
func (t *turn) question(ctx context.Context, asking []Pending) <-chan decided {
	if len(asking) == 0 {
		return nil
	}
	decisions := make(chan decided)
	go func() {
		defer close(decisions)
		for i, p := range asking {
			if i > 0 && !t.asks(&p) { // the approval of the one before allowed this one as well
				decisions <- decide(p, Allow)
				continue
			}
			decision, err := t.approve(ctx, p.Call)
			made := decide(p, decision)
			if err != nil {
				made.err = err
			}
			if decisions <- made; made.err != nil {
				return
			}
		}
	}()
	return decisions
}

// approve asks Options.Approve about a call. It does not wait for it any longer when the turn
// is cancelled, or when Decide gives the answer. A listener may call Decide as soon as it
// hears of the call, so Decide can answer before that.
func (t *turn) approve(ctx context.Context, call Call) (Decision, error) {
	var instead <-chan Decision
	if t.opts.Approve != nil {
		instead = t.openQuestion(call.ID)
	}
	t.publish(Event{Type: ToolWaiting, Call: &call})
	if instead == nil {
		return Later, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		decision Decision
		err      error
	}
	done := make(chan answer, 1)
	go func() {
		a := answer{Later, errors.New("the approval ended without a decision")}
		defer func() { done <- a }()
		var made answer
		if err := t.guard(fmt.Sprintf("the approval of call %q", call.ID), call, func() { made.decision, made.err = t.decideAlone(ctx, call) }); err != nil {
			made = answer{Later, err}
		}
		a = made
	}()
	a := answer{decision: Later}
	select {
	case a = <-done:
	case decision := <-instead:
		return decision, nil
	case <-ctx.Done():
		a.err = ctx.Err()
	}
	t.closeQuestion(call.ID)
	select {
	case decision := <-instead: // Decide was faster
		return decision, nil
	default:
		return a.decision, a.err
	}
}

// decideAlone asks Options.Approve about a call of the turn or of one of its tasks, one at a time.
func (t *turn) decideAlone(ctx context.Context, call Call) (Decision, error) {
	if t.opts.Approve == nil {
		return Later, nil
	}
	if err := t.oneQuestion.LockContext(ctx); err != nil {
		return Later, err
	}
	defer t.oneQuestion.Unlock()
	return t.opts.Approve(ctx, call)
}

func (a *Agent) openQuestion(call string) <-chan Decision {
	answer := make(chan Decision, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.questions == nil {
		a.questions = make(map[string]chan<- Decision)
	}
	a.questions[call] = answer
	return answer
}

func (a *Agent) closeQuestion(call string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.questions, call)
}

// Decide settles a call that waits for approval. Resume then continues the turn. Later
// changes nothing. For a call that does not wait, Decide returns session.ErrNotExist. If a
// turn is asking Options.Approve about the call, Decide answers instead, and the turn
// continues.
func (a *Agent) Decide(callID string, d Decision) error {
	if made := decide(Pending{Call: Call{ID: callID}}, d); made.err != nil {
		return made.err
	}
	a.mu.Lock()
	question := a.questions[callID]
	if question != nil {
		question <- d
		delete(a.questions, callID) // it is answered only once
	}
	a.mu.Unlock()
	if question != nil {
		return nil
	}
	return a.change(context.Background(), func(t *turn) error {
		pending, err := t.pending()
		if err != nil {
			return err
		}
		at := slices.IndexFunc(pending, func(p Pending) bool { return p.ID == callID && p.State == CallWaiting })
		if at < 0 {
			return &session.Error{Op: "approve", Name: t.s.ID(), Kind: session.ErrNotExist, Err: fmt.Errorf("no call %q waits for approval", callID)}
		}
		switch made := decide(pending[at], d); made.verdict {
		case Allow:
			return t.mark(CallAllowed, []Pending{made.Pending})
		case Deny:
			return t.answer(made.denial())
		}
		return nil
	})
}

// callKey is a call of a message: ids are unique within one message only.
type callKey struct{ message, call string }

// rememberCall keeps the arguments of a call until it has a result.
func (k *Keeper) rememberCall(p Pending) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.calls == nil {
		k.calls = make(map[callKey]json.RawMessage)
	}
	k.calls[callKey{p.Entry, p.ID}] = p.Input
}

func (k *Keeper) forgetCall(p Pending) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.calls, callKey{p.Entry, p.ID})
}

// recallCall sets the arguments of a call as the model gave them, if this program knows.
func (k *Keeper) recallCall(p *Pending) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if input, ok := k.calls[callKey{p.Entry, p.ID}]; ok {
		p.Input = input
		p.found = false
	}
}
