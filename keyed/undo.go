package keyed

import (
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// undo takes back a replacement of the history of which only the beginning was
// written: the leaf goes back to where it was. The log is left as it is until
// somebody writes, because the replacement may be another process's that is
// being written right now.
type undo struct{ to string } // the entry, or "" for before the first

func (u *undo) apply(s *session.Session) error {
	if u.to == "" {
		return s.ResetLeaf()
	}
	return s.Branch(u.to)
}

// cutShort looks for a replacement that was cut short, and returns how to take
// it back, or nil.
func cutShort(s *session.Session, found *session.Context, v view) (*undo, error) {
	// A leaf from which nothing at all can be read is the end of one, too.
	suspect := lacksCompaction(found) || found.Leaf != "" && len(found.Entries) == 0
	if at := slices.IndexFunc(found.Entries, func(e session.Entry) bool { return e.Compaction != nil }); at >= 0 {
		mark := marksOf(found.Entries[at].Compaction.Extra)
		suspect = suspect || mark.Follows > 0 && len(v.items) < mark.Items
	}
	if !suspect {
		return nil, nil
	}
	path, err := s.PathTo(found.Leaf)
	if err != nil {
		return nil, err
	}
	begin := batchAtEnd(path)
	if begin == len(path) {
		return nil, nil // somebody else was there since
	}
	if first := path[begin]; first.Compaction != nil {
		// Either the rest was never written, or somebody went back on purpose.
		n, err := chainAfter(s, first.ID)
		if err != nil || n >= marksOf(first.Compaction.Extra).Follows {
			return nil, err
		}
	}
	if begin > 0 {
		return &undo{to: path[begin-1].ID}, nil
	}
	if path[0].Type != session.TypeGap {
		return &undo{}, nil
	}
	// So much of it is damaged that its path leads nowhere. It is the last that
	// was written, so what came before it in the log is where it began.
	to, err := beforeBatch(s)
	return &undo{to: to}, err
}

// beforeBatch returns the entry that stood at the leaf before the replacement that
// the log ends with, or "".
func beforeBatch(s *session.Session) (string, error) {
	before := ""
	for e, err := range s.Entries() {
		if err != nil {
			return "", err
		}
		switch {
		case e.Type == session.TypeGap, marksOf(e.Extra).Of > 0:
		case e.Compaction != nil && marksOf(e.Compaction.Extra).Follows > 0:
			before = ""
			if e.ParentID != nil {
				before = *e.ParentID
			}
		default:
			before = e.ID
		}
	}
	return before, nil
}

// lacksCompaction reports whether the context ends with entries of a new history
// that do not follow their compaction.
func lacksCompaction(found *session.Context) bool {
	next := 0
	for _, e := range slices.Backward(found.Entries) {
		mark := marksOf(e.Extra)
		switch {
		case next == 0 && mark.Of == 0:
			return false // it does not end with any
		case next != 0 && mark.Nth != next-1:
			return true
		case mark.Nth == 1:
			return e.ParentID == nil || *e.ParentID != found.Compaction
		}
		next = mark.Nth
	}
	return next != 0
}

// batchAtEnd returns where the damaged replacement begins that a path ends with:
// at its compaction, or at what is left of it. Without one it is the path's end.
// There is nothing wrong with a replacement whose lines can all be read, even if
// its compaction was reverted since.
func batchAtEnd(path []session.Entry) int {
	begin, gap, short := len(path), false, false
	for begin > 0 {
		e := &path[begin-1]
		if e.Compaction != nil {
			if mark := marksOf(e.Compaction.Extra); mark.Follows > 0 {
				begin--
				short = len(path)-begin-1 < mark.Follows
			}
			break
		}
		if e.Type != session.TypeGap && marksOf(e.Extra).Of == 0 {
			break
		}
		gap = gap || e.Type == session.TypeGap
		begin--
	}
	if !gap && !short {
		return len(path)
	}
	return begin
}

// chainAfter returns how many entries follow one in the log, each the child of
// the one before, as they were written together.
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
