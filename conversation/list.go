package conversation

import (
	"cmp"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// DefaultListLimit is how many sessions a list has if no limit is given.
const DefaultListLimit = 100

// Info is what a list says of a session or of a conversation.
type Info struct {
	ID                string
	Title             string
	Tags              []string
	CreatedAt         time.Time
	LastActive        time.Time // when something was last said
	MessageCount      int
	TokenCount        int
	ContinuedFrom     string
	ContinuedTo       string
	ContinuationIndex int
	RecoveredFrom     string
	// Missing are sessions of a conversation that are not there.
	Missing []string
	// Err is why the session cannot be read, or nil. The fields above are then
	// as far as they are known.
	Err error
}

// ListSessions returns a part of all sessions, the most recently active first. A
// limit of 0 is DefaultListLimit; a negative one is none. Only the sessions that
// are listed are read, and each only once until it changes. Which those are the
// store's index says, if it has one (package index, which coppice ls keeps); if not,
// all logs are looked through the first time, and later those that have changed.
func (m *Sessions) ListSessions(limit, offset int) ([]Info, error) {
	rows, err := m.rows(limit, offset, true)
	if err != nil {
		return nil, err
	}
	list := make([]Info, 0, len(rows))
	for i := range rows {
		r := &rows[i]
		d := *m.describe(r.last)
		if d.Err == nil {
			d.Title, d.MessageCount = cmp.Or(d.Title, r.title), r.messages
		}
		list = append(list, d.Info)
	}
	return list, nil
}

// ListConversations is ListSessions with one line for each conversation, however
// many sessions it has: the id is the original's, the counts are of all. They are
// the lines of coppice ls: messages count on all branches, and a conversation
// without a title has the beginning of what its user said first.
func (m *Sessions) ListConversations(limit, offset int) ([]Info, error) {
	rows, err := m.rows(limit, offset, false)
	if err != nil {
		return nil, err
	}
	list := make([]Info, 0, len(rows))
	for i := range rows {
		list = append(list, m.describeRow(&rows[i]))
	}
	return list, nil
}

// Info returns what a list says of the conversation that a session is part of. With
// LoadMessages it is what a program needs that shows conversations page by page.
func (m *Sessions) Info(id string) (Info, error) {
	c, err := m.chain(id)
	if err != nil {
		return Info{}, err
	}
	heads := make(map[string]*head)
	for _, name := range c.Links {
		heads[name] = readHead(m.context(), m.store, store.Stat{Name: name})
	}
	r := rowOf(c, heads)
	i := m.describeRow(&r)
	return i, i.Err
}

// latestFirst is the order of lists. The index knows times to the millisecond.
func latestFirst(a, b time.Time, nameA, nameB string) int {
	return cmp.Or(cmp.Compare(b.UnixMilli(), a.UnixMilli()), cmp.Compare(nameB, nameA))
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

// described is what a list says of a session, and what it knows of those before.
type described struct {
	Info
	before origin
	own    int    // messages, without what was carried over
	tokens amount // of these
}

// describe reads what a list says of a session. Listing does not push other
// sessions out of memory, nor does it put anything in the place of what cannot be
// read.
func (m *Sessions) describe(h *head) *described {
	if known := h.described.Load(); known != nil {
		return known
	}
	d := m.read(h)
	if d.Err == nil {
		h.described.Store(d)
	}
	return d
}

func (m *Sessions) read(h *head) *described {
	d := &described{Info: Info{ID: h.link.ID, LastActive: h.active}}
	if d.Err = h.err; d.Err != nil {
		return d
	}
	l, err := m.load(h.link.ID)
	if err != nil {
		d.Err = err
		return d
	}
	defer l.s.Close()
	d.Title, d.CreatedAt, d.LastActive = l.title, l.header.CreatedAt, l.active
	d.Tags, d.Err = l.s.Tags()
	d.ContinuedTo, d.ContinuationIndex = l.next, l.header.Continuation
	switch l.header.Relation {
	case session.RelationContinuation:
		d.ContinuedFrom = l.header.ParentSession
	case session.RelationRecovery:
		d.RecoveredFrom = l.header.ParentSession
	}
	d.MessageCount, d.TokenCount = len(l.entries), sumOf(l.entries)
	d.before, d.own, d.tokens = l.before, len(l.entries)-l.copies, l.tokens()
	return d
}

// row is what a list knows of a conversation, or of a session, before it is read.
type row struct {
	id       string
	missing  []string
	title    string // unless somebody gave it one
	messages int    // on all branches; -1 if only reading them tells
	active   time.Time
	last     *head // its last session
	whole    bool  // the last session knows of all before it
}

// describeRow describes a conversation by its last session, which knows of those
// before it unless one is missing, or was when the one after it was made: then all
// that are there are read.
func (m *Sessions) describeRow(r *row) Info {
	d := m.describe(r.last)
	i := d.Info
	i.Tags = slices.Clone(i.Tags)
	i.ID, i.ContinuedFrom, i.Missing = r.id, "", r.missing
	if i.Err != nil {
		return i
	}
	i.Title, i.CreatedAt = cmp.Or(i.Title, r.title), d.before.created
	i.MessageCount, i.TokenCount = r.messages, d.before.tokens.plus(d.tokens).total()
	if !r.whole {
		var t Totals
		if t, i.Err = m.count(Totals{Tail: r.last.link.ID}); i.Err == nil {
			i.TokenCount = t.Tokens
			if r.messages < 0 {
				i.MessageCount = t.Messages
			}
		}
	}
	return i
}

// rows returns the part of the list that is wanted, of conversations or, with links,
// of sessions.
func (m *Sessions) rows(limit, offset int, links bool) ([]row, error) {
	if rows, ok := m.rowsFromIndex(limit, offset, links); ok {
		return rows, nil
	}
	heads, err := m.survey()
	if err != nil {
		return nil, err
	}
	byName := make(map[string]*head, len(heads))
	var joined []session.Link
	var chains []session.Linked
	for _, h := range heads {
		byName[h.stat.Name] = h
		if h.err == nil && !links {
			joined = append(joined, h.link)
		} else {
			chains = append(chains, session.Linked{ID: h.stat.Name, Links: []string{h.stat.Name}})
		}
	}
	chains = append(chains, session.JoinLinks(joined)...)
	rows := make([]row, 0, len(chains))
	for _, c := range chains {
		r := rowOf(c, byName)
		if links {
			r.messages = r.last.messages
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int { return latestFirst(a.active, b.active, a.id, b.id) })
	return page(rows, limit, offset), nil
}

// rowOf returns what the heads of a conversation's sessions say of it.
func rowOf(c session.Linked, heads map[string]*head) row {
	r := row{id: c.ID, missing: c.Missing, whole: len(c.Missing) == 0}
	var first index.Title
	for i, name := range c.Links {
		h := heads[name]
		first = index.BetterTitle(first, h.first)
		r.messages += h.messages - h.carried
		if h.active.After(r.active) {
			r.active = h.active
		}
		r.whole = r.whole && (i == 0 && h.link.Continues == "" || i > 0 && h.link.Continues == c.Links[i-1])
		r.last = h
	}
	r.title = first.Text
	if !r.whole { // copies count whose originals are gone
		r.messages = -1
	}
	return r
}

// survey returns what is known of all sessions. Those that have not changed since
// the last time are not looked at.
func (m *Sessions) survey() ([]*head, error) {
	ctx := m.context()
	if err := m.surveying.LockContext(ctx); err != nil {
		return nil, err
	}
	defer m.surveying.Unlock()
	fresh := make(map[string]*head)
	var all []*head
	for stat, err := range m.store.List(ctx) {
		if err != nil && stat.Name == "" {
			return nil, err
		}
		h := m.heads[stat.Name]
		if h == nil || h.stat != stat || h.err != nil {
			h = readHead(ctx, m.store, stat)
		}
		fresh[stat.Name] = h
		all = append(all, h)
	}
	m.heads = fresh
	return all, nil
}
