package conversation

import (
	"context"
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// view is what of a conversation fits a window. It is kept up to date message by
// message, across the boundaries of sessions.
//
// What it is a part of is the context that package session gives of the chain as
// one session, and nothing else. As long as that is simply the messages one after
// the other, they are taken from memory; anything else (summaries, edits, merges,
// calls without results, missing links) is left to package session.
type view struct {
	planner *window.Planner
	version int    // of the options that the planner was made with
	config  Config // that the planner was made with
	waiting bool   // a result is made up that may yet come

	// Where it stands: in this link, after so many of its messages, and after so
	// many changes of other kinds.
	link     string
	seen     int
	composed int
}

// update takes in what was added since the last time, and returns what fits.
func (v *view) update(m *Sessions, w *Window, id string) (*window.View, error) {
	config, err := m.Config(id)
	if err != nil {
		return nil, err
	}
	options, version := w.inForce()
	options = config.apply(options, w.counters)
	if v.planner == nil || v.version != version || v.config != config || v.waiting || !v.advance(m, id) {
		*v = view{version: version, config: config}
		if err := v.rebuild(m, id, options); err != nil {
			v.planner = nil
			return nil, err
		}
	}
	return v.planner.View()
}

// advance takes in what comes after the place where the view stands; false means
// that it must be built again.
func (v *view) advance(m *Sessions, id string) bool {
	var links []*link // from the tail back to where we stand
	plain := true
	err := m.walkBack(id, func(l *link) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.id == v.link {
			plain = plain && l.composed == v.composed
		} else {
			plain = plain && l.composed == l.plainAt
		}
		plain = plain && !l.pairs.Pending()
		links = append(links, l)
		return plain && l.id != v.link
	})
	if err != nil || !plain || links[len(links)-1].id != v.link {
		return false
	}
	for _, l := range slices.Backward(links) {
		v.take(l)
	}
	return true
}

// take adds the messages of a link that the view has not seen yet. What was
// carried over to it has been seen in the link before.
func (v *view) take(l *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id != v.link {
		v.link, v.seen = l.id, 0
	}
	for i := v.seen; i < len(l.entries); i++ {
		if !l.isCopy[i] {
			v.planner.Add(l.entries[i])
		}
	}
	v.stand(l)
}

// stand notes that the view has seen all of a link.
func (v *view) stand(l *link) {
	v.link, v.seen, v.composed = l.id, len(l.entries), l.composed
}

// rebuild makes the view from what is stored.
func (v *view) rebuild(m *Sessions, id string, options window.Options) error {
	planner, err := window.NewPlanner(options)
	if err != nil {
		return err
	}
	v.planner = planner
	entries, plain, err := v.plainEntries(m, id, options.Budget.Room())
	if err == nil && !plain {
		entries, err = v.compose(m, id)
	}
	planner.Add(entries...)
	return err
}

// plainEntries returns the messages of the last links of a chain, as many as are
// needed to fill the window: the rest could only be left out. plain is false if
// the context is something else than these.
func (v *view) plainEntries(m *Sessions, id string, room int) (entries []session.Entry, plain bool, _ error) {
	var parts [][]session.Entry // the last first; what was carried over is not among them
	var first []session.Entry   // the last of parts, with what was carried over
	follows := ""               // the session that it continues
	tokens := 0
	err := m.walkBack(id, func(l *link) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		plain = l.composed == l.plainAt && !l.pairs.Pending() && (len(parts) == 0 || follows == l.id)
		if !plain {
			return false
		}
		if len(parts) == 0 {
			v.stand(l)
		}
		parts, follows = append(parts, l.own()), l.header.ParentSession
		first = l.choose(func(i int) bool { return !session.IsTransition(&l.entries[i]) })
		tokens += l.tokens().total()
		return tokens <= room
	})
	if err != nil || !plain {
		return nil, false, err
	}
	entries = first
	for _, part := range slices.Backward(parts[:len(parts)-1]) {
		entries = slices.Concat(entries, part)
	}
	return entries, true, nil
}

// compose returns the context of a whole chain.
func (v *view) compose(m *Sessions, id string) ([]session.Entry, error) {
	l, err := m.tail(id)
	if err != nil {
		return nil, err
	}
	defer m.cache.release(l)
	l.mu.Lock() // so that where we stand and what we read are the same
	defer l.mu.Unlock()
	c, err := m.contextAt(l)
	if err != nil {
		return nil, err
	}
	v.stand(l)
	v.waiting = l.pairs.Pending()
	return c.Entries, nil
}

// contextAt returns the context of the chain that a link, which is locked, is the
// last of.
func (m *Sessions) contextAt(l *link) (*session.Context, error) {
	if l.header.Relation != session.RelationContinuation {
		return l.s.Context(session.ContextOptions{})
	}
	ctx := context.Background()
	chain, err := session.FindChain(ctx, m.store, l.id, nil)
	if err != nil {
		return nil, err
	}
	if n := slices.Index(chain.Links, l.id); n >= 0 {
		chain.Links = chain.Links[:n+1]
	}
	whole, err := session.OpenChain(ctx, m.store, chain, m.sessionOptions())
	if err != nil {
		return nil, err
	}
	c, err := whole.Context(session.ContextOptions{})
	return c, errors.Join(err, whole.Close())
}

// Context returns the context of a conversation, all of it: what a model would be
// sent if its window had no end.
func (m *Sessions) Context(id string) (*session.Context, error) {
	if err := m.refreshTail(id, reading); err != nil {
		return nil, err
	}
	l, err := m.tail(id)
	if err != nil {
		return nil, err
	}
	defer m.cache.release(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	return m.contextAt(l)
}
