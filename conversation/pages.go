package conversation

import (
	"errors"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/session"
)

// A page of a conversation that is not in memory is read without the rest of it. From the
// other messages we only need the first bytes of their lines, once.

// maxShelves is how many sessions stay open for more of their pages.
const maxShelves = 4

// shelves are sessions that somebody pages through, most recent last.
type shelves struct {
	mu   sync.Mutex // held while a page is read
	open []*shelf
}

// shelf is a session of which pages are read.
type shelf struct {
	name   string
	s      *session.Session
	leaf   string
	next   string   // the session that continues it, or ""
	ids    []string // of the messages that were not carried over
	before origin
}

// LoadMessages returns a page of a conversation's messages; the first page is 1
// and has the oldest. Only the messages of the page are read.
func (m *Sessions) LoadMessages(id string, page, pageSize int) ([]Message, error) {
	if page < 1 || pageSize < 1 {
		return nil, &session.Error{Op: "load messages", Name: id, Kind: session.ErrInvalid, Err: errors.New("page and page size must be at least 1")}
	}
	from := (page - 1) * pageSize
	if name := m.coldTail(id); name != "" {
		if messages, ok := m.coldPage(name, from, from+pageSize); ok {
			return messages, nil
		}
	}
	return m.warmPage(id, from, from+pageSize)
}

// warmPage reads a page by loading its sessions.
func (m *Sessions) warmPage(id string, from, to int) ([]Message, error) {
	if err := m.refreshTail(id, reading); err != nil {
		return nil, err
	}
	l, err := m.tail(id)
	if err != nil {
		return nil, err
	}
	m.cache.release(l)
	if !m.isWhole(l.header) {
		return m.pageWithGaps(id, from, to)
	}
	var parts [][]Message
	err = m.walkBack(id, func(l *link) bool {
		own, first := l.own(), l.before.messages
		if lo, hi := max(from-first, 0), min(to-first, len(own)); lo < hi {
			parts = append(parts, clones(own[lo:hi]))
		}
		return first > from
	})
	slices.Reverse(parts)
	return slices.Concat(parts...), err
}

// pageWithGaps reads a page of a conversation with a missing session.
func (m *Sessions) pageWithGaps(id string, from, to int) ([]Message, error) {
	var found []Message
	at := 0
	_, err := m.eachLink(id, func(_ *link, messages []session.Entry) {
		if lo, hi := max(from-at, 0), min(to-at, len(messages)); lo < hi {
			found = append(found, clones(messages[lo:hi])...)
		}
		at += len(messages)
	})
	return found, err
}

// coldTail returns the last session of a conversation if that is not in memory. It returns ""
// if it is, or if there is anything odd about it.
func (m *Sessions) coldTail(id string) string {
	id = m.resolve(id)
	m.mu.Lock()
	if known := m.tails[id]; known != "" {
		id = known
	}
	closed := m.closed
	m.mu.Unlock()
	m.shelves.mu.Lock()
	defer m.shelves.mu.Unlock()
	for seen := map[string]bool{}; !closed && !seen[id] && !m.cache.has(id); {
		seen[id] = true
		b, err := m.shelves.get(m, id)
		if err != nil {
			return ""
		}
		if b.next == "" {
			return id
		}
		id = b.next
	}
	return ""
}

// coldPage reads a page of a conversation that ends with a session. ok is false if that needs
// more than a look at the lines.
func (m *Sessions) coldPage(name string, from, to int) (_ []Message, ok bool) {
	m.shelves.mu.Lock()
	defer m.shelves.mu.Unlock()
	var parts [][]Message
	for {
		b, err := m.shelves.get(m, name)
		if err != nil || len(parts) == 0 && !m.isWhole(b.s.Header()) {
			return nil, false
		}
		first := b.before.messages
		if lo, hi := max(from-first, 0), min(to-first, len(b.ids)); lo < hi {
			part, err := b.read(lo, hi)
			if err != nil {
				return nil, false
			}
			parts = append(parts, part)
		}
		if first <= from {
			slices.Reverse(parts)
			return slices.Concat(parts...), true
		}
		name = b.s.Header().ParentSession
	}
}

// read reads some of the messages.
func (b *shelf) read(lo, hi int) (messages []Message, _ error) {
	for e, err := range b.s.Each(b.ids[lo:hi]...) {
		if err != nil {
			return nil, err
		}
		if e.Message == nil {
			return nil, session.ErrCorrupt // it cannot be read
		}
		messages = append(messages, fromEntry(e))
	}
	return messages, nil
}

// get returns the shelf of a session, brought up to date.
func (s *shelves) get(m *Sessions, name string) (*shelf, error) {
	at := slices.IndexFunc(s.open, func(b *shelf) bool { return b.name == name })
	if at >= 0 {
		b := s.open[at]
		s.open = append(slices.Delete(s.open, at, at+1), b)
		if _, err := b.s.Refresh(); err != nil || b.s.LeafID() != b.leaf {
			s.drop(b)
		} else {
			return b, nil
		}
	}
	b, err := openShelf(m, name)
	if err != nil {
		return nil, err
	}
	if s.open = append(s.open, b); len(s.open) > maxShelves {
		s.drop(s.open[0])
	}
	return b, nil
}

func (s *shelves) drop(b *shelf) {
	s.open = slices.DeleteFunc(s.open, func(other *shelf) bool { return other == b })
	_ = b.s.Close() // cannot lose anything: nothing was written
}

// close closes all sessions.
func (s *shelves) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.open) > 0 {
		s.drop(s.open[0])
	}
}

// openShelf opens a session and finds its own messages.
func openShelf(m *Sessions, name string) (*shelf, error) {
	s, err := session.Open(m.context(), m.store, name, m.sessionOptions())
	if err != nil {
		return nil, err
	}
	b := &shelf{name: name, s: s, leaf: s.LeafID(), before: origin{root: s.ID()}}
	if err = b.sort(); err == nil {
		b.next, err = s.Continuation() // after sort, which reads the tree that says where to look
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return b, nil
}

// sort finds the messages that were not carried over. Carried ones are at the beginning.
func (b *shelf) sort() error {
	ids, err := b.s.MessageIDs()
	if err != nil {
		return err
	}
	h := b.s.Header()
	carried, marked := session.CarriedIn(&h), false
	var maybe []string // the session's own, unless the marker is still to come
	n := 0
	for ; n < len(ids) && carried.Open; n++ {
		e, err := b.s.Entry(ids[n])
		if err != nil {
			return err
		}
		copied, before := carried.Take(session.CarryOf(&e))
		switch {
		case before:
			b.before, maybe, marked = originFrom(&e, b.before), nil, true
		case !copied:
			maybe = append(maybe, ids[n])
		}
	}
	b.ids = append(maybe, ids[n:]...)
	if h.Relation == session.RelationContinuation && !marked {
		return errors.New("it does not name the session before it") // loading it finds out
	}
	return nil
}
