package session

// CheckResults returns an error that matches ErrInvalid if an entry has the result of a tool
// call that no call on the path before it waits for: no model would be sent it. Append does
// not check this, because that takes the whole path, and an agent must not lose what a tool
// said. Call it for results that a person writes by hand.
func CheckResults(path []Entry, e *Entry) error {
	var pairs Pairs
	made := make(map[string]bool)
	for i := range path {
		for _, ref := range pairs.Add(&path[i]).Refs {
			made[ref.ID] = made[ref.ID] || ref.Call
		}
	}
	for _, ref := range pairs.Add(e).Refs {
		switch {
		case ref.Call:
			made[ref.ID] = true
		case ref.Pair != NoPair:
		case made[ref.ID]:
			return Invalidf("tool call %.80q already has a result", ref.ID)
		default:
			return Invalidf("no tool call before the leaf has the id %.80q", ref.ID)
		}
	}
	return nil
}
