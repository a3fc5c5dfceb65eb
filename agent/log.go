package agent

import (
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// This file has the ways in which a keeper writes to the log.

func message(m *session.MessageEntry) session.Entry {
	return session.Entry{Type: session.TypeMessage, Message: m}
}

// append writes entries and publishes the messages among them. If another writer was
// faster, the log grows a branch: what a model or a tool said is never lost. If the model
// is asked next, the same write says so.
func (k *Keeper) append(entries ...session.Entry) (ids []string, err error) {
	results, asks := k.asksNext(entries)
	if asks {
		entries = append(slices.Clip(entries), k.asking())
	}
	err = k.write(func() error {
		ids, err = k.s.AppendAll(entries...)
		return err
	})
	if err != nil {
		return nil, err
	}
	var messages []int
	for i, id := range ids {
		entries[i].ID = id
		k.recorded.note(&entries[i])
		if entries[i].Message != nil {
			messages = append(messages, i)
			if k.inLast >= 0 {
				k.inLast++
			}
		}
	}
	k.unanswered -= results
	if asks {
		k.announced = ids[len(ids)-1]
	}
	k.publishWritten(entries, messages)
	return ids, nil
}

// asksNext counts the results among entries that are about to be written, and reports
// whether the model is asked after them: they are what the user says, or the last results
// that it waits for.
func (k *Keeper) asksNext(entries []session.Entry) (results int, asks bool) {
	for i := range entries {
		switch m := entries[i].Message; {
		case m == nil:
		case m.Role == session.RoleUser:
			asks = true
		case endsTurn(m):
			return results + 1, false // it is written by itself: its tool runs alone
		case m.Role == session.RoleTool:
			results++
		}
	}
	asks = asks || results > 0 && results == k.unanswered
	return results, asks && k.announced == "" && k.ctx.Err() == nil
}

// publishWritten publishes messages that were written, each with its place and time in the log.
func (k *Keeper) publishWritten(entries []session.Entry, messages []int) {
	var written []session.Entry
	if k.hasListeners() { // otherwise nobody subscribes
		ids := make([]string, len(messages))
		for i, at := range messages {
			ids[i] = entries[at].ID
		}
		written, _ = k.s.Peek(ids...) // on an error, the messages are published without these
	}
	for i, at := range messages {
		e := entries[at]
		if len(written) > i {
			e.ParentID, e.Timestamp = written[i].ParentID, written[i].Timestamp
		}
		k.publish(Event{Type: MessageEnd, Entry: &e})
	}
}

// write calls try until it succeeds at the agent's place in the session; other writers may
// be faster. It never gives up what a model or a tool said in favour of another writer's
// entries.
func (k *Keeper) write(try func() error) error {
	return session.Retry(func() error {
		err := try()
		if errors.Is(err, session.ErrConflict) && k.conflicted.CompareAndSwap(false, true) {
			k.publish(Event{Type: Error, Err: err})
		}
		return err
	}, func() error {
		if k.s.LeafID() != "" {
			return nil
		}
		// The session was empty. A session has one beginning, so the other's entries come
		// first.
		_, err := k.s.Refresh()
		return err
	})
}

// catchUp moves on to what others have added at the end of the conversation since the
// last turn. If they have moved elsewhere, the agent stays where it is: what a person was
// shown here must not drop out of the conversation. But an answer that broke off is left
// behind if others have finished that turn: it must not be done again.
func (k *Keeper) catchUp() error {
	leaf := k.s.LeafID()
	fresh, err := k.s.Refresh()
	if err != nil {
		return err
	}
	if err := k.followContinuation(fresh); err != nil {
		return err
	}
	now := k.s.LeafID()
	if now == leaf {
		return nil
	}
	k.recorded = recorded{}
	stay, err := k.lastWhole(leaf)
	if err != nil || stay == "" {
		return err
	}
	shape, err := k.s.Shape()
	if err != nil {
		return err
	}
	path, err := shape.PathTo(now)
	if err != nil {
		return err
	}
	if at := slices.Index(path, shape.Index(stay)); at >= 0 {
		k.publishCaughtUp(shape, path[at+1:])
		return nil
	}
	if k.conflicted.CompareAndSwap(false, true) {
		k.publish(Event{Type: Error, Err: &session.ConflictError{Leaf: leaf, Theirs: now, Err: session.ErrConflict}})
	}
	err = k.moveTo(leaf)
	if k.s.SessionOf(leaf) != k.s.SessionOf("") && errors.Is(err, session.ErrInvalid) {
		return nil // the others continued in another session, from which there is no way back
	}
	return err
}

// publishCaughtUp publishes that others have added messages.
func (k *Keeper) publishCaughtUp(shape *session.Shape, added []int32) {
	added = slices.DeleteFunc(added, func(n int32) bool { return shape.Type(n) != session.TypeMessage })
	n := len(added)
	if n == 0 {
		return
	}
	last := session.Entry{ID: shape.ID(added[n-1]), Type: session.TypeMessage}
	if above := shape.Parent(added[n-1]); above >= 0 {
		id := shape.ID(above)
		last.ParentID = &id
	}
	k.publish(Event{Type: CaughtUp, Entry: &last, Missed: int64(n)})
}

// lastWhole returns the last message on the path to an entry that did not break off, or "".
func (k *Keeper) lastWhole(id string) (string, error) {
	if id == "" {
		return "", nil
	}
	for e, err := range k.s.Path(id) {
		if err != nil {
			return "", err
		}
		if e.Message != nil && !brokeOff(e.Message) {
			return e.ID, nil
		}
	}
	return "", nil
}

// moveTo moves the leaf. What was known about the path no longer holds.
func (k *Keeper) moveTo(id string) error {
	err := k.write(func() error { return k.s.Branch(id) })
	if err == nil {
		k.forget()
	}
	return err
}

// forget drops what is known about the conversation, because it is another one now.
func (k *Keeper) forget() {
	k.recorded, k.backoff = recorded{}, backoff{}
	k.count.forget()
}
