package session

import (
	"errors"
	"fmt"
)

// A compaction of a chain is planned over all of it, because all of it is sent, and
// written to one of its sessions: the one that has the first entry that it keeps.
// There it can be checked like any other, and that session alone, the chain and
// every reader of either understand it without a further rule. It counts for the
// sessions after it as everything in a session does that they continue.

// Home returns the session that has an entry of this one, and the id that the
// entry has there. That is this session, unless OpenChain opened it.
func (s *Session) Home(entryID string) (name, id string, err error) {
	chain, ok := s.log.(*chainLog)
	if !ok {
		_, err := s.Entry(entryID)
		return s.name, entryID, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	at, ok := s.tree.at(entryID)
	if !ok {
		return "", "", &Error{Op: "find entry", Name: s.name, Kind: ErrNotExist, Err: fmt.Errorf("entry %q", entryID)}
	}
	part := chain.partAt(s.tree.nodes[at].pos)
	if was, renamed := part.was[entryID]; renamed {
		entryID = was
	}
	return part.name, entryID, nil
}

// appendChainCompaction is AppendCompactionEntry of a chain.
func (s *Session) appendChainCompaction(chain *chainLog, c CompactionEntry, with []Entry) (id string, err error) {
	firstKeptID := c.FirstKeptEntryID
	if _, err := s.checkCompaction(s.context(), &writing{}, s.LeafID(), nil, firstKeptID); err != nil {
		return "", err
	}
	name := chain.parts[len(chain.parts)-1].name
	if firstKeptID != "" {
		if name, c.FirstKeptEntryID, err = s.Home(firstKeptID); err != nil {
			return "", err
		}
	}
	if err := s.mustNotBeHidden(firstKeptID, name); err != nil {
		return "", err
	}
	link, err := Open(s.context(), s.store, name, &s.opts)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, link.Close()) }()
	if id, err = link.WithContext(s.context()).AppendCompactionEntry(c, with...); err != nil {
		return "", err
	}
	return id, link.Flush(s.context()) // nobody has the session open who could wait for it later
}

// AppendToLast is AppendAll for a session that may be a chain: it then appends to the last
// session of the chain.
func (s *Session) AppendToLast(entries ...Entry) (ids []string, err error) {
	chain, ok := s.log.(*chainLog)
	if !ok {
		return s.AppendAll(entries...)
	}
	last, err := Open(s.context(), s.store, chain.parts[len(chain.parts)-1].name, &s.opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, last.Close()) }()
	if ids, err = last.WithContext(s.context()).AppendAll(entries...); err != nil {
		return nil, err
	}
	return ids, last.Flush(s.context()) // nobody has the session open who could wait for it later
}

// mustNotBeHidden returns an error if a compaction in a session of the chain would
// not count, because one in a later session is in force.
func (s *Session) mustNotBeHidden(firstKeptID, name string) error {
	sel, err := s.selectPath(s.context(), "")
	if err != nil || sel.compaction == nil {
		return err
	}
	home, _, err := s.Home(sel.compaction.ID)
	if err != nil || home == name {
		return err
	}
	for _, part := range s.log.(*chainLog).parts {
		switch part.name {
		case home:
			return nil // it comes first
		case name:
			return &CutError{firstKeptID, fmt.Sprintf("compaction %s in session %s, which comes later, takes precedence: undo that one first", sel.compaction.ID, home)}
		}
	}
	return nil
}
