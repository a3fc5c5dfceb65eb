package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// A chain grows at its end. What is appended to it is written to the last session in the
// words of that session, so that it can be read by itself too: its first entry hangs on the
// last thing that the session was given, and what it has a copy of is named by the copy. What
// neither it nor its copies have is named by the id that it has in its own session.

// takeLine joins a line that was appended to the last session.
func (l *linkJoiner) takeLine(line store.Line) {
	l.log.mu.Lock()
	defer l.log.mu.Unlock()
	l.part.end = line.Next
	h, ok := rawjson.ScanHead(line.Data)
	if !ok || line.Cut || len(h.ID) == 0 {
		return // damage stays where it is
	}
	id := string(h.ID)
	_, known := l.own.at(id)
	switch {
	case string(h.Type) == string(TypeSession):
		l.part.patch[line.Pos] = []byte{}
	case known: // it is there a second time: the first counts
		if is, _ := l.isNow(id); is != id {
			l.part.patch[line.Pos] = []byte{}
		}
	default:
		l.own.addLine(line)
		if l.takeRecord(line, id) {
			l.part.patch[line.Pos] = []byte{}
			l.after = append(l.after, id)
			return
		}
		parent := l.aboveID()
		if len(h.Parent) > 0 {
			parent = l.resolve(string(h.Parent))
		}
		l.now[id] = l.idFor(id)
		l.changeEntry(line, h, l.now[id], parent)
	}
}

// inLink returns an entry of the chain in the words of the last session.
func (l *linkJoiner) inLink(e *Entry) (*Entry, error) {
	if len(l.log.parts) == 1 {
		return e, nil
	}
	if _, taken := l.own.at(e.ID); taken {
		return nil, &Error{Op: "append", Name: l.part.name, Kind: ErrExist, Err: fmt.Errorf("entry %q", e.ID)}
	}
	out := e.Clone()
	parent, err := l.parentInLink(deref(e.ParentID))
	if err != nil {
		return nil, err
	}
	if out.ParentID = &parent; parent == "" {
		out.ParentID = nil
	}
	if out.Compaction != nil && out.Compaction.State != nil {
		out.Compaction.State.Kept = nil // positions in the chain
	}
	out.eachRef(func(as ref, id *string) {
		if own, ok := l.ownID(*id); ok {
			*id = own
		} else if copied := l.copyOf(*id); copied != "" && as != refFirstKept {
			*id = copied
		} else if _, other := l.own.at(*id); other {
			err = &Error{Op: "append", Name: l.part.name, Kind: ErrInvalid, Err: fmt.Errorf("entry %q of an earlier session cannot be named: session %s has another of that id", *id, l.part.name)}
		}
	})
	return &out, err
}

// ownID returns the id that an entry of the chain has in the last session; ok is false if it
// is of an earlier one.
func (l *linkJoiner) ownID(id string) (_ string, ok bool) {
	if at, known := l.tree.at(id); known && l.tree.nodes[at].pos < l.part.base {
		return "", false
	}
	if was, renamed := l.part.was[id]; renamed {
		return was, true
	}
	return id, true // perhaps of an entry that is being written
}

// copyOf returns the copy of an entry that the last session was given, or "".
func (l *linkJoiner) copyOf(original string) string {
	for copied, of := range l.stands {
		if of == original {
			return copied
		}
	}
	return ""
}

// parentInLink returns where in the last session an entry hangs that hangs on one of the
// chain.
func (l *linkJoiner) parentInLink(id string) (string, error) {
	own, ok := l.ownID(id)
	switch copied := l.copyOf(id); {
	case id == l.aboveID():
		return l.base, nil
	case ok:
		return own, nil
	case l.branchesAt(copied) != "":
		return copied, nil
	}
	return "", &Error{
		Op: "branch", Name: l.log.name, Kind: ErrInvalid, Err: fmt.Errorf("entry %q is in an earlier session, and the conversation has gone on since in session %s", id, l.part.name),
		Hint: "fork the conversation at that entry",
	}
}

// SessionOf returns the id of the session that has an entry: one of a chain, or the session
// itself. For "" it is the session that takes what is appended: the last one of a chain.
func (s *Session) SessionOf(entryID string) string {
	chain, ok := s.log.(*chainLog)
	if !ok {
		return s.name
	}
	if entryID == "" {
		return chain.last().name
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	at, ok := s.tree.at(entryID)
	for _, p := range slices.Backward(chain.joined()) {
		if ok && p.base <= s.tree.nodes[at].pos {
			return p.name
		}
	}
	return s.name
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

// continueChain is Continue for a chain.
func (s *Session) continueChain(chain *chainLog, carry []Entry) error {
	link, err := s.openLast(chain)
	if err != nil {
		return err
	}
	next, err := link.WithContext(s.context()).Continue(carry...)
	if next != nil {
		err = errors.Join(err, next.Close())
	}
	err = errors.Join(err, link.Close())
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
		link, err := Open(s.context(), s.store, p.name, &s.opts)
		if err != nil || link.tree.end == chain.endOf(p) {
			return link, err
		}
		s.mu.Lock()
		err = s.absorb(s.context())
		s.mu.Unlock()
		if err == nil && n == maxConflicts {
			err = &ConflictError{Leaf: leaf, Theirs: link.LeafID(), Err: &Error{Op: "continue", Name: p.name, Kind: ErrConflict}}
		}
		if err = errors.Join(err, link.Close()); err != nil {
			return nil, err
		}
	}
}

// followChain joins the sessions that continue a chain. If something was added to an earlier
// session, everything is joined again. It is called with mu held for writing.
func (s *Session) followChain(ctx context.Context, chain *chainLog) error {
	parts := chain.joined()
	for _, p := range parts[:len(parts)-1] {
		if end, err := p.log.End(ctx); err != nil || end != p.end {
			if err == nil {
				err = s.rejoin(ctx, chain)
			}
			if err != nil {
				return err
			}
			break
		}
	}
	for next := chain.continuation(); next != ""; next = chain.continuation() {
		chain.live.own.standing()
		chain.live.own.leaf = chain.live.own.logLeaf
		chain.live.hand()
		err := chain.live.add(ctx, s.store, next)
		if errors.Is(err, ErrNotExist) || errors.Is(err, ErrCorrupt) {
			return nil // the caller sees the continuation: it may be on its way, or lost
		}
		if err != nil {
			return err
		}
		s.tree.end, _ = chain.End(ctx)
		s.tree.logLeaf = chain.live.leaf
	}
	return nil
}

// rejoin joins the logs of a chain again.
func (s *Session) rejoin(ctx context.Context, chain *chainLog) error {
	c := Linked{ID: s.name}
	for _, p := range chain.joined() {
		c.Links = append(c.Links, p.name)
	}
	fresh, err := OpenChain(ctx, s.store, c, &s.opts)
	if err != nil {
		return err
	}
	again := fresh.log.(*chainLog)
	again.live.chainJoiner.log = chain
	chain.mu.Lock()
	again.parts, chain.parts = chain.parts, again.parts
	chain.live, chain.ready, chain.leaf = again.live, again.ready, again.leaf
	chain.mu.Unlock()
	s.tree = fresh.tree
	s.forget()
	return again.Close()
}

// continuation returns the session that continues the last one, or "".
func (l *chainLog) continuation() string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.live.continued.to
}

// isContinuation reports whether the session continues others, of which it may name entries.
// A chain has all of them.
func (s *Session) isContinuation() bool { return s.header.Relation == RelationContinuation }
