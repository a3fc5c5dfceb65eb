package conversation

import (
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/internal/boundary"
	"github.com/coppice-dev/coppice/session"
)

// A page of a conversation that is not in memory is read without the rest of it. From the
// other messages we only need the first bytes of their lines, once.

// maxShelves is how many sessions stay open for more of their pages.
const maxShelves = 4

// shelf is a session whose pages are read.
type shelf struct {
	name   string
	s      *session.Session
	leaf   string
	next   string   // the session that continues it, or ""
	ids    []string // of the messages that were not carried over
	before boundary.Origin
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
	m.release(l)
	if !m.isWhole(l.header) {
		return m.pageWithGaps(id, from, to)
	}
	var parts [][]Message
	err = m.walkBack(id, func(l *link) bool {
		own, first := l.own(), l.before.Messages
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
	for seen := map[string]bool{}; !closed && !seen[id] && !m.links.Has(id); {
		seen[id] = true
		b, err := m.shelf(id)
		if err != nil {
			return ""
		}
		m.shelves.Release(id, b)
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
	var parts [][]Message
	for {
		b, err := m.shelf(name)
		if err != nil {
			return nil, false
		}
		first := b.before.Messages
		part, err := b.read(max(from-first, 0), min(to-first, len(b.ids)))
		h := b.s.Header()
		m.shelves.Release(name, b)
		if err != nil || len(parts) == 0 && !m.isWhole(h) {
			return nil, false
		}
		parts = append(parts, part)
		if first <= from {
			slices.Reverse(parts)
			return slices.Concat(parts...), true
		}
		name = h.ParentSession
	}
}

// read reads some of the messages.
func (b *shelf) read(lo, hi int) (messages []Message, _ error) {
	if lo >= hi {
		return nil, nil
	}
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

// shelf returns the shelf of a session, brought up to date. The caller releases it.
func (m *Sessions) shelf(name string) (*shelf, error) {
	open := func() (*shelf, error) { return openShelf(m, name) }
	b, err := m.shelves.Get(m.context(), name, open)
	if err != nil {
		return nil, err
	}
	if _, err := b.s.Refresh(); err == nil && b.s.LeafID() == b.leaf {
		return b, nil
	}
	m.shelves.Drop(name)
	return m.shelves.Get(m.context(), name, open)
}

// close closes the session, which was only read.
func (b *shelf) close() (gone bool) {
	_ = b.s.Close()
	return true
}

// openShelf opens a session and finds its own messages.
func openShelf(m *Sessions, name string) (*shelf, error) {
	s, err := session.Open(m.context(), m.store, name, m.sessionOptions())
	if err != nil {
		return nil, err
	}
	b := &shelf{name: name, s: s, leaf: s.LeafID(), before: boundary.Origin{Root: s.ID()}}
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
	path, err := b.s.OutlinePath("")
	if err != nil {
		return err
	}
	var ids []string // of the messages
	for i := range path {
		if path[i].Type == session.TypeMessage {
			ids = append(ids, path[i].ID)
		}
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
			b.before, maybe, marked = boundary.OriginFrom(&e, b.before), nil, true
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
