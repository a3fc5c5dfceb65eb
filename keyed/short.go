package keyed

import (
	"errors"

	"github.com/coppice-dev/coppice/session"
)

// cutShort looks at the end of a path for entries that count together, of which a crash left
// only some. If there are any, it returns the entry that the conversation ended with before.
// They are taken back by the next write and not now, because another process may be writing
// them.
func cutShort(s *session.Session, leaf string) (before string, short bool, err error) {
	if leaf == "" {
		before, err = lastWhole(s)
		return before, before != "", err
	}
	if e, err := s.Entry(leaf); err == nil && marksOf(e.Extra).Last == "" {
		return "", false, nil // as most of the time
	}
	var mark marks
	for e, err := range s.Path(leaf) {
		switch {
		case err != nil:
			return "", false, err
		case mark.Last == "" && e.Type == session.TypeGap:
		case mark.Last == "":
			if mark = marksOf(e.Extra); mark.Last == "" {
				return "", false, nil // the path ends with something else
			}
			if _, err := s.Entry(mark.Last); errors.Is(err, session.ErrNotExist) || errors.Is(err, session.ErrCorrupt) {
				return mark.Before, true, nil
			} else if err != nil {
				return "", false, err
			}
		case marksOf(e.Extra).Last != mark.Last: // it should be what they were written after
			return mark.Before, mark.Restart || e.ID != mark.Before, nil
		}
	}
	if mark.Last != "" {
		return "", false, nil // they are all that there is
	}
	// So much is damaged that the path leads nowhere. It was the last thing written, so it
	// began after whatever comes before it in the log.
	before, err = lastWhole(s)
	return before, true, err
}

// lastWhole returns where the log ends without what is damaged or cut short at its end.
func lastWhole(s *session.Session) (leaf string, err error) {
	for e, err := range s.Entries() {
		if err != nil {
			return "", err
		}
		switch mark := marksOf(e.Extra); {
		case e.Type == session.TypeGap:
		case mark.Last != "" && mark.Last != e.ID:
			leaf = mark.Before
		case e.Leaf == nil:
			leaf = e.ID
		case e.ParentID == nil:
			leaf = ""
		default:
			leaf = *e.ParentID
		}
	}
	return leaf, nil
}
