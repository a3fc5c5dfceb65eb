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
	if found.Compaction == "" {
		return nil, nil
	}
	mark := marksOf(found.Entries[0].Compaction)
	if mark.Follows == 0 || len(v.items) >= mark.Items {
		return nil, nil
	}
	path, err := s.PathTo(found.Leaf)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(path, func(e session.Entry) bool { return e.ID == found.Compaction })
	if at < 0 || slices.ContainsFunc(path[at+1:], isNoMessage) {
		return nil, nil // somebody else was there since
	}
	// Either the rest was never written, or somebody went back on purpose.
	if n, err := chainAfter(s, found.Compaction); err != nil || n >= mark.Follows {
		return nil, err
	}
	if path[at].ParentID == nil {
		return &undo{}, nil
	}
	return &undo{to: *path[at].ParentID}, nil
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
		case e.ParentID == nil || *e.ParentID != last:
			return n, nil
		default:
			n, last = n+1, e.ID
		}
	}
	return n, nil
}

func isNoMessage(e session.Entry) bool { return e.Message == nil }
