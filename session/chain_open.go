package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// OpenChain opens the sessions of a chain as one conversation, with all branches. A copy that a
// session begins with is the entry that it is a copy of, unless that is in none of the sessions
// before, because one is missing. What a session adds follows the leaf of those before it.
//
// The session that it returns can be used like any other, and has the chain's id. What is
// appended goes to the last session of the chain, and may name entries of all. Only Branch
// cannot go back to an entry of an earlier session, unless the last one was given a copy of
// it. A fork of it is a session of its own with all of the conversation. No content is
// copied: it stays in the logs. Like Open, OpenChain reads no more than it must.
func OpenChain(ctx context.Context, st store.Store, c Linked, o *Options) (*Session, error) {
	if len(c.Links) == 0 {
		return nil, &Error{Op: "open", Name: c.ID, Kind: ErrNotExist, Err: errors.New("all sessions of the conversation are missing")}
	}
	if err := checkStore("open", c.ID, st); err != nil {
		return nil, err
	}
	log, err := joinLogs(ctx, st, c)
	if err != nil {
		return nil, err
	}
	s := &Session{core: &core{opts: o.withDefaults(), store: st, log: log, name: c.ID}}
	if err := s.load(ctx); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return s, nil
}

// joinLogs opens the logs of a chain.
func joinLogs(ctx context.Context, st store.Store, c Linked) (*chainLog, error) {
	log := &chainLog{name: c.ID, store: st}
	before := ""
	for _, name := range c.Links {
		p, err := openPart(ctx, st, name, before)
		if err == nil && before == "" {
			err = p.nameAs(ctx, c.ID)
		}
		if err == nil {
			err = log.add(ctx, p)
		}
		if err != nil {
			if p != nil {
				err = errors.Join(err, p.log.Close())
			}
			if before != "" {
				err = errors.Join(err, log.Close())
			}
			return nil, err
		}
		before = name
	}
	return log, nil
}

// openPart opens a log that comes after that of another session, or first.
func openPart(ctx context.Context, st store.Store, name, before string) (*chainPart, error) {
	log, err := st.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	p := &chainPart{name: name, log: log, marker: noLine}
	h, at, err := findHeaderLine(ctx, log)
	if err == nil && h != nil {
		err = h.CheckVersion(name)
		p.follows = h.Relation == RelationContinuation && h.ParentSession == before
	}
	if p.header = at; err == nil && (before != "" || h != nil && h.Relation == RelationContinuation) {
		err = p.findMarker(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return p, nil
}

// findMarker finds the first marker in a log, whatever has become of the rest of its line, and the
// ids before it.
func (p *chainPart) findMarker(ctx context.Context) error {
	given := make(map[string]bool)
	for line, err := range p.log.Forward(ctx, 0) {
		if err != nil {
			return err
		}
		h, ok := entryHead(line)
		if !ok {
			p.isOdd = p.isOdd || line.Pos != p.header
			continue
		}
		isMarker := string(h.Type) == string(TypeContinues)
		switch k := kindOfType(h.Type); {
		case !isMarker && !fitsInBeginning(h, given), k == kindLeaf, k == kindOther, !h.Whole && !rawjson.Valid(line.Data):
			p.isOdd = true
		}
		if isMarker {
			p.marker, p.given = line.Pos, given
			return nil
		}
		given[string(h.ID)] = true
	}
	return nil
}

// copies returns the ids of the copies that count: those with which a continuation begins, of what
// was said in sessions that it does not have.
func (s *Session) copies() (map[string]bool, error) {
	chain, ok := s.log.(*chainLog)
	if !ok && !s.isContinuation() {
		return nil, nil
	}
	if !ok {
		p := chainPart{log: s.log, marker: noLine}
		err := p.findMarker(s.context())
		return p.given, err
	}
	copies, parts := make(map[string]bool), chain.joined()
	err := s.withWhole(func(t *tree) error {
		for _, n := range t.nodes {
			if p := parts[chain.partAt(n.pos)]; n.pos < p.shift+p.marker {
				copies[n.id] = true
			}
		}
		return nil
	})
	return copies, err
}

// nameAs gives the chain a header of its own, if its id is not that of the first log: then the
// original is missing.
func (p *chainPart) nameAs(ctx context.Context, id string) error {
	h, _, err := findHeaderLine(ctx, p.log)
	if err != nil || h == nil || h.ID == id {
		return err
	}
	if h.ID = id; p.name != id {
		h.ParentSession, h.Relation, h.Continuation = "", "", 0
	}
	p.first = appendHeader(nil, h)
	return nil
}

// leafIn returns the leaf of a log.
func leafIn(ctx context.Context, log store.Log) (string, error) {
	end, err := log.End(ctx)
	if err != nil {
		return "", err
	}
	t, err := loadTail(ctx, log, end, tailLeaf, nil)
	if errors.Is(err, errNeedAll) {
		t, err = loadTree(ctx, log, end, detailRoles)
	}
	if err != nil {
		return "", err
	}
	return t.logLeaf, nil
}

// SessionOf returns the id of the session that has an entry: one of a chain, or the session
// itself. For "" it is the session that entries are appended to: the last one of a chain.
func (s *Session) SessionOf(entryID string) string {
	chain, ok := s.log.(*chainLog)
	if !ok {
		return s.name
	}
	if entryID == "" {
		return chain.last().name
	}
	n, err := s.find("find", entryID)
	if err != nil {
		return s.name
	}
	return chain.joined()[chain.partAt(n.pos)].name
}

// Whole returns the conversation that the session is part of, as OpenChain opens it, with the
// options of the session. Closing the session closes it.
func (s *Session) Whole(ctx context.Context) (*Session, error) {
	if _, ok := s.log.(*chainLog); ok {
		return s, nil
	}
	s.continuing.Lock()
	defer s.continuing.Unlock()
	if s.conversation != nil {
		return s.conversation, nil
	}
	c, err := s.FindChain(ctx, nil)
	if err != nil {
		return nil, err
	}
	s.conversation, err = OpenChain(ctx, s.store, c, &s.opts)
	return s.conversation, err
}

// checkInLast refuses an entry whose parent the last session of a chain does not have: each
// session can be read by itself.
func (s *Session) checkInLast(b *batch, e *Entry) error {
	chain := severalIn(s.log)
	if chain == nil || e.ParentID == nil || b.index(*e.ParentID) >= 0 {
		return nil
	}
	last := chain.last()
	at, ok := s.tree.at(*e.ParentID)
	if !ok || s.tree.nodes[at].pos >= last.shift || last.given[*e.ParentID] || s.tree.inBeginning {
		return nil
	}
	return &Error{
		Op: "branch", Name: s.name, Kind: ErrInvalid, Err: fmt.Errorf("entry %q is in an earlier session, and the conversation has gone on since in session %s", *e.ParentID, last.name),
		Hint: "fork the conversation at that entry",
	}
}

// continueChain is Continue for a chain.
func (s *Session) continueChain(chain *chainLog, carry []Entry) error {
	last, err := s.openLast(chain)
	if err != nil {
		return err
	}
	next, err := last.WithContext(s.context()).continueIn(s, carry)
	if next != nil {
		err = errors.Join(err, next.Close())
	}
	err = errors.Join(err, last.Close())
	if err != nil && !errors.Is(err, ErrExist) {
		return err
	}
	_, refreshed := s.Refresh()
	return errors.Join(err, refreshed)
}

// openLast opens the last session of a chain, whose leaf is that of the chain: if another
// writer has moved on, the log says first where the chain is.
func (s *Session) openLast(chain *chainLog) (*Session, error) {
	for n := 1; ; n++ {
		s.mu.RLock()
		leaf, logLeaf := s.tree.leaf, s.tree.logLeaf
		s.mu.RUnlock()
		if leaf != logLeaf {
			if _, err := s.last("continue", func(tx *Tx) { tx.moveTo(leaf) }); err != nil {
				return nil, err
			}
		}
		p := chain.last()
		last, err := Open(s.context(), s.store, p.name, &s.opts)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		isEnd := p.shift+last.tree.end == s.tree.end
		if !isEnd {
			err = s.absorb(s.context())
		}
		s.mu.Unlock()
		if isEnd {
			return last, nil
		}
		if err == nil && n == maxConflicts {
			err = &ConflictError{Leaf: leaf, Theirs: last.LeafID(), Err: &Error{Op: "continue", Name: p.name, Kind: ErrConflict}}
		}
		if err = errors.Join(err, last.Close()); err != nil {
			return nil, err
		}
	}
}

// followChain joins the sessions that continue a chain. If something was added to an earlier
// session, everything is joined again. It is called with mu held for writing.
func (s *Session) followChain(ctx context.Context, chain *chainLog) error {
	if grown, err := chain.hasGrown(ctx); err != nil || grown {
		if err == nil {
			err = s.rejoin(ctx, chain)
		}
		if err != nil {
			return err
		}
	}
	for {
		now, err := chain.continuation(ctx)
		if err != nil || now.to == "" {
			return err
		}
		next, err := openPart(ctx, s.store, now.to, chain.last().name)
		if isMissing(err) {
			return nil // the caller sees the continuation: it may be on its way, or lost
		}
		if err != nil {
			return err
		}
		if !next.follows {
			return next.log.Close() // it was named, and has nothing to do with the chain
		}
		err = s.replaceParts(ctx, chain, func() error { return chain.add(ctx, next) })
		if err != nil {
			return errors.Join(err, next.log.Close())
		}
	}
}

// rejoin joins the logs of a chain again.
func (s *Session) rejoin(ctx context.Context, chain *chainLog) error {
	c := Linked{ID: s.name}
	for _, p := range chain.joined() {
		c.Links = append(c.Links, p.name)
	}
	fresh, err := joinLogs(ctx, s.store, c)
	if err != nil {
		return err
	}
	old := &chainLog{name: chain.name, parts: chain.joined()}
	err = s.replaceParts(ctx, chain, func() error {
		chain.replace(fresh.joined())
		return nil
	})
	if err != nil {
		return errors.Join(err, fresh.Close())
	}
	s.weight = weight{} // positions have changed
	return old.Close()
}

// replaceParts changes the parts of a chain and reads the log again from its end. Our leaf stays
// where it is. After an error, the chain is unchanged.
func (s *Session) replaceParts(ctx context.Context, chain *chainLog, change func() error) error {
	parts, t, header, strange := chain.joined(), s.tree, s.header, s.strange
	err := change()
	if err == nil {
		s.forget() // entries are kept by their positions
		err = s.load(ctx)
	}
	s.header, s.strange = header, strange // they never change
	if err == nil {
		known := false
		if s.tree.leaf, known = s.tree.leafAfter(t.leaf); !known {
			err = s.loadWhole(ctx)
		}
	}
	if err != nil {
		chain.replace(parts)
		s.tree = t
		s.forget()
	}
	return err
}

// isContinuation reports whether the session continues others, of which it may name entries.
// A chain has those that are there.
func (s *Session) isContinuation() bool { return s.header.Relation == RelationContinuation }
