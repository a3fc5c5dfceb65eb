package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// CompactionPlan is where a conversation can be compacted, and what the summary
// must cover.
type CompactionPlan struct {
	// FirstKept is the entry that will come right after the summary.
	FirstKept string
	// Summarise are the entries that the summary replaces, the previous summary
	// among them.
	Summarise []Entry
	// Kept are the entries that stay.
	Kept []Entry
	// TokensBefore and TokensKept are the sizes of the context now and of what
	// stays of it.
	TokensBefore, TokensKept int
}

// ErrNothingToCompact says that there is no legal cut that leaves anything out.
var ErrNothingToCompact = fmt.Errorf("nothing to compact: %w", ErrInvalid)

// PlanCompaction finds the legal cut that keeps as much of the end of a context
// as fits a number of tokens, counted by count. If not even the shortest legal
// end fits, that one is kept: a conversation that is too large must still become
// smaller. It returns ErrNothingToCompact when all of it fits or no legal cut
// leaves anything out.
func PlanCompaction(c *Context, keepTokens int, count func(Entry) int) (*CompactionPlan, error) {
	plan := &CompactionPlan{}
	tokens := make([]int, len(c.Entries))
	for i := range c.Entries {
		tokens[i] = count(c.Entries[i])
		plan.TokensBefore += tokens[i]
	}
	if plan.TokensBefore <= keepTokens {
		return nil, fmt.Errorf("all %d tokens fit %d: %w", plan.TokensBefore, keepTokens, ErrNothingToCompact)
	}
	legal := slices.DeleteFunc(c.cutPoints(), func(at int) bool {
		return at == 0 || at == 1 && c.Compaction != "" // would replace a summary by itself
	})
	if len(legal) == 0 {
		return nil, fmt.Errorf("no legal cut in %d entries: %w", len(c.Entries), ErrNothingToCompact)
	}
	// From the end: the earliest cut whose tail still fits.
	cut, kept, at := legal[len(legal)-1], 0, len(c.Entries)
	for i := len(legal) - 1; i >= 0; i-- {
		for ; at > legal[i]; at-- {
			kept += tokens[at-1]
		}
		if kept > keepTokens && i < len(legal)-1 {
			break
		}
		cut, plan.TokensKept = legal[i], kept
	}
	plan.FirstKept = c.Entries[cut].ID
	plan.Summarise, plan.Kept = c.Entries[:cut:cut], c.Entries[cut:]
	return plan, nil
}

// cutPoints returns the indices of the entries before which the context may be
// cut. If it was built from a path, the path decides: there a result may stand
// far from its call, and what was merged does not stand at all.
func (c *Context) cutPoints() []int {
	if len(c.origin) != len(c.Entries) {
		return CutPoints(c.Entries)
	}
	var cuts Cuts
	for _, e := range c.path {
		cuts.Add(*e)
	}
	var points []int
	for i, at := range c.origin {
		if _, legal := slices.BinarySearch(cuts.legal, at); legal {
			points = append(points, i)
		}
	}
	return points
}

// PlanCompaction plans a compaction of the context at the leaf: see the function
// of that name.
func (s *Session) PlanCompaction(keepTokens int, count func(Entry) int) (*CompactionPlan, error) {
	c, err := s.Context(ContextOptions{})
	if err != nil {
		return nil, err
	}
	return PlanCompaction(c, keepTokens, count)
}

// AppendCompaction replaces, in the context from here on, what stands before an
// entry by a summary. The log keeps it all; Undo takes it back. The entry must
// be on the path and the cut legal (see Cuts), and no tool call may be waiting
// for its result; otherwise nothing is written and the error, a *CutError, says
// why. An empty firstKeptID keeps nothing but the summary. tokens is the size of
// the context before.
func (s *Session) AppendCompaction(summary, firstKeptID string, tokens int) (string, error) {
	e := Entry{Type: TypeCompaction, Compaction: &CompactionEntry{
		Summary: summary, FirstKeptEntryID: firstKeptID, TokensBefore: tokens,
	}}
	if err := s.clean(&e); err != nil {
		return "", err
	}
	for {
		leaf, state, err := s.checkCompaction(firstKeptID)
		if err != nil {
			return "", err
		}
		ids, err := s.appendAll(func(t *tree) ([]Entry, error) {
			if t.leaf != leaf {
				return nil, errLeafMoved // a call may have been appended meanwhile
			}
			e.Compaction.State = state
			return []Entry{e}, nil
		})
		switch {
		case err == nil:
			return ids[0], nil
		case !errors.Is(err, errLeafMoved):
			return "", err
		}
	}
}

// errLeafMoved says that what was checked must be checked again. It is always
// acted on, never returned to a caller.
var errLeafMoved = errors.New("the leaf has moved")

// checkCompaction makes sure a compaction would be legal, and returns for which
// leaf that holds and what is in force there.
func (s *Session) checkCompaction(firstKeptID string) (leaf string, _ *State, _ error) {
	sel, err := s.selectPath(context.Background(), "")
	if err != nil {
		return "", nil, err
	}
	// An entry before the compaction in force can be kept again: then all of
	// the path decides.
	if firstKeptID != "" && !slices.ContainsFunc(sel.entries, func(e *Entry) bool { return e.ID == firstKeptID }) {
		if sel.entries, err = s.wholePath(sel); err != nil {
			return "", nil, err
		}
	}
	var cuts Cuts
	entries := make([]Entry, len(sel.entries))
	for i, e := range sel.entries {
		entries[i] = *e
		cuts.Add(*e)
	}
	if cuts.Pending() {
		return "", nil, &CutError{firstKeptID, "a tool call still waits for its result; append the result first"}
	}
	if firstKeptID != "" {
		if err := CheckCut(entries, firstKeptID); err != nil {
			return "", nil, err
		}
	}
	c := assemble(sel)
	return sel.leaf, &State{Provider: c.Provider, Model: c.Model, ThinkingLevel: c.ThinkingLevel}, nil
}

// wholePath returns the entries from the root to a selection's leaf.
func (s *Session) wholePath(sel *selection) ([]*Entry, error) {
	var nodes []node
	err := s.withWhole(func(t *tree) error {
		path, _ := t.path(sel.leaf)
		for i := len(path) - 1; i >= 0; i-- {
			nodes = append(nodes, t.nodes[path[i]])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.readPath(context.Background(), sel, nodes)
}

// Undo takes back the compaction in force: the context is again what it would
// be without it. It returns the id of the revert entry; reverting that one does
// the compaction again. It returns ErrNotExist when no compaction is in force.
func (s *Session) Undo() (string, error) {
	sel, err := s.selectPath(context.Background(), "")
	if err != nil {
		return "", err
	}
	if sel.compaction == nil {
		return "", &Error{Op: "undo", Name: s.name, Kind: ErrNotExist, Err: fmt.Errorf("no compaction is in force at %q", sel.leaf)}
	}
	return s.Revert(sel.compaction.ID)
}

// Revert takes back the effect of an entry on the path: a compaction, a context
// edit, a merge, or an earlier revert.
func (s *Session) Revert(targetID string) (string, error) {
	e := Entry{Type: TypeRevert, Revert: &RevertEntry{TargetID: targetID}}
	return s.appendTo("revert", targetID, e, kindCompaction, kindContextEdit, kindMerge, kindRevert)
}

// EditContext changes what a message on the path gives the model from here on;
// nil gives nothing. The message itself stays in the log, and Revert takes the
// edit back.
func (s *Session) EditContext(targetID string, replacement []Content) (string, error) {
	e := []Entry{{Type: TypeContextEdit, ContextEdit: &ContextEditEntry{TargetID: targetID, Replacement: replacement}}}
	blobs := heldBlobs{store: s.store}
	defer blobs.release()
	if err := s.makeReady(context.Background(), &blobs, e); err != nil {
		return "", err
	}
	return s.appendTo("edit", targetID, e[0], kindMessage)
}

// appendTo appends an entry that acts on another, which must be on the leaf's
// path and of one of the given kinds.
func (s *Session) appendTo(op, target string, e Entry, kinds ...kind) (string, error) {
	ids, err := s.appendAll(func(*tree) ([]Entry, error) {
		return []Entry{e}, s.checkTarget(op, target, kinds)
	})
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// checkTarget is called with mu held for writing.
func (s *Session) checkTarget(op, id string, kinds []kind) error {
	at, err := s.locate(op, id)
	if err != nil {
		return err
	}
	if !slices.Contains(kinds, s.tree.nodes[at].kind) {
		return &Error{Op: op, Name: s.name, Kind: ErrInvalid, Err: fmt.Errorf("entry %q is not of a type that this applies to", id)}
	}
	if s.tree.isOnPath(id, s.tree.leaf) {
		return nil
	}
	if err := s.whole(context.Background()); err != nil {
		return err
	}
	if !s.tree.isOnPath(id, s.tree.leaf) {
		return &Error{Op: op, Name: s.name, Kind: ErrInvalid, Err: fmt.Errorf("entry %q is not on the path to the leaf %q", id, s.tree.leaf)}
	}
	return nil
}

// locate finds an entry, reading the whole log if it must. It is called with mu
// held for writing.
func (s *Session) locate(op, id string) (int32, error) {
	at, ok := s.tree.at(id)
	if !ok {
		if err := s.whole(context.Background()); err != nil {
			return none, err
		}
		if at, ok = s.tree.at(id); !ok {
			return none, s.errNoEntry(op, id)
		}
	}
	return at, nil
}
