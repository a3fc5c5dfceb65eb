package conversation

import (
	"cmp"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/internal/boundary"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// defaultListLimit is the number of sessions in a list without a limit.
const defaultListLimit = 100

// Info is what a list says about a session or a conversation.
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
	// Err is why the session cannot be read, or nil. The fields above then have what is
	// known.
	Err error
}

// ListSessions returns a page of all sessions, most recently active first. A limit of 0 means
// 100, and a negative one no limit. Only the listed sessions are read, and each
// only once until it changes. If the store has an index (package index), it decides which
// sessions those are. If not, the first list looks through all logs, and later ones through
// those that have changed.
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
			d.Title, d.MessageCount = r.title, r.messages
		}
		list = append(list, d.Info)
	}
	return list, nil
}

// ListConversations is ListSessions with one line per conversation, however many sessions it
// has. The id is that of the original session, and the counts cover all of them. Messages on
// all branches count, and a conversation without a title gets the beginning of what its user
// said first. The command line lists the same.
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

// Info returns what a list says about the conversation that a session is part of. Together
// with LoadMessages, it is all that a program needs to show conversations page by page.
func (m *Sessions) Info(id string) (Info, error) {
	c, err := m.chain(id, reading)
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

// latestFirst is the order of lists. It compares milliseconds, because that is what the index
// stores.
func latestFirst(a, b time.Time, nameA, nameB string) int {
	return cmp.Or(cmp.Compare(b.UnixMilli(), a.UnixMilli()), cmp.Compare(nameB, nameA))
}

// page returns a part of a list.
func page[T any](list []T, limit, offset int) []T {
	if limit == 0 {
		limit = defaultListLimit
	}
	from := min(max(offset, 0), len(list))
	to := len(list)
	if limit > 0 {
		to = min(from+limit, to)
	}
	return list[from:to]
}

// described is what a list says about a session, and what that session knows about those
// before it.
type described struct {
	Info
	before boundary.Origin
	tokens boundary.Amount // of its own messages
}

// describe reads what a list says about a session. Listing must have no side effects: it does
// not push other sessions out of memory, and creates no replacement for a session that cannot
// be read.
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
	now, err := l.s.Remarks()
	d.Tags, d.Err = now.Tags, err
	d.ContinuedTo, d.ContinuationIndex = l.next, l.header.Continuation
	switch l.header.Relation {
	case session.RelationContinuation:
		d.ContinuedFrom = l.header.ParentSession
	case session.RelationRecovery:
		d.RecoveredFrom = l.header.ParentSession
	}
	d.MessageCount, d.TokenCount = len(l.Entries), sumOf(l.Entries).Total()
	d.before, d.tokens = l.Before, l.Own()
	return d
}

// row is what a list knows about a conversation or a session before reading it.
type row struct {
	id       string
	missing  []string
	title    string
	tags     []string
	messages int // on all branches; -1 if they have to be read to know
	active   time.Time
	last     *head // its last session
	whole    bool  // the last session knows about all those before it
}

// describeRow describes a conversation by its last session, which knows about those
// before it. If one is missing, or was missing when the next one was created, all
// sessions are read.
func (m *Sessions) describeRow(r *row) Info {
	d := m.describe(r.last)
	i := d.Info
	i.Tags = slices.Clone(r.tags)
	i.ID, i.ContinuedFrom, i.Missing = r.id, "", r.missing
	if i.Err != nil {
		return i
	}
	i.Title, i.CreatedAt = r.title, d.before.Created
	i.MessageCount, i.TokenCount = r.messages, d.before.Tokens.Plus(d.tokens).Total()
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

// rows returns the requested page of the list: of conversations or, with links, of sessions.
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

// rowOf returns what the heads of a conversation's sessions say about it.
func rowOf(c session.Linked, heads map[string]*head) row {
	r := row{id: c.ID, missing: c.Missing, whole: len(c.Missing) == 0}
	var first index.Title
	var given string
	var tags session.TagSet
	for i, name := range c.Links {
		h := heads[name]
		first = index.BetterTitle(first, h.first)
		if h.named != nil {
			given = *h.named
		}
		tags.Add(h.tags.Sorted()...)
		r.messages += h.messages - h.copies
		if h.active.After(r.active) {
			r.active = h.active
		}
		r.whole = r.whole && (i == 0 && h.link.Continues == "" || i > 0 && h.link.Continues == c.Links[i-1])
		r.last = h
	}
	r.title, r.tags = cmp.Or(given, first.Text), tags.Sorted()
	if !r.whole { // copies whose originals are gone count, and only reading shows which
		r.messages = -1
	}
	return r
}

// survey returns what is known about all sessions. It does not look at those that have not
// changed since the last time.
func (m *Sessions) survey() ([]*head, error) {
	ctx := m.context()
	if err := m.surveying.LockContext(ctx); err != nil {
		return nil, err
	}
	defer m.surveying.Unlock()
	fresh := make(map[string]*head)
	var all []*head
	listed, err := store.All(ctx, m.store)
	if err != nil {
		return nil, err
	}
	for _, l := range listed {
		h := m.heads[l.Name]
		if h == nil || h.stat != l.Stat || h.err != nil {
			h = readHead(ctx, m.store, l.Stat)
		}
		fresh[l.Name] = h
		all = append(all, h)
	}
	m.heads = fresh
	return all, nil
}
