package conversation

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// head is what a log says about its session without being decoded: enough to sort lists and
// to join conversations. It must agree with the catalogue of package index, so it uses the
// same rules.
type head struct {
	stat   store.Stat   // of the log when it was read
	link   session.Link // its place in a chain
	active time.Time    // when something was last said
	err    error        // why it cannot be read

	messages int         // on all branches
	copies   int         // how many of these it begins with, as copies
	first    index.Title // its title, unless the user gives it a name
	named    *string     // the latest name; nil if none was ever given or taken away
	tags     session.TagSet
}

// readHead looks at a log.
func readHead(ctx context.Context, st store.Store, stat store.Stat) *head {
	h := &head{stat: stat, active: stat.Modified}
	if h.link, h.err = session.ReadLink(ctx, st, stat.Name); h.err != nil {
		h.link.ID = stat.Name
		return h
	}
	switch active, err := session.LastSaid(ctx, st, stat.Name); {
	case err != nil:
		h.err = err
	case !active.IsZero():
		h.active = active
	case !h.link.Created.IsZero():
		h.active = h.link.Created
	}
	if h.err == nil {
		h.err = h.count(ctx, st)
	}
	return h
}

// count counts the messages and finds the title and the tags. It decodes few lines.
func (h *head) count(ctx context.Context, st store.Store) (err error) {
	log, err := st.Open(ctx, h.stat.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	begins := h.link.Continues != "" // with copies, until its marker
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return err
		}
		scan, ok := rawjson.ScanHead(line.Data)
		if !ok || line.Cut {
			continue
		}
		var e session.Entry
		decoded := func() bool { return e.UnmarshalJSON(line.Data) == nil }
		switch session.EntryType(scan.Type) {
		case session.TypeSessionInfo:
			if decoded() && e.SessionInfo != nil {
				h.named = new(index.NameTitle(e.SessionInfo.Name))
			}
		case session.TypeCustom:
			if bytes.Contains(line.Data, []byte(session.CustomTags)) && decoded() && e.Custom != nil {
				h.tags.Apply(e.Custom)
			}
		case session.TypeContinues:
			if begins {
				h.copies, begins = h.messages, false
			}
		case session.TypeMessage:
			h.messages++
			if !h.first.IsSettled() && decoded() {
				h.first = index.BetterTitle(h.first, index.TitleIn(&e))
			}
		}
	}
	return nil
}

// rowsOfLogs reads the logs, and returns the whole list.
func (m *Sessions) rowsOfLogs(links bool) ([]row, error) {
	heads, err := m.survey()
	if err != nil {
		return nil, err
	}
	var joined []session.Link
	var chains []session.Linked
	for name, h := range heads {
		if h.err == nil && !links {
			joined = append(joined, h.link)
		} else {
			chains = append(chains, session.Linked{ID: name, Links: []string{name}})
		}
	}
	chains = append(chains, session.JoinLinks(joined)...)
	rows := make([]row, 0, len(chains))
	for _, c := range chains {
		r := rowOf(c, heads)
		if links {
			r.messages = heads[r.last].messages
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int { // the index stores milliseconds
		return cmp.Or(cmp.Compare(b.active.UnixMilli(), a.active.UnixMilli()), cmp.Compare(b.id, a.id))
	})
	return rows, nil
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
		r.last, r.state, r.err = name, state{size: h.stat.Size, modified: h.stat.Modified.UnixNano()}, h.err
	}
	r.title, r.tags = cmp.Or(given, first.Text), tags.Sorted()
	if !r.whole { // copies whose originals are gone count, and only reading shows which
		r.messages = -1
	}
	return r
}

// survey returns what is known about all sessions, by name. It does not look at those that have
// not changed since the last time.
func (m *Sessions) survey() (map[string]*head, error) {
	ctx := m.context()
	if err := m.surveying.LockContext(ctx); err != nil {
		return nil, err
	}
	defer m.surveying.Unlock()
	listed, err := store.All(ctx, m.store)
	if err != nil {
		return nil, err
	}
	fresh := make(map[string]*head, len(listed))
	for _, l := range listed {
		h := m.heads[l.Name]
		if h == nil || h.stat != l.Stat || h.err != nil {
			h = readHead(ctx, m.store, l.Stat)
		}
		fresh[l.Name] = h
	}
	m.heads = fresh
	return fresh, nil
}
