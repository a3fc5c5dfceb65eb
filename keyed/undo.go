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
	after := path[at+1:]
	if at < 0 || len(after) >= mark.Follows || slices.ContainsFunc(after, isNoMessage) {
		return nil, nil // the view is shorter because of what somebody else did
	}
	// Or somebody went back on purpose to one in the middle: that one has a child.
	leaves, err := s.Leaves()
	if err != nil || !slices.Contains(leaves, found.Leaf) {
		return nil, err
	}
	if path[at].ParentID == nil {
		return &undo{}, nil
	}
	return &undo{to: *path[at].ParentID}, nil
}

func isNoMessage(e session.Entry) bool { return e.Message == nil }
