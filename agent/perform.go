package agent

import (
	"context"
	"errors"
	"slices"
)

// work is the state of perform.
type work struct {
	*turn
	ready   []Pending // may run, in the order of the answer
	asking  []Pending // about which there is no decision yet, in the same order
	waiting []Pending // are left for later
	running int
	done    chan answered // gets the result of each call that runs
	failed  error         // nothing more is started
}

// perform gets a result for every call, and returns those that wait for approval. Calls
// that need none run while others are decided about. When it returns, the results are in
// the log, unless there is an error.
func (t *turn) perform(pending []Pending) (waiting []Pending, _ error) {
	w := work{turn: t, done: make(chan answered)}
	var refused []answered
	w.ready, w.asking, w.waiting, refused = t.triage(pending)
	if err := t.answer(refused...); err != nil {
		return nil, err
	}
	if err := t.markWaiting(w.asking); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	decisions := t.question(ctx, slices.Clone(w.asking))
	for w.running > 0 || decisions != nil || len(w.ready) > 0 {
		w.start()
		if w.failed != nil {
			cancel()
		}
		if w.running == 0 && decisions == nil {
			continue
		}
		select {
		case result := <-w.done:
			w.collect(result)
		case d, ok := <-decisions:
			if !ok {
				decisions = nil
				continue
			}
			w.applyDecision(d)
		}
	}
	return w.waiting, w.failed
}

// start runs the next calls, if none are running. If the turn is cancelled, the calls that
// are left get results without running.
func (w *work) start() {
	if err := w.ctx.Err(); err != nil && w.failed == nil && len(w.ready) > 0 {
		w.fail(errors.Join(err, w.answer(answersTo(notRunText, w.ready...)...)))
	}
	group := w.next()
	if len(group) == 0 {
		return
	}
	w.ready = w.ready[len(group):]
	if err := w.announce(group); err != nil {
		w.fail(err)
		return
	}
	for _, p := range group {
		w.running++
		w.publish(Event{Type: ToolStart, Call: &p.Call})
		go func() {
			result, err := w.runCall(&p)
			w.done <- answered{p, result, err}
		}()
	}
}

func (w *work) fail(err error) {
	if w.failed == nil {
		w.failed = err
	}
	w.ready = nil
}

// next returns the calls that may start now. Those that the log already calls running come
// first, by themselves: what goes wrong with others must not keep them.
func (w *work) next() []Pending {
	if w.running > 0 || len(w.ready) == 0 {
		return nil
	}
	if i := slices.IndexFunc(w.ready, func(p Pending) bool { return !p.started }); i > 0 {
		return w.ready[:i]
	}
	// A call that runs alone keeps its place: an earlier call may change what it does.
	if w.tools[w.ready[0].Name].Alone && len(w.asking) > 0 && w.asking[0].order < w.ready[0].order {
		return nil
	}
	return w.ready[:w.countParallel(w.ready)]
}

// announce records in the log that calls run, before they do.
func (w *work) announce(group []Pending) error {
	unmarked := slices.DeleteFunc(slices.Clone(group), func(p Pending) bool { return p.started })
	return w.markRunning(unmarked)
}

// collect writes the result of a call to the log, and those of others that have arrived by
// now.
func (w *work) collect(first answered) {
	batch := []answered{first}
	for more := true; more && len(batch) < w.running; {
		select {
		case next := <-w.done:
			batch = append(batch, next)
		default:
			more = false
		}
	}
	w.running -= len(batch)
	// Even if something else went wrong: a call that ran must not be without a result.
	if err := w.answer(batch...); err != nil {
		w.fail(err)
	}
	for i := range batch {
		if err := batch[i].err; err != nil {
			w.fail(err)
		}
	}
}

// applyDecision acts on a decision about the first call of asking.
func (w *work) applyDecision(d decided) {
	w.asking = w.asking[1:]
	switch {
	case w.failed != nil:
	case d.err != nil:
		w.fail(d.err) // the call still waits, and so do the others
	case d.verdict == Allow:
		at, _ := slices.BinarySearchFunc(w.ready, d.order, func(p Pending, order int) int { return p.order - order })
		w.ready = slices.Insert(w.ready, at, d.Pending)
	case d.verdict == Deny:
		if err := w.answer(d.denial()); err != nil {
			w.fail(err)
		}
	default:
		w.waiting = append(w.waiting, d.Pending)
	}
}
