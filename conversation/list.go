package conversation

import (
	"cmp"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
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
// are listed are read, and each only once until it changes; of the others the
// first and last lines. For very many sessions there is package index.
func (m *Sessions) ListSessions(limit, offset int) ([]Info, error) {
	heads, err := m.survey()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(heads, func(a, b *head) int { return latestFirst(a.active, b.active, a.stat.Name, b.stat.Name) })
	var list []Info
	for _, h := range page(heads, limit, offset) {
		list = append(list, m.describe(h).Info)
	}
	return list, nil
}

func latestFirst(a, b time.Time, nameA, nameB string) int {
	return cmp.Or(b.Compare(a), cmp.Compare(nameB, nameA))
}

// ListConversations is ListSessions with one line for each conversation, however
// many sessions it has: the id is the original's, the counts are of all.
func (m *Sessions) ListConversations(limit, offset int) ([]Info, error) {
	heads, err := m.survey()
	if err != nil {
		return nil, err
	}
	byName := make(map[string]*head, len(heads))
	links := make([]session.Link, 0, len(heads))
	var chains []session.Linked
	for _, h := range heads {
		byName[h.stat.Name] = h
		if h.err == nil {
			links = append(links, h.link)
		} else {
			chains = append(chains, session.Linked{ID: h.stat.Name, Links: []string{h.stat.Name}})
		}
	}
	chains = append(chains, session.JoinLinks(links)...)
	active := func(c *session.Linked) (latest time.Time) {
		for _, name := range c.Links {
			if at := byName[name].active; at.After(latest) {
				latest = at
			}
		}
		return latest
	}
	slices.SortFunc(chains, func(a, b session.Linked) int { return latestFirst(active(&a), active(&b), a.ID, b.ID) })
	var list []Info
	for _, c := range page(chains, limit, offset) {
		whole := len(c.Missing) == 0
		for i, name := range c.Links[1:] {
			whole = whole && byName[name].link.Continues == c.Links[i]
		}
		list = append(list, m.describeChain(c, byName[c.Links[len(c.Links)-1]], whole))
	}
	return list, nil
}

// Info returns what a list says of the conversation that a session is part of. With
// LoadMessages it is what a program needs that shows conversations page by page.
func (m *Sessions) Info(id string) (Info, error) {
	if err := m.refreshTail(id, reading); err != nil {
		return Info{}, err
	}
	c, err := m.chain(id)
	if err != nil {
		return Info{}, err
	}
	last := c.Links[len(c.Links)-1]
	header, err := m.header(m.context(), last)
	if err != nil {
		return Info{}, err
	}
	i := m.describeChain(c, &head{link: session.Link{ID: last}}, len(c.Missing) == 0 && m.isWhole(header))
	return i, i.Err
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

// describeChain describes a conversation by its last session, which knows of those
// before it unless one is missing, or was when the one after it was made: then all
// that are there are read.
func (m *Sessions) describeChain(c session.Linked, last *head, whole bool) Info {
	d := m.describe(last)
	i := d.Info
	i.Tags = slices.Clone(i.Tags)
	i.ID, i.ContinuedFrom, i.Missing = c.ID, "", c.Missing
	if i.Err != nil {
		return i
	}
	i.CreatedAt = d.before.created
	i.MessageCount, i.TokenCount = d.before.messages+d.own, d.before.tokens.plus(d.tokens).total()
	if !whole {
		var t Totals
		if t, i.Err = m.count(Totals{Tail: last.link.ID}); i.Err == nil {
			i.MessageCount, i.TokenCount = t.Messages, t.Tokens
		}
	}
	return i
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
