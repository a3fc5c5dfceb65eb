package conversation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/internal/boundary"
	"github.com/coppice-dev/coppice/session"
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
// only once until it changes. Options.Index says which sessions those are. Without it, the first
// list looks through all logs, and later ones through those that have changed.
func (m *Sessions) ListSessions(limit, offset int) ([]Info, error) {
	rows, err := m.rows(limit, offset, true)
	if err != nil {
		return nil, err
	}
	list := make([]Info, 0, len(rows))
	for i := range rows {
		r := &rows[i]
		info := m.describe(r).Info
		info.Tags = slices.Clone(info.Tags)
		if info.Err == nil {
			info.Title, info.MessageCount = r.title, r.messages
		}
		list = append(list, info)
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
		stat, err := m.store.Stat(m.context(), name)
		if err != nil {
			return Info{}, err
		}
		heads[name] = readHead(m.context(), m.store, stat)
	}
	r := rowOf(c, heads)
	i := m.describeRow(&r)
	return i, i.Err
}

// Index knows which sessions a list has without reading their logs. An *index.Index is one.
type Index interface {
	CatchUp(ctx context.Context, progress func(done, total int64)) (index.Report, error)
	List(ctx context.Context, o index.ListOptions) (page []index.Session, next string, err error)
	Links(ctx context.Context, id string) ([]index.Session, error)
}

var _ Index = (*index.Index)(nil)

// row is what a list knows about a conversation or a session before reading it.
type row struct {
	id       string
	missing  []string
	title    string
	tags     []string
	messages int // on all branches; -1 if they have to be read to know
	active   time.Time
	whole    bool // the last session knows about all those before it

	last  string // the name of the last session
	state state  // its log's
	err   error  // why it cannot be read
}

// state is what changes when something is added to a log.
type state struct {
	size, modified int64
	leaf           string
}

// described is what a list says about a session, and what that session knows about those
// before it.
type described struct {
	Info
	before boundary.Origin
	tokens boundary.Amount // of its own messages
	state  state           // of the log that says so
}

// describe reads what a list says about the last session of a row, unless its log is as it was the
// last time. Listing must have no side effects: it does not push other sessions out of memory, and
// creates no replacement for a session that cannot be read.
func (m *Sessions) describe(r *row) described {
	m.mu.Lock()
	d, known := m.described[r.last]
	m.mu.Unlock()
	if known && d.state == r.state {
		return d
	}
	if d = m.read(r); d.Err != nil {
		return d
	}
	const enough = 10_000
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.described) >= enough {
		clear(m.described)
	}
	m.described[r.last] = d
	return d
}

func (m *Sessions) read(r *row) described {
	d := described{Info: Info{ID: r.last, LastActive: r.active, Err: r.err}, state: r.state}
	if d.Err != nil {
		return d
	}
	l, err := m.load(r.last)
	if err != nil {
		d.Err = err
		return d
	}
	defer l.s.Close()
	now, err := l.s.Remarks()
	d.Info = Info{
		ID: r.last, Title: l.title, Tags: now.Tags, Err: err, CreatedAt: l.header.CreatedAt, LastActive: l.active,
		MessageCount: len(l.Entries), TokenCount: sumOf(l.Entries).Total(),
		ContinuedTo: l.next, ContinuationIndex: l.header.Continuation,
	}
	switch l.header.Relation {
	case session.RelationContinuation:
		d.ContinuedFrom = l.header.ParentSession
	case session.RelationRecovery:
		d.RecoveredFrom = l.header.ParentSession
	}
	d.before, d.tokens = l.Before, l.Own()
	return d
}

// describeRow describes a conversation by its last session, which knows about those
// before it. If one is missing, or was missing when the next one was created, all
// sessions are read.
func (m *Sessions) describeRow(r *row) Info {
	d := m.describe(r)
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
		if t, i.Err = m.count(Totals{Tail: r.last}); i.Err == nil {
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
	limit, offset = cmp.Or(limit, defaultListLimit), max(offset, 0)
	if m.options.Index != nil {
		rows, err := m.rowsOfIndex(limit, offset, links)
		if err == nil {
			return rows, nil
		}
		m.options.Logger.Debug("index not used", "error", err)
	}
	rows, err := m.rowsOfLogs(links)
	from := min(offset, len(rows))
	if limit < 0 || limit > len(rows)-from {
		limit = len(rows) - from
	}
	return rows[from : from+limit], err
}

// rowsOfIndex asks the index. It cannot say why a session is unreadable, so then the logs are read.
func (m *Sessions) rowsOfIndex(limit, offset int, links bool) ([]row, error) {
	ctx, ix := m.context(), m.options.Index
	report, err := ix.CatchUp(ctx, nil)
	if err != nil {
		return nil, err
	}
	if n := len(report.Unread); n > 0 {
		return nil, fmt.Errorf("%d sessions cannot be read", n)
	}
	found, _, err := ix.List(ctx, index.ListOptions{Desc: true, Links: links, Limit: max(limit, -1), Offset: offset})
	rows := make([]row, len(found))
	for i := range found {
		s := &found[i]
		rows[i] = row{
			id: s.ID, missing: s.Missing, messages: s.Messages, active: s.Updated, title: s.Title, tags: s.Tags,
			whole: len(s.Missing) == 0, last: s.Name, state: state{s.Size, s.Updated.UnixNano(), s.Leaf},
		}
		if s.Links == 0 {
			continue
		}
		chain, err := ix.Links(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		for j := range chain {
			l, before := &chain[j], &chain[max(j-1, 0)]
			isNext := l.Relation == session.RelationContinuation && l.Parent == before.ID
			rows[i].whole = rows[i].whole && isNext == (j > 0)
			rows[i].last = l.Name
		}
	}
	return rows, err
}
