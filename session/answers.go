package session

import "fmt"

// CheckResults returns an error, which is ErrInvalid, if an entry has the result of a
// tool call that has none to wait for on the path to an entry: no model would be sent
// it. Append does not ask, because to find the call it may have to read all of the
// path, and an agent must not lose what a tool said; it is for those who write by hand.
func (s *Session) CheckResults(leaf string, e *Entry) error {
	if e.Message == nil || !hasResults(e.Message) {
		return nil
	}
	path, err := s.pathTo(leaf)
	if err != nil {
		return err
	}
	entries, err := s.inOrder(path)
	if err != nil {
		return err
	}
	var pairs Pairs
	made := make(map[string]bool)
	for _, before := range append(entries, e) {
		if before == nil {
			continue // it cannot be read
		}
		for _, ref := range pairs.Add(before).Refs {
			switch {
			case ref.Call:
				made[ref.ID] = true
			case ref.Pair != NoPair || before != e:
			case made[ref.ID]:
				return s.refuseResult(fmt.Errorf("tool call %.80q already has a result", ref.ID))
			default:
				return s.refuseResult(fmt.Errorf("no tool call before the leaf has the id %.80q", ref.ID))
			}
		}
	}
	return nil
}

func (s *Session) refuseResult(why error) error {
	return &Error{Op: "append", Name: s.name, Kind: ErrInvalid, Err: why}
}
