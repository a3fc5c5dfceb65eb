package session

import (
	"context"
	"errors"
	"fmt"
)

// Branch moves the leaf to an earlier entry: the next append will be its child.
// The move is recorded, so it survives a restart; the branch that is left stays
// where it is.
func (s *Session) Branch(entryID string) error {
	if entryID == "" { // to a Tx it would be the place before the first entry
		return s.errNoEntry("branch", entryID)
	}
	_, err := s.last("branch", func(tx *Tx) { tx.Branch(entryID) })
	return err
}

// Comparison is how two branches relate.
type Comparison struct {
	Ancestor string   // the last entry they share, or "" if none
	Shared   int      // how many entries they share
	OnlyA    []string // the ids of those that the first has alone, the earliest first
	OnlyB    []string // of those that the second has alone
}

// Compare compares two paths by the ids of their entries, the root first. They may be of
// different sessions: a fork has the entries of its original, with their ids. What both paths
// have is shared, even after one of them has something else in between.
func Compare(a, b []string) *Comparison {
	c := &Comparison{}
	inA, inB := make(map[string]bool, len(a)), make(map[string]bool, len(b))
	for _, id := range b {
		inB[id] = true
	}
	for _, id := range a {
		inA[id] = true
		if inB[id] {
			c.Ancestor = id
			c.Shared++
		} else {
			c.OnlyA = append(c.OnlyA, id)
		}
	}
	for _, id := range b {
		if !inA[id] {
			c.OnlyB = append(c.OnlyB, id)
		}
	}
	return c
}

// checkInLog makes sure that a merge picks entries, and only entries that it may pick.
func (m *MergeEntry) checkInLog(ctx context.Context, s *Session, w *writing, i int) error {
	if m.Summary == "" && len(m.EntryIDs) == 0 {
		return s.refuse(w, i, ErrInvalid, fmt.Errorf("neither a summary nor entries of branch %q were given", m.FromID))
	}
	if m.FromID == "" {
		return s.errNoEntry(w.op, m.FromID) // to Path it would be the leaf
	}
	base, rest := w.pathTo(w.findParent(&m.FromID, i))
	var path []Entry
	if base != "" {
		var err error
		if path, err = s.Forward(base); errors.Is(err, ErrNotExist) {
			return s.errNoEntry(w.op, m.FromID)
		} else if err != nil {
			return err
		}
	}
	for _, e := range rest {
		path = append(path, *e)
	}
	if err := s.checkPicked(path, m.FromID, m.EntryIDs); err != nil {
		return err
	}
	return s.checkNew(ctx, w, i)
}

// checkPicked makes sure that the entries are messages of a path and that tool
// calls and results among them are paired.
func (s *Session) checkPicked(path []Entry, fromID string, ids []string) error {
	var picked Context
	places := make(map[string]int, len(path))
	for i := range path {
		places[path[i].ID] = i
	}
	for _, id := range ids {
		at, ok := places[id]
		if !ok || path[at].Message == nil {
			return &Error{Op: "merge", Name: s.name, Kind: ErrInvalid, Err: fmt.Errorf("entry %q is not a message on the path to %q", id, fromID)}
		}
		picked.Entries = append(picked.Entries, path[at])
	}
	picked.pairTools()
	if len(picked.Problems) > 0 {
		return &Error{Op: "merge", Name: s.name, Kind: ErrInvalid, Err: fmt.Errorf("the entries separate a tool call from its result: %v", picked.Problems[0])}
	}
	return nil
}

// checkNew makes sure that no entry is on the path to the leaf or merged into it,
// and that none is named twice.
func (s *Session) checkNew(ctx context.Context, w *writing, i int) error {
	ids := w.entries[i].Merge.EntryIDs
	wanted, there := make(map[string]bool), make(map[string]string)
	for _, id := range ids {
		wanted[id] = true
	}
	base, rest := w.pathTo(w.parentOf(i, w.checkedLeaf))
	sel := &selection{}
	var err error
	if base != "" {
		if sel, err = s.selectPath(ctx, base); err == nil {
			there, err = s.alreadyThere(ctx, sel, wanted)
		}
		if err != nil {
			return err
		}
	}
	for _, e := range rest {
		there[e.ID] = "it is on the path"
		if e.Merge != nil {
			for _, id := range e.Merge.EntryIDs {
				there[id] = "another merge in the same write brings it"
			}
		}
	}
	for merge, picked := range sel.picked {
		for _, e := range picked {
			there[e.ID] = "merge " + merge + " brings it"
		}
	}
	for _, id := range ids {
		if why := there[id]; why != "" {
			return s.refuse(w, i, ErrInvalid, fmt.Errorf("cannot merge entry %q again: %s", id, why))
		}
		there[id] = "it is named twice"
	}
	return nil
}
