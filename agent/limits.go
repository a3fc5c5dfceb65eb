package agent

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// Budget limits what a turn may use. It is checked between requests, so a turn has at least
// one, and its last may exceed a limit. A turn that reaches one ends with StopBudget, and
// Resume continues it with a new budget. The zero value has no limits.
type Budget struct {
	// Tokens is how many tokens its requests may send and get, those for summaries
	// included.
	Tokens int
	// MicroUSD is what they may cost, in millionths of a US dollar. Few providers report
	// a cost: set Price for the others.
	MicroUSD int
	// Price returns what a response cost whose provider reported no cost. Default: it
	// counts as nothing.
	Price func(model provider.Info, u session.Usage) (microUSD int)
	// Time is how long the turn may take, calls and approvals included.
	Time time.Duration
}

// claimStep counts a step of the turn, which is one of all turns that it is a task of, too. If
// one of them has reached a limit, it returns which: a stop reason, and in words. Then nothing
// is counted.
func (t *turn) claimStep() (stop, why string) {
	for at := t; at != nil; at = at.opts.parent {
		if stop, why = at.claim(); stop == "" {
			continue
		}
		for back := t; back != at; back = back.opts.parent {
			back.spending.Lock()
			back.out.Steps--
			back.spending.Unlock()
		}
		return stop, why
	}
	return "", ""
}

// claim counts a step, unless the turn has reached one of its limits. Tasks run side by side, so
// nothing may come between the look and the count.
func (t *turn) claim() (stop, why string) {
	t.spending.Lock()
	defer t.spending.Unlock()
	if stop, why = t.reached(); stop == "" {
		t.out.Steps++
	}
	return stop, why
}

// reached returns which limit the turn has reached. The caller holds spending.
func (t *turn) reached() (stop, why string) {
	b := &t.opts.Budget
	took := time.Since(t.begun)
	switch tokens := t.out.Usage.Context(); {
	case t.out.Steps >= t.opts.MaxSteps:
		return StopMaxSteps, fmt.Sprintf("the model was asked %d times in this turn", t.out.Steps)
	case t.out.Steps == 0:
	case b.Tokens > 0 && tokens >= b.Tokens:
		return StopBudget, fmt.Sprintf("the turn has used %d of %d tokens", tokens, b.Tokens)
	case b.MicroUSD > 0 && t.cost >= b.MicroUSD:
		return StopBudget, fmt.Sprintf("the turn has cost $%.2f of $%.2f", float64(t.cost)/1e6, float64(b.MicroUSD)/1e6)
	case b.Time > 0 && took >= b.Time:
		return StopBudget, fmt.Sprintf("the turn has taken %s of %s", took.Round(time.Second), b.Time)
	}
	return "", ""
}

// bill adds a response to what the turn cost, and the turn that it is a task of.
func (t *turn) bill(u *session.Usage) {
	if u == nil {
		return
	}
	cost := u.CostMicroUSD
	if price := t.opts.Budget.Price; cost == 0 && price != nil {
		cost = price(t.opts.Model.Info(), *u)
	}
	for at := t; at != nil; at = at.opts.parent {
		at.spending.Lock()
		at.out.Usage = *at.out.Usage.Plus(u)
		at.cost += cost
		at.spending.Unlock()
	}
}

// fallsBack reports whether another model takes over: this one does not answer, or does not
// exist.
func (t *turn) fallsBack(cause error) bool {
	var known *provider.Error
	if len(t.opts.Fallback) == 0 || t.ctx.Err() != nil || !errors.As(cause, &known) {
		return false
	}
	switch known.Kind {
	case provider.ErrUnavailable, provider.ErrLimited, provider.ErrBroken:
		return true
	}
	return known.Status == http.StatusNotFound
}

// fallBack continues with the next model, and reports it.
func (t *turn) fallBack(cause error) error {
	from, to := t.opts.Model.Info(), t.opts.Fallback[0].Info()
	t.opts.Model, t.opts.Fallback = t.opts.Fallback[0], t.opts.Fallback[1:]
	t.useOptions()
	t.backoff = backoff{}
	t.count.forget()
	if err := t.recordSettings(); err != nil {
		return errors.Join(cause, err)
	}
	told := fmt.Errorf("the turn continues with %s/%s, because %s/%s does not answer: %w", to.Provider, to.Model, from.Provider, from.Model, cause)
	t.publish(Event{Type: Error, Err: told})
	if t.opts.Logger != nil {
		t.opts.Logger.Warn(told.Error())
	}
	return nil
}
