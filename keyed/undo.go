package keyed

import (
	"errors"
	"math"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// undo takes back a partly written replacement of the history: the leaf goes back to
// where it was before. This waits until the next write, because another process may be
// writing the replacement right now.
type undo struct{ to string } // the entry to go back to, or "" for before the first

func (u *undo) apply(s *session.Session) error {
	if u.to == "" {
		return s.ResetLeaf()
	}
	return s.Branch(u.to)
}

// cutShort looks for a replacement that was cut short. It returns how to take it back,
// or nil.
func cutShort(s *session.Session, found *session.Context, v view) (*undo, error) {
	suspect, err := mayBeShort(s, found, v)
	if !suspect || err != nil {
		return nil, err
	}
	path, err := s.PathTo(found.Leaf)
	if err != nil {
		return nil, err
	}
	begin, compaction := batchAtEnd(path)
	if begin == len(path) {
		return nil, nil // another writer has added entries since
	}
	if compaction != nil {
		// Either the rest was never written, or the leaf was moved back on purpose.
		n, err := chainAfter(s, compaction.ID)
		if err != nil || n >= marksOf(compaction.Compaction.Extra).Follows {
			return nil, err
		}
	}
	if begin > 0 {
		return &undo{to: path[begin-1].ID}, nil
	}
	if path[0].Type != session.TypeGap {
		return &undo{}, nil
	}
	// So much of it is damaged that its path leads nowhere. It was the last thing written,
	// so it began after whatever comes before it in the log.
	to, err := beforeBatch(s)
	return &undo{to: to}, err
}

// mayBeShort reports whether the path may end with a replacement that was cut short. It runs
// whenever a session is read, so it only looks at what was read anyway.
func mayBeShort(s *session.Session, found *session.Context, v view) (bool, error) {
	if found.Leaf == "" {
		return false, nil
	}
	// A leaf from which nothing can be read may be the end of one, too.
	if len(found.Entries) == 0 || lacksCompaction(found) {
		return true, nil
	}
	leaf, err := s.Entry(found.Leaf)
	if err != nil && !errors.Is(err, session.ErrCorrupt) {
		return false, err
	}
	if mark := marksOf(leaf.Extra); mark.StandIn || mark.Nth < mark.Of || leaf.ContextEdit != nil && !isAfter(s, &leaf, mark.Nth, found.Compaction) {
		return true, nil
	}
	at := compactionIn(found)
	if at < 0 {
		return false, nil
	}
	mark := marksOf(found.Entries[at].Compaction.Extra)
	if mark.Follows == 0 {
		return false, nil
	}
	return leaf.ID == found.Entries[at].ID || v.batch() != mark.Items, nil
}

// isAfter reports whether an edit is the nth entry after the compaction that it was written
// with. The context does not contain edits, so lacksCompaction cannot see the ones whose
// compaction a power cut took away.
func isAfter(s *session.Session, edit *session.Entry, nth int, compaction string) bool {
	e := *edit
	for range nth {
		if e.ParentID == nil {
			return false
		}
		var err error
		if e, err = s.Entry(*e.ParentID); err != nil {
			return false
		}
	}
	return nth == 0 || e.ID == compaction
}

// batch returns how many items a view had when the replacement that it begins with was
// written, or would have had if that is damaged.
func (v view) batch() int {
	for i, it := range slices.Backward(v.items) {
		if marksOf(it.entry.Extra).Of > 0 {
			return i + 1
		}
	}
	return v.stays
}

// beforeBatch returns the leaf before the replacement that the log ends with, or "".
func beforeBatch(s *session.Session) (string, error) {
	before, standIn := "", ""
	for e, err := range s.Entries() {
		if err != nil {
			return "", err
		}
		parent := ""
		if e.ParentID != nil {
			parent = *e.ParentID
		}
		switch mark := marksOf(e.Extra); {
		case e.Type == session.TypeGap, mark.Of > 0:
		case mark.StandIn:
			before, standIn = parent, e.ID
		case e.Compaction != nil && marksOf(e.Compaction.Extra).Follows > 0:
			if parent != standIn || standIn == "" {
				before = parent
			}
		default:
			before = e.ID
		}
	}
	return before, nil
}

// lacksCompaction reports whether the context ends with entries of a new history without
// their compaction.
func lacksCompaction(found *session.Context) bool {
	next := 0
	for _, e := range slices.Backward(found.Entries) {
		mark := marksOf(e.Extra)
		switch {
		case next == 0 && mark.Of == 0:
			return false // it ends with something else
		case next != 0 && mark.Nth != next-1:
			return true
		case mark.Nth == 1:
			return e.ParentID == nil || *e.ParentID != found.Compaction
		}
		next = mark.Nth
	}
	return next != 0
}

// batchAtEnd returns where the damaged replacement begins that a path ends with: at
// what comes before its compaction, at its compaction, or at what is left of it; and
// the compaction, if it is there. Without such a replacement it returns the path's end.
// A replacement whose lines can all be read is fine, even if its compaction was
// reverted since.
func batchAtEnd(path []session.Entry) (begin int, compaction *session.Entry) {
	begin = len(path)
	gap, short, next := false, false, math.MaxInt
	for begin > 0 {
		e := &path[begin-1]
		if e.Compaction != nil {
			if mark := marksOf(e.Compaction.Extra); mark.Follows > 0 {
				begin--
				compaction, short = e, len(path)-begin-1 < mark.Follows
			}
			break
		}
		mark := marksOf(e.Extra)
		if e.Type != session.TypeGap && (mark.Of == 0 || mark.Nth >= next) {
			break // something else, or the end of the replacement before this one
		}
		if mark.Of > 0 {
			next = mark.Nth
		}
		gap = gap || e.Type == session.TypeGap
		begin--
	}
	if begin > 0 && marksOf(path[begin-1].Extra).StandIn {
		short = short || begin == len(path)
		begin--
	}
	if !gap && !short {
		return len(path), nil
	}
	return begin, compaction
}

// chainAfter returns how many entries follow one in the log, each the child of the one
// before, as if they were written together.
func chainAfter(s *session.Session, id string) (int, error) {
	n, last := 0, ""
	for e, err := range s.Entries() {
		switch {
		case err != nil:
			return 0, err
		case last == "" && e.ID == id:
			last = id
		case last == "":
		case e.Type == session.TypeGap || e.ParentID == nil || *e.ParentID != last:
			return n, nil
		default:
			n, last = n+1, e.ID
		}
	}
	return n, nil
}
