package conversation

import (
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// A conversation is a chain of sessions, and whatever is added goes to its end. What is the end
// depends on the session that the log of a link names as its continuation:
//
//	that session is            the link is     a writer (see append.go)
//	not named                  the end         appends or, at the boundary, continues the link
//	there, and continues it    not the end     goes on to that session
//	missing, or not there yet  the end         continues the link: session.Session.Continue creates
//	                                           the session or, if it was lost, names another
//	there, of another          the end         continues the link: Continue names another
//	there, and unreadable      the end         goes on to its replacement: see recover.go
//
// Behind a session that is missing there may be others, which only the whole chain shows. Say that
// s0 named s1, which is lost, and that s2 continues s1. Then the end is s2: session.FindChain finds
// it by the marker of s2. That may read every log of the store, so it is done once for each gap.

// access says what a session is wanted for. Reading never writes: it must not bring back a
// session that was removed.
type access bool

const (
	reading access = false
	writing access = true
)

// knownEnd is where a conversation ended when we last looked.
type knownEnd struct {
	link    string // "" if we never looked
	next    string // the session that the link named as its continuation, or ""
	isThere bool   // next is there, but it cannot be read, or does not continue the link
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
	var seen []string
	for err == nil {
		if slices.Contains(seen, l.id) {
			err = &session.Error{Op: "follow", Name: id, Kind: session.ErrCorrupt, Err: errors.New("its continuations form a circle")}
			break
		}
		seen = append(seen, l.id)
		now, next := knownEnd{l.id, l.next, l.next != "" && m.isThere(l.next)}, ""
		if now.isThere && (a == writing || now != known) {
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
			seen = nil
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
