package session

import (
	"context"
	"errors"
	"slices"
)

// What an entry may be can depend on the entries before it. The path to it is only partly in the log:
// it ends with entries that are written by the same call. For a compaction c that is written with two
// messages, after the leaf b:
//
//	a ── b │ m1 ── m2 ── c
//	  log  │  writing.entries
//
// parentOf(2) is {at: 1}, and pathTo returns the base "b" and the rest m1, m2.

// checkInLog makes the checks for which the log must be read.
func (s *Session) checkInLog(ctx context.Context, w *writing) error {
	if !w.needsLog() {
		return nil
	}
	w.checked, w.checkedLeaf = true, w.startLeaf(s.LeafID())
	for i := range w.entries {
		if !w.isCheckedInLog(i) {
			continue
		}
		_, p := w.entries[i].payload()
		if err := p.(logChecker).checkInLog(ctx, s, w, i); err != nil {
			return err
		}
	}
	w.checked = !w.graft // a graft brings its parents, so the leaf does not matter
	return nil
}

func (w *writing) needsLog() bool {
	for i := range w.entries {
		if w.isCheckedInLog(i) {
			return true
		}
	}
	return false
}

func (w *writing) isCheckedInLog(i int) bool {
	k, _ := w.entries[i].payload()
	return kinds[k].inLog == inLogAlways || kinds[k].inLog == inLogIfOurs && !w.isGraft(i)
}

// checkInLog makes sure that a compaction does not separate a tool call from its result, and
// records the state in force, so that a resume need not search for it. Readers
// trust the State, so callers may not set it.
func (*CompactionEntry) checkInLog(ctx context.Context, s *Session, w *writing, i int) error {
	base, before := w.pathTo(w.parentOf(i, w.checkedLeaf))
	c := *w.entries[i].Compaction
	if c.FirstKeptEntryID != "" && c.FirstKeptEntryID == w.entries[i].ID {
		c.FirstKeptEntryID = "" // which means the same
	}
	state, err := s.checkCompaction(ctx, base, before, c.FirstKeptEntryID, w.isGraft(i))
	var cut *CutError
	if errors.As(err, &cut) && len(w.entries) == 1 && !w.isNamed(i) {
		return err // it already says what is wrong
	}
	if err != nil {
		return s.refuse(w, i, nil, err)
	}
	if !w.isGraft(i) { // grafted compactions stay as they are
		c = *w.entries[i].Compaction
		if c.State != nil {
			state.Extra = c.State.Extra
		}
		c.State = state // replaces whatever the caller set
		w.entries[i].Compaction = &c
	}
	return nil
}

// parentRef is a parent: one of the entries that are being written, by its index at, or if at is -1
// an entry of the session, by its id. The id "" means no parent.
type parentRef struct {
	at int
	id string
}

// parentOf returns the parent of an entry. leaf is that of the session.
func (w *writing) parentOf(i int, leaf string) parentRef {
	if w.isGraft(i) {
		return w.findParent(w.entries[i].ParentID, i)
	}
	if i == 0 {
		return parentRef{-1, leaf}
	}
	if last := &w.entries[i-1]; last.Type == TypeLeaf {
		return w.findParent(last.ParentID, i-1)
	}
	return parentRef{at: i - 1}
}

// findParent returns the entry with an id: one of the first n that are being written, or else one of
// the session.
func (w *writing) findParent(id *string, n int) parentRef {
	if id == nil {
		return parentRef{at: -1}
	}
	for i := n - 1; i >= 0; i-- {
		if w.entries[i].ID == *id {
			return parentRef{at: i}
		}
	}
	return parentRef{-1, *id}
}

// pathTo returns the path to a parent: base, the last entry on it that is in the session, and the
// entries after base, which are being written.
func (w *writing) pathTo(p parentRef) (base string, rest []*Entry) {
	for p.at >= 0 {
		rest = append(rest, &w.entries[p.at])
		p = w.parentOf(p.at, w.checkedLeaf)
	}
	slices.Reverse(rest)
	return p.id, rest
}
