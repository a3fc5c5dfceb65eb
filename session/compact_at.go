package session

import "slices"

// fill fills in the part of the context that a compaction keeps, and the part that its summary must
// cover.
func (plan *CompactionPlan) fill(now, compacted *Context, sel *selection, count func(Entry) int) {
	if sel.splitsTurn() {
		plan.Kind = CutStep
	}
	kept := make(map[string]bool)
	for _, e := range compacted.Entries {
		if e.ID == sel.compaction.ID {
			continue
		}
		kept[e.ID] = true
		plan.Kept = append(plan.Kept, e.clone())
		plan.TokensKept += count(e)
	}
	for _, e := range now.Entries {
		plan.TokensBefore += count(e)
		if !kept[e.ID] {
			plan.Summarise = append(plan.Summarise, e)
		}
	}
}

// selectCompacted selects from the path what would count after appending a compaction that
// keeps it from an entry on.
func (s *Session) selectCompacted(firstKeptID string) (*selection, error) {
	ctx := s.context()
	sel, err := s.selectPath(ctx, "")
	if err != nil {
		return nil, err
	}
	checked := sel.entries
	sel.older, sel.picked, sel.problems = ancestors{at: none}, nil, nil // all of the path is at hand now
	if sel.entries, err = s.wholePath(sel); err != nil {
		return nil, err
	}
	// As an append does it: all of the path decides about a cut before the
	// compaction in force.
	if !slices.ContainsFunc(checked, func(e *Entry) bool { return e.ID == firstKeptID }) {
		checked = sel.entries
	}
	if err := checkCut(checked, firstKeptID, false); err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(sel.entries) { // also those before the compaction in force
		if e.Revert != nil {
			sel.reverted.add(e.ID, e.Revert.TargetID)
		}
	}
	if err := s.readPicked(ctx, sel); err != nil {
		return nil, err
	}
	cut := slices.IndexFunc(sel.entries, func(e *Entry) bool { return e.ID == firstKeptID })
	sel.compaction = &Entry{Type: TypeCompaction, ID: NewID(), Compaction: &CompactionEntry{FirstKeptEntryID: firstKeptID}}
	sel.before, sel.entries = sel.entries[:cut:cut], append(slices.Clone(sel.entries[cut:]), sel.compaction)
	return sel, nil
}
