package agent

import (
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// This file has the ways in which a turn writes to the log.

func message(m *session.MessageEntry) session.Entry {
	return session.Entry{Type: session.TypeMessage, Message: m}
}

// append writes entries and publishes the messages among them. If another writer was
// faster, the log grows a branch: what a model or a tool said is never lost. If the model
// is asked next, the same write says so.
func (t *turn) append(entries ...session.Entry) (ids []string, err error) {
	results, asks := t.asksNext(entries)
	if asks {
		entries = append(slices.Clip(entries), t.asking())
	}
	err = t.write(func() error {
		ids, err = t.s.AppendAll(entries...)
		return err
	})
	if err != nil {
		return nil, err
	}
	var messages []int
	for i, id := range ids {
		entries[i].ID = id
		t.recorded.note(&entries[i])
		if entries[i].Message != nil {
			messages = append(messages, i)
		}
	}
	t.unanswered -= results
	if asks {
		t.asked = ids[len(ids)-1]
	}
	t.tell(entries, messages)
	return ids, nil
}

// asksNext counts the results among entries that are about to be written, and reports
// whether the model is asked after them: they are what the user says, or the last results
// that it waits for.
func (t *turn) asksNext(entries []session.Entry) (results int, asks bool) {
	for i := range entries {
		switch m := entries[i].Message; {
		case m == nil:
		case m.Role == session.RoleUser:
			asks = true
		case m.Role == session.RoleTool:
			results++
		}
	}
	asks = asks || results > 0 && results == t.unanswered
	return results, asks && t.asked == "" && t.ctx.Err() == nil
}

// tell publishes messages that were written, each with the place and the time that the log
// has for it.
func (t *turn) tell(entries []session.Entry, messages []int) {
	var written []session.Entry
	if t.events.isHeard() { // otherwise there is no one to tell
		ids := make([]string, len(messages))
		for i, at := range messages {
			ids[i] = entries[at].ID
		}
		written, _ = t.s.Peek(ids...) // on an error, the messages are published without these
	}
	for i, at := range messages {
		e := entries[at]
		if len(written) > i {
			e.ParentID, e.Timestamp = written[i].ParentID, written[i].Timestamp
		}
		t.publish(Event{Type: MessageEnd, Entry: &e})
	}
}

// write calls try until it succeeds at the agent's place in the session; other writers may
// be faster. It never gives up what a model or a tool said in favour of another writer's
// entries.
func (t *turn) write(try func() error) error {
	return session.Retry(func() error {
		err := try()
		if errors.Is(err, session.ErrConflict) && !t.disturbed {
			t.disturbed = true
			t.publish(Event{Type: Error, Err: err})
		}
		return err
	}, func() error {
		if t.s.LeafID() != "" {
			return nil
		}
		// The session was empty. A session has one beginning, so the other's entries come
		// first.
		_, err := t.s.Refresh()
		return err
	})
}

// catchUp moves on to what others have added at the end of the conversation since the
// last turn. If they have moved elsewhere, the agent stays where it is: what a person was
// shown here must not drop out of the conversation.
func (t *turn) catchUp() error {
	leaf := t.s.LeafID()
	if _, err := t.s.Refresh(); err != nil {
		return err
	}
	now := t.s.LeafID()
	if now == leaf {
		return nil
	}
	t.recorded = recorded{}
	if leaf == "" {
		return nil
	}
	path, err := t.s.OutlinePath(now)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(path, func(e session.Entry) bool { return e.ID == leaf }) {
		return nil
	}
	return t.moveTo(leaf)
}

// moveTo moves the leaf. What was known about the path no longer holds.
func (t *turn) moveTo(id string) error {
	t.forget()
	return t.write(func() error { return t.s.Branch(id) })
}

// forget drops what is known about the conversation, because it is about to change.
func (t *turn) forget() {
	t.recorded, t.backoff = recorded{}, backoff{}
	t.count.forget()
}
