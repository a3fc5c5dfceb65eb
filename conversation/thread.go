package conversation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// A conversation is a chain of sessions, and this file adds to its end. What is the end depends on
// the session that the log of a link names as its continuation:
//
//	that session is            the link is         a writer
//	not named                  the end             appends or, at the boundary, continues the link
//	there, and continues it    before the end      goes to the end
//	named and not there (yet)  the end             continues the link: see session.Session.Continue
//	there, and unreadable      the end to readers  writes to its replacement: see recover.go
//	there, and of another      the end             continues the link in a session of another name
//
// For example, s0 is full, and two managers each add a message to it. Both find that it is the
// end, and both call Continue:
//
//	one     names s1 in the log of s0, then creates s1
//	other   reads the name, cannot create s1, and gets ErrExist
//
// Both look for the end again, find s1, and append there. What is tried again is always the whole
// of it: find the end, lock it, decide, write. After an attempt that may or may not have landed,
// we ask the conversation which of the entries it has.

// maxAttempts is how often a write is tried while others are faster. Every failed attempt means
// that another writer's succeeded.
const maxAttempts = 1000

// maxReopened is how often a session is opened again for one operation, because it can no longer
// be used: see session.MustReopen.
const maxReopened = 3

// errNotEnd means that a link is full, or was continued since it was found to be the end. It is
// never returned to a caller.
var errNotEnd = errors.New("the session is not the end of its conversation")

// access says what a session is wanted for. Reading never writes: it must not bring back a
// session that was removed.
type access bool

const (
	reading access = false
	writing access = true
)

// knownEnd is where a conversation ended when we last looked.
type knownEnd struct {
	link string // or "" if we never looked
	next string // the session that the link names, which is missing or
	odd  bool   // there, but cannot be read or does not continue the link
}

// end returns the last link of the conversation that a session is part of, as it is stored now,
// and locked. The caller calls done. The session itself may be missing, as long as another names
// it.
//
// From where the conversation ended the last time, it follows what others have added since. Where
// a session is missing, package session says which are the others, once.
func (m *Sessions) end(id string, a access) (l *link, done func(), err error) {
	m.mu.Lock()
	known := m.ends[id]
	m.mu.Unlock()
	searched := known.link == ""
	if !searched {
		l, done, err = m.use(known.link, a)
		searched = isLost(err)
	}
	if searched {
		l, done, err = m.searchEnd(id, a)
	}
	for seen := make(map[string]bool); err == nil; {
		if seen[l.id] {
			err = &session.Error{Op: "follow", Name: id, Kind: session.ErrCorrupt, Err: errors.New("its continuations form a circle")}
			break
		}
		seen[l.id] = true
		now, next := knownEnd{l.id, l.next, m.isThere(l.next)}, ""
		if now.odd && (a == writing || now != known) {
			next, err = m.following(l, a)
		}
		switch isEnd := l.next == "" || searched || now == known; {
		case err != nil:
		case next != "":
			done()
			l, done, err = m.use(next, a)
		case isEnd:
			m.rememberEnd(id, now)
			return l, done, nil
		default:
			done()
			searched = true
			clear(seen)
			l, done, err = m.searchEnd(id, a)
		}
	}
	if done != nil {
		done()
	}
	return nil, nil, err
}

// searchEnd is end for a conversation of which nothing is known.
func (m *Sessions) searchEnd(id string, a access) (*link, func(), error) {
	chain, err := m.chainOf(id, a)
	if err != nil {
		return nil, nil, err
	}
	return m.use(chain.Links[len(chain.Links)-1], a)
}

// following returns the session with which a conversation goes on after the one that a link names,
// which is there, or "" if it does not.
func (m *Sessions) following(l *link, a access) (string, error) {
	next, err := m.acquire(l.next, a)
	if isLost(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer m.release(next)
	isReplaced := next.id != l.next
	if isReplaced || next.header.Relation == session.RelationContinuation && next.header.ParentSession == l.id {
		return next.id, nil
	}
	return "", nil
}

// chainOf returns which sessions a conversation consists of. If the session that is asked for
// cannot be read, and no other names it, that is the conversation of its replacement.
func (m *Sessions) chainOf(id string, a access) (session.Linked, error) {
	if err := m.check(id); err != nil {
		return session.Linked{}, err
	}
	chain, err := session.FindChain(m.context(), m.store, m.resolve(id), nil)
	if !errors.Is(err, session.ErrCorrupt) {
		return chain, err
	}
	l, err := m.acquire(id, a)
	if err != nil {
		return chain, err
	}
	m.release(l)
	return session.FindChain(m.context(), m.store, l.id, nil)
}

// isLost reports whether an error means that a session counts as missing.
func isLost(err error) bool {
	return errors.Is(err, session.ErrNotExist) || errors.Is(err, session.ErrCorrupt)
}

func (m *Sessions) rememberEnd(id string, end knownEnd) {
	const enough = 10_000
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ends) >= enough {
		clear(m.ends)
	}
	m.ends[id] = end
}

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
	err = l.write(m.context(), func() ([]session.Entry, error) {
		limit := m.limitOf(l)
		if l.next != "" || l.Due(&entries[0], limit) {
			return nil, errNotEnd
		}
		batch = entries[:min(len(entries), max(1, limit-len(l.Entries)))] // after these, the boundary may be due before any entry
		return batch, nil
	})
	switch {
	case err == nil:
		return entries[len(batch):], nil, nil
	case errors.Is(err, errNotEnd):
		moved, err = m.continueLink(l, &entries[0])
		if errors.Is(err, session.ErrExist) || errors.Is(err, session.ErrConflict) { // another writer was faster
			err = nil
		}
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
			edits = append(edits, cleared(target))
		}
		return edits, nil
	})
}

// cleared returns the entry that removes a message from the context.
func cleared(id string) session.Entry {
	return session.Entry{ID: newID(), Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: id}}
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

// isThere reports whether there is a session of an id.
func (m *Sessions) isThere(id string) bool {
	there, err := m.exists(id)
	return there && err == nil
}

// exists is isThere for a caller that wants to know why it is not known.
func (m *Sessions) exists(id string) (bool, error) {
	if err := store.CheckName(id); err != nil {
		return false, err
	}
	_, err := m.store.Stat(m.context(), id)
	if errors.Is(err, session.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
