package session

import (
	"context"
	"fmt"
	"slices"
)

// Branch moves the leaf to an earlier entry: the next append will be its child.
// The move is recorded, so it survives a restart; the branch that is left stays
// where it is.
func (s *Session) Branch(entryID string) error {
	_, err := s.appendAll(func(*tree) ([]Entry, error) {
		if _, err := s.locate("branch", entryID); err != nil {
			return nil, err
		}
		if s.tree.leaf == entryID && s.tree.logLeaf == entryID {
			return nil, nil // it is there already, and the log says so
		}
		return []Entry{{Type: TypeLeaf, ParentID: &entryID, Leaf: &LeafEntry{FromID: s.tree.leaf}}}, nil
	})
	return err
}

// ResetLeaf moves the leaf before the first entry: the next append will begin
// another root.
func (s *Session) ResetLeaf() error {
	_, err := s.appendAll(func(t *tree) ([]Entry, error) {
		if t.leaf == "" && t.logLeaf == "" {
			return nil, nil
		}
		return []Entry{{Type: TypeLeaf, Leaf: &LeafEntry{FromID: t.leaf}}}, nil
	})
	return err
}

// BranchWithSummary moves the leaf to an earlier entry and appends there a
// summary of the path that is left, which the model will see. It returns the
// summary's id, which is the new leaf.
func (s *Session) BranchWithSummary(branchFromID string, summary string) (string, error) {
	e := Entry{Type: TypeBranchSummary, BranchSummary: &BranchSummaryEntry{Summary: summary}}
	if err := s.clean(&e); err != nil {
		return "", err
	}
	ids, err := s.appendAll(func(*tree) ([]Entry, error) {
		if _, err := s.locate("branch", branchFromID); err != nil {
			return nil, err
		}
		left := s.tree.leaf
		e.BranchSummary.FromID = left
		return []Entry{{Type: TypeLeaf, ParentID: &branchFromID, Leaf: &LeafEntry{FromID: left}}, e}, nil
	})
	if err != nil {
		return "", err
	}
	return ids[1], nil
}

// SetLabel names an entry; an empty label removes its name. It returns the id
// of the label entry.
func (s *Session) SetLabel(targetID string, label string) (string, error) {
	e := Entry{Type: TypeLabel, Label: &LabelEntry{TargetID: targetID, Label: label}}
	if err := s.clean(&e); err != nil {
		return "", err
	}
	ids, err := s.appendAll(func(*tree) ([]Entry, error) {
		if _, err := s.locate("label", targetID); err != nil {
			return nil, err
		}
		return []Entry{e}, nil
	})
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// Comparison is how two branches relate.
type Comparison struct {
	Ancestor string  // the last entry they share, or "" if none
	Shared   int     // how many entries they share
	OnlyA    []Entry // what the first has alone, the earliest first
	OnlyB    []Entry // what the second has alone
}

// Compare compares the paths to two entries.
func (s *Session) Compare(a, b string) (*Comparison, error) {
	pathA, err := s.PathTo(a)
	if err != nil {
		return nil, err
	}
	pathB, err := s.PathTo(b)
	if err != nil {
		return nil, err
	}
	c := &Comparison{}
	for c.Shared < min(len(pathA), len(pathB)) && pathA[c.Shared].ID == pathB[c.Shared].ID {
		c.Ancestor = pathA[c.Shared].ID
		c.Shared++
	}
	c.OnlyA, c.OnlyB = pathA[c.Shared:], pathB[c.Shared:]
	return c, nil
}

// Merge brings what another branch arrived at onto this one: a summary of it,
// chosen entries of it, or both. The entries stay where they are; the context
// shows them here. A chosen tool call needs its results chosen too, and the
// other way round. What is on this branch already, or was merged into it, is
// refused with ErrInvalid: a model would be sent it twice.
func (s *Session) Merge(fromID, summary string, entryIDs ...string) (string, error) {
	if summary == "" && len(entryIDs) == 0 {
		return "", &Error{Op: "merge", Name: s.name, Kind: ErrInvalid, Err: fmt.Errorf("neither a summary nor entries of branch %q were given", fromID)}
	}
	if fromID == "" {
		return "", s.errNoEntry("merge", fromID) // to PathTo it would be the leaf
	}
	path, err := s.PathTo(fromID)
	if err != nil {
		return "", err
	}
	if err := s.checkPicked(path, fromID, entryIDs); err != nil {
		return "", err
	}
	if err := s.checkNew(entryIDs); err != nil {
		return "", err
	}
	return s.append(Entry{Type: TypeMerge, Merge: &MergeEntry{FromID: fromID, Summary: summary, EntryIDs: slices.Clone(entryIDs)}})
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
		return &Error{Op: "merge", Name: s.name, Kind: ErrInvalid, Err: fmt.Errorf("the entries tear a tool call from its result: %v", picked.Problems[0])}
	}
	return nil
}

// checkNew makes sure that no entry is on the path to the leaf or merged into it,
// and that none is named twice.
func (s *Session) checkNew(ids []string) error {
	sel, err := s.selectPath(context.Background(), "")
	if err != nil {
		return err
	}
	wanted := make(map[string]bool)
	for _, id := range ids {
		wanted[id] = true
	}
	there, err := s.alreadyThere(context.Background(), sel, wanted)
	if err != nil {
		return err
	}
	for merge, picked := range sel.picked {
		for _, e := range picked {
			there[e.ID] = "merge " + merge + " brings it"
		}
	}
	for _, id := range ids {
		if why := there[id]; why != "" {
			return &Error{Op: "merge", Name: s.name, Kind: ErrInvalid, Err: fmt.Errorf("entry %q is there already: %s", id, why)}
		}
		there[id] = "it is named twice"
	}
	return nil
}
