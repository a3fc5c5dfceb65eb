package conversation

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/index/sqlite"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// catalogue is the index of the store, if it has one. It knows about each session what
// otherwise only the log can tell, and is brought up to date before every use. It is never
// created for a list: that would take as long as reading all logs.
type catalogue struct {
	ix    *index.Index
	heads map[string]stamped // of the sessions that were listed, by name
}

// stamped is a head together with the state of the log when the head was made.
type stamped struct {
	size    int64
	updated time.Time
	leaf    string
	*head
}

// open returns the index, brought up to date, or nil if there is none that can be used.
func (c *catalogue) open(ctx context.Context, st store.Store, o *Options) *index.Index {
	dir, ok := store.As[store.Directory](st)
	if !ok {
		return nil
	}
	if _, err := os.Stat(dir.IndexPath()); err != nil {
		c.close()
		return nil
	}
	if c.ix == nil {
		room, err := sqlite.Open(ctx, dir.IndexPath(), nil)
		if err != nil {
			o.Logger.Debug("index not used", "error", err)
			return nil
		}
		c.ix = index.New(st, room, nil)
	}
	report, err := c.ix.CatchUp(ctx, nil)
	if err != nil || len(report.Unread) > 0 { // a list shows unreadable sessions with the reason, and the index cannot
		o.Logger.Debug("index not used", "unread", len(report.Unread), "error", err)
		c.close()
		return nil
	}
	return c.ix
}

func (c *catalogue) close() {
	if c.ix != nil {
		_ = c.ix.Close() // nothing can be lost: the index is derived from the logs
		c.ix = nil
	}
}

// head returns the head of a session in the index: the same one, as long as nothing has
// changed.
func (c *catalogue) head(s *index.Session) *head {
	now := stamped{size: s.Size, updated: s.Updated, leaf: s.Leaf}
	if was, ok := c.heads[s.Name]; ok && was.size == now.size && was.updated.Equal(now.updated) && was.leaf == now.leaf {
		return was.head
	}
	const enough = 10_000
	if c.heads == nil || len(c.heads) >= enough {
		c.heads = make(map[string]stamped)
	}
	now.head = &head{stat: store.Stat{Name: s.Name}, link: session.Link{ID: s.Name}, active: s.Updated}
	c.heads[s.Name] = now
	return now.head
}

// rowsFromIndex is rows if the store has an index; ok is false if it has none.
func (m *Sessions) rowsFromIndex(limit, offset int, links bool) (rows []row, ok bool) {
	ctx := m.context()
	if m.surveying.LockContext(ctx) != nil {
		return nil, false
	}
	defer m.surveying.Unlock()
	ix := m.catalogue.open(ctx, m.store, &m.options)
	if ix == nil {
		return nil, false
	}
	o := index.ListOptions{Desc: true, Links: links, Limit: max(-1, cmp.Or(limit, defaultListLimit)), Offset: max(offset, 0)}
	found, _, err := ix.List(ctx, o)
	if err != nil {
		return nil, false
	}
	for i := range found {
		s := &found[i]
		r := row{id: s.ID, missing: s.Missing, messages: s.Messages, active: s.Updated, title: s.Title, tags: s.Tags, whole: len(s.Missing) == 0}
		if r.last = m.catalogue.head(s); s.Links > 0 {
			chain, err := ix.Links(ctx, s.ID)
			if err != nil || len(chain) == 0 {
				return nil, false
			}
			for i := range chain {
				r.whole = r.whole && (i == 0) == (chain[i].Relation != session.RelationContinuation) && (i == 0 || chain[i].Parent == chain[i-1].ID)
			}
			r.last = m.catalogue.head(&chain[len(chain)-1])
		}
		rows = append(rows, r)
	}
	return rows, true
}
