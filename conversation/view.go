package conversation

import (
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/window"
)

// view is the part of a conversation that fits a window. It is updated message by
// message, across the boundaries of sessions.
//
// The whole of which it is a part is exactly the context that package session builds
// from the chain as one session. As long as that is simply the messages in order, they
// come from memory. Anything else (summaries, edits, merges, calls without results,
// missing links) is left to package session.
type view struct {
	planner *window.Planner
	version int    // of the options that the planner was made with
	config  Config // that the planner was made with
	waiting bool   // it has a made-up result whose real one may yet come

	// Where it ends: in this link, after seen of its messages and composed changes of
	// other kinds.
	link     string
	seen     int
	composed int
	// The earlier sessions that it was made from, and where their logs ended. They get no
	// more messages, but a writer may still append a compaction or an edit.
	earlier map[string]store.Pos
	// The known lost sessions of the chain. They may come back.
	awaited []string
}

// update adds what is new since the last time, and returns what fits.
func (v *view) update(m *Sessions, w *Window, id string) (*window.View, error) {
	config, err := m.Config(id)
	if err != nil {
		return nil, err
	}
	options, version := w.inForce()
	options = config.apply(options, w.counters)
	if v.planner == nil || v.version != version || v.config != config || v.waiting || v.isStale(m) || !v.advance(m, id) {
		*v = view{version: version, config: config}
		if err := v.rebuild(m, id, options); err != nil {
			v.planner = nil
			return nil, err
		}
	}
	return v.planner.View()
}

// isStale reports whether something was appended to a session before the last.
func (v *view) isStale(m *Sessions) bool {
	for name, was := range v.earlier {
		if end, err := m.endOf(name); err != nil || end != was {
			return true
		}
	}
	return slices.ContainsFunc(v.awaited, func(name string) bool {
		there, err := m.exists(name)
		return err != nil || there
	})
}

// awaited returns the lost sessions of the chain that ends with a session: those that others
// replaced, and one that is continued.
func (m *Sessions) awaited(header session.Header) (names []string) {
	for seen := map[string]bool{}; header.Relation == session.RelationContinuation && !seen[header.ParentSession]; {
		parent := header.ParentSession
		seen[parent] = true
		earlier, err := m.header(m.context(), parent)
		if errors.Is(err, session.ErrNotExist) {
			return append(names, parent)
		}
		if err != nil {
			return names
		}
		if leavesRoom(header, earlier) {
			link, err := session.ReadLink(m.context(), m.store, parent)
			if err != nil {
				return names
			}
			for _, name := range link.Replaced {
				if there, err := m.exists(name); err == nil && !there {
					names = append(names, name)
				}
			}
		}
		header = earlier
	}
	return names
}

// endOf returns where the log of a session ends.
func (m *Sessions) endOf(name string) (end store.Pos, err error) {
	ctx := m.context()
	log, err := m.store.Open(ctx, name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return log.End(ctx)
}

// uses records that the view is made from a session before the last. Its link, which is
// locked, must have everything in the log up to the end that is recorded; uses reports
// whether it has.
func (v *view) uses(m *Sessions, l *link) bool {
	end, err := m.endOf(l.id) // before comparing, so that anything later makes the view stale
	if err != nil || l.refresh(m.context()) != nil {
		return false
	}
	if v.earlier == nil {
		v.earlier = make(map[string]store.Pos)
	}
	v.earlier[l.id] = end
	return true
}

// advance adds what comes after the place where the view ends. It returns false if the
// view must be rebuilt.
func (v *view) advance(m *Sessions, id string) bool {
	var links []*link // from the tail back to where we stand
	plain := true
	err := m.walkBack(id, func(l *link) bool {
		plain = plain && (len(links) == 0 || v.uses(m, l))
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
		if m.lock(l) != nil {
			return false
		}
		v.take(l)
		l.mu.Unlock()
	}
	return true
}

// take adds the messages of a link, which is locked, that the view has not seen.
// Carried messages were seen in the link before.
func (v *view) take(l *link) {
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

// stand records that the view has seen all of a link.
func (v *view) stand(l *link) {
	v.link, v.seen, v.composed = l.id, len(l.entries), l.composed
}

// rebuild builds the view from what is stored.
func (v *view) rebuild(m *Sessions, id string, options window.Options) error {
	planner, err := window.NewPlanner(options)
	if err != nil {
		return err
	}
	v.planner = planner
	tail, err := m.tail(id)
	if err != nil {
		return err
	}
	m.release(tail)
	v.awaited = m.awaited(tail.header) // before reading, for the same reason as in uses
	entries, plain, err := v.plainEntries(m, id, options.Budget.Room())
	if err == nil && !plain {
		entries, err = v.compose(m, id)
	}
	planner.Add(entries...)
	return err
}

// plainEntries returns the messages of the last links of a chain, as many as it takes
// to fill the window: earlier ones would only be left out. plain is false if the
// context is not simply these messages.
func (v *view) plainEntries(m *Sessions, id string, room int) (entries []session.Entry, plain bool, _ error) {
	var parts [][]session.Entry // last link first, without carried messages
	var first []session.Entry   // the last of parts, with carried messages
	follows := ""               // the session that it continues
	tokens := 0
	err := m.walkBack(id, func(l *link) bool {
		plain = len(parts) == 0 || follows == l.id && v.uses(m, l)
		plain = plain && l.composed == l.plainAt && !l.pairs.Pending()
		if !plain {
			return false
		}
		if len(parts) == 0 {
			v.stand(l)
		}
		parts, follows = append(parts, l.own()), l.header.ParentSession
		first = l.choose(func(i int) bool { return !session.IsTransition(&l.entries[i]) })
		tokens += l.tokens().Total()
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
	defer m.release(l)
	if err := m.lock(l); err != nil { // so that the place we record and what we read agree
		return nil, err
	}
	defer l.mu.Unlock()
	var c *session.Context
	if c, v.earlier, err = m.contextAt(l); err != nil {
		return nil, err
	}
	v.stand(l)
	v.waiting = l.pairs.Pending()
	return c.Entries, nil
}

// contextAt returns the context of the chain whose last link is l, which is locked, and the
// sessions before it with the ends of their logs.
func (m *Sessions) contextAt(l *link) (*session.Context, map[string]store.Pos, error) {
	if l.header.Relation != session.RelationContinuation {
		c, err := l.s.WithContext(m.context()).Context(session.ContextOptions{})
		return c, nil, err
	}
	ctx := m.context()
	chain, err := session.FindChain(ctx, m.store, l.id, nil)
	if err != nil {
		return nil, nil, err
	}
	if n := slices.Index(chain.Links, l.id); n >= 0 {
		chain.Links = chain.Links[:n+1]
	}
	ends := make(map[string]store.Pos)
	for _, name := range without(chain.Links, l.id) {
		if ends[name], err = m.endOf(name); err != nil { // before they are read, for the same reason as in uses
			return nil, nil, err
		}
	}
	whole, err := session.OpenChain(ctx, m.store, chain, m.sessionOptions())
	if err != nil {
		return nil, nil, err
	}
	c, err := whole.WithContext(ctx).Context(session.ContextOptions{})
	return c, ends, errors.Join(err, whole.Close())
}

// Context returns the whole context of a conversation: what a model with an unlimited
// window would be sent.
func (m *Sessions) Context(id string) (*session.Context, error) {
	if err := m.refreshTail(id, reading); err != nil {
		return nil, err
	}
	l, err := m.tail(id)
	if err != nil {
		return nil, err
	}
	defer m.release(l)
	if err := m.lock(l); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	c, _, err := m.contextAt(l)
	return c, err
}
