package conversation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// DefaultListLimit is how many sessions a list has if no limit is given.
const DefaultListLimit = 100

// Info is what a list says of a session or of a conversation.
type Info struct {
	ID                string
	Title             string
	CreatedAt         time.Time
	LastActive        time.Time
	MessageCount      int
	TokenCount        int
	ContinuedFrom     string
	ContinuedTo       string
	ContinuationIndex int
	RecoveredFrom     string
	// Err is why the session cannot be read, or nil. The fields above are then
	// as far as they are known.
	Err error
}

// ListSessions returns a part of all sessions, the most recently modified first.
// A limit of 0 is DefaultListLimit; a negative one is none. Only the sessions
// that are listed are read.
func (m *Sessions) ListSessions(limit, offset int) ([]Info, error) {
	stats, err := m.stats()
	if err != nil {
		return nil, err
	}
	var list []Info
	for _, stat := range page(stats, limit, offset) {
		list = append(list, m.describe(stat, false))
	}
	return list, nil
}

// ListConversations is ListSessions with one line for each conversation, however
// many sessions it has: the id is the original's, the counts are of all.
func (m *Sessions) ListConversations(limit, offset int) ([]Info, error) {
	stats, err := m.stats()
	if err != nil {
		return nil, err
	}
	if limit == 0 {
		limit = DefaultListLimit
	}
	var list []Info
	seen := make(map[string]bool)
	for _, stat := range stats {
		if limit > 0 && len(list) == offset+limit {
			break
		}
		described := m.describe(stat, true)
		if !seen[described.ID] {
			seen[described.ID] = true
			list = append(list, described)
		}
	}
	return page(list, -1, offset), nil
}

// page returns a part of a list.
func page[T any](list []T, limit, offset int) []T {
	if limit == 0 {
		limit = DefaultListLimit
	}
	from := min(max(offset, 0), len(list))
	to := len(list)
	if limit > 0 {
		to = min(from+limit, to)
	}
	return list[from:to]
}

// stats returns what the store says of its logs, the most recently modified
// first.
func (m *Sessions) stats() ([]store.Stat, error) {
	var stats []store.Stat
	for stat, err := range m.store.List(context.Background()) {
		if err != nil && stat.Name == "" {
			return nil, err
		}
		stats = append(stats, stat)
	}
	slices.SortFunc(stats, func(a, b store.Stat) int {
		return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(b.Name, a.Name))
	})
	return stats, nil
}

// describe reads what a list says of a session, or of the whole conversation
// that it is part of. Listing does not push other sessions out of memory, nor
// does it put anything in the place of what cannot be read.
func (m *Sessions) describe(stat store.Stat, whole bool) Info {
	d := Info{ID: stat.Name, LastActive: stat.Modified}
	l, err := m.peek(stat.Name)
	if err == nil && whole && l.next != "" {
		l, err = m.peekTail(l)
	}
	if err != nil {
		d.Err = err
		return d
	}
	d.Title, d.CreatedAt, d.LastActive = l.title, l.header.CreatedAt, l.active
	d.ContinuedTo, d.ContinuationIndex = l.next, l.header.Continuation
	switch l.header.Relation {
	case session.RelationContinuation:
		d.ContinuedFrom = l.header.ParentSession
	case session.RelationRecovery:
		d.RecoveredFrom = l.header.ParentSession
	}
	if whole {
		d.ID, d.CreatedAt, d.ContinuedFrom = l.before.root, l.before.created, ""
		d.MessageCount, d.TokenCount = l.count(), l.before.tokens.plus(l.tokens()).total()
		return d
	}
	d.MessageCount = len(l.entries)
	for i := range l.entries {
		d.TokenCount += fromEntry(l.entries[i]).tokens()
	}
	return d
}

// peek reads a session without keeping it open.
func (m *Sessions) peek(id string) (*link, error) {
	l, err := m.load(id)
	if err != nil {
		return nil, err
	}
	return l, l.s.Close()
}

// peekTail reads the last link of a chain that there is.
func (m *Sessions) peekTail(l *link) (*link, error) {
	for seen := map[string]bool{}; l.next != "" && !seen[l.id]; {
		seen[l.id] = true
		next, err := m.peek(l.next)
		if errors.Is(err, session.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		l = next
	}
	return l, nil
}
