package conversation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// This file adds to the end of a conversation, which others may do at the same time. Every attempt
// finds the end, locks it, decides what to do, and writes only if what it decided from is still so.
// If others were faster, all of it is done again.
//
// For example, s0 is full, and two managers each add a message. Both find that s0 is the end, and
// both continue it:
//
//	one     names s1 in the log of s0, creates s1
//	other   reads the name, cannot create s1 (ErrExist)
//
// Both find the end again, which is s1 now, and append there. If an attempt ends without our knowing
// whether its entries are in the log, we ask the conversation which it has, and append the others.

// maxAttempts is how often a write is tried while others are faster. Every failed attempt means
// that another writer's succeeded.
const maxAttempts = 1000

// errNotEnd means that a link is full, or was continued since it was found to be the end. It is
// never returned to a caller.
var errNotEnd = errors.New("the session is not the end of its conversation")

// append adds entries at the end of a conversation, and returns the transitions that happened.
// Entries must have ids, because that is how those of an append with an unknown outcome are looked
// up: an entry that the conversation has is not written again.
func (m *Sessions) append(id string, entries ...session.Entry) (transitions []Transition, _ error) {
	reopened := 0
	for failed := 0; failed < maxAttempts; failed++ {
		l, done, err := m.end(id, writing)
		if err != nil {
			return transitions, err
		}
		rest, moved, err := m.appendTo(l, entries)
		done()
		switch {
		case moved != nil:
			m.moved(*moved)
			m.rememberEnd(id, knownEnd{link: moved.To})
			transitions = append(transitions, *moved)
		case session.MustReopen(err) && reopened < maxReopened:
			reopened++
			m.links.Drop(l.id)
			rest, err = m.lacking(id, rest)
		case errors.Is(err, session.ErrExist):
			known := len(rest)
			if rest, _ = m.lacking(id, rest); len(rest) < known {
				err = nil
			}
		}
		if err != nil {
			return transitions, err
		}
		if len(rest) == 0 {
			m.advance(id, l.id)
			return transitions, nil
		}
		if len(rest) < len(entries) || moved != nil {
			failed = 0
		}
		entries = rest
	}
	return transitions, tooSlow("append", id)
}

// appendTo adds as many of the entries to a link as belong there, and returns the rest. moved is
// set if the link was continued instead.
func (m *Sessions) appendTo(l *link, entries []session.Entry) (rest []session.Entry, moved *Transition, err error) {
	var batch []session.Entry
	limit := m.limitOf(l)
	isFull := func() bool { return l.next != "" || l.Due(&entries[0], limit) }
	if !isFull() {
		err = l.write(m.context(), func() ([]session.Entry, error) {
			if isFull() { // others have written
				return nil, errNotEnd
			}
			batch = entries[:min(len(entries), max(1, limit-len(l.Entries)))] // after these, the boundary may be due before any entry
			return batch, nil
		})
		if err == nil {
			return entries[len(batch):], nil, nil
		}
		if !errors.Is(err, errNotEnd) {
			return entries, nil, err
		}
	}
	moved, err = m.continueLink(l, &entries[0])
	if errors.Is(err, session.ErrExist) || errors.Is(err, session.ErrConflict) { // another writer was faster
		err = nil
	}
	return entries, moved, err
}

// lacking returns those of the entries that a conversation does not have.
func (m *Sessions) lacking(id string, entries []session.Entry) ([]session.Entry, error) {
	ids := make([]string, len(entries))
	for i := range entries {
		ids[i] = entries[i].ID
	}
	known, err := m.known(id, ids...)
	return slices.DeleteFunc(slices.Clone(entries), func(e session.Entry) bool { return known[e.ID] }), err
}

// known returns which of some ids entries of a conversation have.
func (m *Sessions) known(id string, ids ...string) (known map[string]bool, _ error) {
	err := m.inWhole(id, func(w *whole) (err error) {
		known = make(map[string]bool)
		for i := 0; i < len(ids) && err == nil; i++ {
			known[ids[i]], err = w.WithContext(m.context()).Has(ids[i])
		}
		return err
	})
	return known, err
}

// tooSlow is the error of a writer that others were always ahead of.
func tooSlow(op, id string) error {
	return &session.Error{Op: op, Name: id, Kind: session.ErrConflict, Err: errors.New("other writers kept getting there first")}
}

// change appends to the last link of a conversation whatever choose returns for that link in its
// present state. That may be nothing.
func (m *Sessions) change(op, id string, choose func(*link) ([]session.Entry, error)) error {
	for range maxAttempts {
		l, done, err := m.end(id, writing)
		if err != nil {
			return err
		}
		next := l.next
		err = l.write(m.context(), func() ([]session.Entry, error) {
			if l.next != next {
				return nil, errNotEnd
			}
			return choose(l)
		})
		done()
		if !errors.Is(err, errNotEnd) {
			return err
		}
	}
	return tooSlow(op, id)
}

// clear removes messages of the last link of a conversation from the context. They stay in the
// log.
func (m *Sessions) clear(id string, targets func(*link) []string) error {
	return m.change("clear", id, func(l *link) (edits []session.Entry, _ error) {
		for _, target := range targets(l) {
			edits = append(edits, session.ContextEdit(target))
		}
		return edits, nil
	})
}

// advance makes the conversation's last session the current one, if the conversation is the
// current one.
func (m *Sessions) advance(id, end string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == id {
		m.current = end
	}
}

// limitOf returns how many messages a link may have. The link is locked.
func (m *Sessions) limitOf(l *link) int {
	if l.config.MaxMessages > 0 {
		return l.config.MaxMessages
	}
	return m.Settings().MaxMessagesPerSession
}

// continueLink starts the continuation of a link, for a message or, if that is nil, because the
// caller asked for it. The link is locked. If another writer has continued it, the error matches
// session.ErrExist; if another has added to it since we read it, session.ErrConflict.
func (m *Sessions) continueLink(l *link, first *session.Entry) (*Transition, error) {
	if l.s.LeafID() != l.leaf { // write has seen that others were faster, and the record must follow theirs
		return nil, tooSlow("continue", l.id)
	}
	ctx := m.context()
	s, err := l.s.WithContext(ctx).Continue(l.Carry(m.limitOf(l), first)...)
	if errors.Is(err, session.ErrExist) {
		return nil, errors.Join(err, l.read(ctx, l.s.LeafID())) // the record may be beside the path
	}
	if err != nil {
		return nil, err
	}
	next, err := m.adopt(s)
	if err != nil {
		return nil, err
	}
	defer m.release(next)
	l.modified = true // by the record
	if err := l.readTo(ctx, l.s.LeafID()); err != nil {
		return nil, err
	}
	return &Transition{Conversation: next.Before.Root, From: l.id, To: next.id, Index: next.header.Continuation}, nil
}

// moved records that a conversation continues in another session.
func (m *Sessions) moved(t Transition) {
	m.mu.Lock()
	if m.current == t.From {
		m.current = t.To
	}
	m.mu.Unlock()
	m.options.Logger.Info("conversation continued in another session", "conversation", t.Conversation, "from", t.From, "to", t.To, "index", t.Index)
}

// report calls OnTransition. It is called without locks, so that the function can call any
// method.
func (m *Sessions) report(transitions []Transition) {
	for _, t := range transitions {
		m.options.OnTransition(t)
	}
}

// AddMessage adds a message at the end of the conversation that a session is part of,
// and returns it as it was stored. If the session is full, the message goes into its
// continuation. Missing fields (id, time, category) are filled in.
func (m *Sessions) AddMessage(id string, msg Message) (Message, error) {
	given := msg.ID != ""
	msg, moved, err := m.addMessage(id, msg.withDefaults(now()), given)
	m.report(moved)
	return msg, err
}

// addMessage is AddMessage without calling OnTransition. given is true if the caller
// chose the message's id; ours are unique.
func (m *Sessions) addMessage(id string, msg Message, given bool) (Message, []Transition, error) {
	if err := errors.Join(msg.Validate(), session.CheckRole(msg.Role)); err != nil {
		return Message{}, nil, err
	}
	e, err := msg.own()
	if err != nil {
		return Message{}, nil, err
	}
	if given {
		known, err := m.known(id, msg.ID)
		if known[msg.ID] {
			err = &session.Error{Op: "add message", Name: id, Kind: session.ErrExist, Err: fmt.Errorf("message %q", msg.ID)}
		}
		if err != nil && !errors.Is(err, session.ErrCorrupt) { // else appending tells
			return Message{}, nil, err
		}
	}
	moved, err := m.append(id, e)
	if err != nil {
		return Message{}, moved, err
	}
	return msg, moved, nil
}

// CheckSessionBoundary reports whether a session is full. The zero Session means the current
// one.
func (m *Sessions) CheckSessionBoundary(s Session) bool {
	s, err := m.orCurrent(s)
	return err == nil && s.MessageCount() >= m.Settings().MaxMessagesPerSession
}

// CreateContinuationSession starts the continuation of a session, full or not, and
// makes it the current one. The zero Session means the current one. If the session has
// been continued already, that continuation is returned.
func (m *Sessions) CreateContinuationSession(source Session) (Session, error) {
	source, err := m.orCurrent(source)
	if err != nil {
		return Session{}, err
	}
	if _, err := m.SaveSession(source); err != nil {
		return Session{}, err
	}
	next, err := m.continuationOf(source.ID)
	if err != nil {
		return Session{}, err
	}
	return m.LoadSession(next)
}

// continuationOf returns the continuation of a session, and creates it if there is none.
func (m *Sessions) continuationOf(id string) (next string, _ error) {
	err := session.Retry(func() error {
		l, done, err := m.use(id, reading)
		if err != nil {
			return err
		}
		moved, err := m.continueLink(l, nil)
		next = l.next
		done()
		if moved != nil {
			m.moved(*moved)
			m.report([]Transition{*moved})
		}
		if errors.Is(err, session.ErrExist) {
			err = nil
		}
		return err
	}, nil)
	return next, err
}

// Tail returns the id of the session that messages of a conversation are added to. If
// the session that should follow is not there, another one is created.
func (m *Sessions) Tail(id string) (string, error) {
	l, done, err := m.end(id, writing)
	if err != nil {
		return "", err
	}
	next := l.next
	done()
	if next == "" {
		return l.id, nil
	}
	return m.continuationOf(l.id)
}
