package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// What a user says while a turn is under way is queued: it goes into the log at once, as a
// note, and becomes a message when the turn gets to it. The message names the note, so that
// it is used once, whichever agent finishes the turn.

// queue says whether a turn takes what is queued.
type queue struct {
	mu    sync.Mutex // held while something is queued, used or taken back
	open  bool
	notes []string // the notes of this turn
}

// Steer says something to the model while it works. The model hears it with the results of
// the calls that are under way, when it is asked next. If it is done before that, the turn
// continues. When Steer returns, the words are in the log. If the turn ends before they are
// used (it fails, is cancelled, reaches a limit or waits for approval, or the program dies),
// the next turn uses them first: Resume or Send. It returns the id of the entry that has
// them.
//
// If this agent has no turn under way, the words are for the one that works on the session,
// in this program or another. If there is none, the error is ErrIdle.
func (a *Agent) Steer(ctx context.Context, content ...session.Content) (string, error) {
	return a.keeper.enqueue(ctx, session.Queued{Content: content})
}

// FollowUp is Steer for what can wait until the model is done. The turn then continues with
// it instead of ending.
func (a *Agent) FollowUp(ctx context.Context, content ...session.Content) (string, error) {
	return a.keeper.enqueue(ctx, session.Queued{Content: content, After: true})
}

func (k *Keeper) enqueue(ctx context.Context, q session.Queued) (string, error) {
	if err := checkPrompt(q.Content); err != nil {
		return "", err
	}
	for {
		id, err := k.enqueueNow(ctx, q)
		if !errors.Is(err, errCrossing) {
			return id, err
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(crossingWait):
		}
	}
}

// errCrossing means that the conversation is about to continue in a session that does not
// exist yet. The agent that creates it does not look at the old session again.
var errCrossing = errors.New("the conversation continues in another session")

// crossingWait is how long to wait before looking for that session again.
const crossingWait = 5 * time.Millisecond

func (k *Keeper) enqueueNow(ctx context.Context, q session.Queued) (string, error) {
	k.queue.mu.Lock()
	defer k.queue.mu.Unlock()
	if !k.queue.open {
		if k.holds.Load() {
			return "", ErrIdle // our own turn takes no more: it is about to end, or has not begun
		}
		switch holder, err := k.place.Holder(ctx); {
		case err != nil:
			return "", err
		case holder == nil:
			return "", ErrIdle
		}
	}
	q.Session = k.log.ID() // it stays the same when the conversation continues in another session
	e, err := k.signed(&q)
	if err != nil {
		return "", err
	}
	if _, err = k.note(ctx, e); err != nil {
		return "", err
	}
	if k.queue.open {
		k.queue.notes = append(k.queue.notes, e.ID)
	}
	k.publish(Event{Type: Queued, Entry: &e})
	return e.ID, nil
}

// signed returns the entry that queues something. It is cleaned before it is signed, because an
// append would change it otherwise.
func (k *Keeper) signed(q *session.Queued) (session.Entry, error) {
	e, err := q.Entry()
	if err != nil {
		return e, err
	}
	e.ID = session.NewID()
	if err := k.s.Clean(&e); err != nil {
		return e, err
	}
	key, err := k.key(true)
	if err != nil {
		return e, err
	}
	cleaned, _ := e.Queued()
	proof, err := k.queuedSignature(key, &cleaned)
	e.Custom.Data["signed"] = proof
	return e, err
}

// queued returns what waits, the oldest first. What no agent of this store has queued in this
// conversation is history: see sign.go.
func (k *Keeper) queued() ([]session.Queued, error) {
	all, err := k.s.Queued()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	key, err := k.key(false)
	if err != nil || key == nil {
		return nil, err
	}
	ours := all[:0]
	for i := range all {
		proof, err := k.queuedSignature(key, &all[i])
		if err != nil {
			return nil, err
		}
		if isProof(all[i].Signed, proof) {
			all[i].Signed = ""
			ours = append(ours, all[i])
		}
	}
	return ours, nil
}

// Queued returns what Steer and FollowUp have said and no turn has used, the oldest first.
func (a *Agent) Queued() ([]session.Queued, error) { return a.keeper.queued() }

// note writes an entry about the queue, and returns its id.
func (k *Keeper) note(ctx context.Context, e session.Entry) (id string, err error) {
	if k.queue.open {
		err = k.write(func() error {
			id, err = k.s.AppendEntry(e)
			return err
		})
		return id, err
	}
	err = k.log.Update(ctx, func(tx *session.Tx) error { // where the other agent is
		if k.isChain {
			if next, err := k.log.Continuation(); err != nil || next != "" {
				return cmp.Or(err, errCrossing)
			}
		}
		id = tx.Append(e)
		return nil
	})
	if errors.Is(err, errCrossing) {
		if _, failed := k.log.Refresh(); failed != nil {
			err = failed
		}
	}
	return id, err
}

// TakeBack removes from the queue what Steer and FollowUp have said and no turn has used, and
// returns it. While another agent works on the session, the error is a *lease.HeldError.
func (a *Agent) TakeBack(ctx context.Context) (back []session.Queued, err error) {
	k := a.keeper
	k.queue.mu.Lock()
	defer k.queue.mu.Unlock()
	takeBack := func(*turn) error {
		if back, err = k.queued(); err != nil || len(back) == 0 {
			return err
		}
		ids := make([]string, len(back))
		for i := range back {
			ids[i] = back[i].ID
		}
		_, err = k.note(ctx, session.NewTakenBack(ids...))
		return err
	}
	if k.queue.open {
		err = takeBack(nil)
	} else {
		err = a.change(ctx, takeBack)
	}
	return back, err
}

// openQueue says whether a turn takes what is queued from now on.
func (k *Keeper) openQueue(open bool) {
	k.queue.mu.Lock()
	defer k.queue.mu.Unlock()
	k.queue.open, k.queue.notes = open, nil
}

// queuedBefore writes what was queued in earlier turns first, and reports whether there was
// anything.
func (k *Keeper) queuedBefore() (bool, error) {
	queued, err := k.queued()
	if err != nil || len(queued) == 0 {
		return false, err
	}
	settings, err := k.settings()
	if err != nil {
		return false, err
	}
	return k.writeQueued(true, settings)
}

// writeQueued turns what is queued into messages, with all including what waits for the end of
// the turn, and writes them after the entries before and ahead of the entries after. What was
// said in this turn comes last, because it waits until the model is asked. writeQueued reports
// whether it wrote anything; if all was set and nothing was queued, the turn takes no more.
func (k *Keeper) writeQueued(all bool, before []session.Entry, after ...session.Entry) (bool, error) {
	k.queue.mu.Lock()
	defer k.queue.mu.Unlock()
	queued, err := k.queued()
	if err != nil {
		return false, err
	}
	entries := before
	for i := range queued {
		early := len(after) > 0 && slices.Contains(k.queue.notes, queued[i].ID)
		if (all || !queued[i].After) && !early {
			entries = append(entries, queued[i].Message())
		}
	}
	entries = append(entries, after...)
	if len(entries) == 0 {
		k.queue.open = k.queue.open && !all
		return false, nil
	}
	_, err = k.append(entries...)
	return true, err
}
