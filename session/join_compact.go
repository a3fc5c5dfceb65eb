package session

import "fmt"

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

// placeCompaction returns the session of a chain that a compaction goes into, and gives the
// compaction the id that its first kept entry has there. last is the last session.
func (s *Session) placeCompaction(e *Entry, last string) (name string, err error) {
	firstKeptID := e.Compaction.FirstKeptEntryID
	if _, err := s.checkCompaction(s.context(), s.LeafID(), nil, firstKeptID, false); err != nil {
		return "", err
	}
	if name = last; firstKeptID != "" {
		c := *e.Compaction
		if name, c.FirstKeptEntryID, err = s.Home(firstKeptID); err != nil {
			return "", err
		}
		e.Compaction = &c
	}
	return name, s.mustNotBeHidden(firstKeptID, name)
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
