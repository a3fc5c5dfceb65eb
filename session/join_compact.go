package session

import "fmt"

// A compaction of a chain is planned over all of it, because all of it is sent, and
// written to one of its sessions: the one that has the first entry that it keeps.
// There it can be checked like any other, and that session alone, the chain and
// every reader of either understand it without a further rule. It counts for the
// sessions after it as everything in a session does that they continue.

// homeOf returns the session of a chain that has an entry, which must be in the tree, and
// the id that the entry has there.
func (s *Session) homeOf(entryID string) (name, id string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	at, _ := s.tree.at(entryID)
	part := s.log.(*chainLog).partAt(s.tree.nodes[at].pos)
	if was, renamed := part.was[entryID]; renamed {
		entryID = was
	}
	return part.name, entryID
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
		name, c.FirstKeptEntryID = s.homeOf(firstKeptID)
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
	home, _ := s.homeOf(sel.compaction.ID)
	if home == name {
		return nil
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
