package window

import "github.com/coppice-dev/coppice/session"

// item is an entry of the conversation, as the planner knows it.
type item struct {
	cost     Cost
	category Category
	group    int32 // see Planner.groupOf
	next     int32 // the next of the group, or none
	at       int32 // where it is in the planner's entries
	images   int32 // that are still in it
	gone     bool
}

const none = -1

// group is what cannot be taken apart: a response of the model with the results
// of its calls, or any other entry by itself.
type group struct {
	cost        Cost
	begun       int  // how many tokens had been added before it
	used        sums // tokens in the view
	first, last int32
	into        int32    // the group that it was merged into, or none
	class       Category // as what it is trimmed
	byUser      bool     // it begins with the user's words
	gone        bool
	large       bool // it is in the planner's list of large ones
}

// joined returns the groups that the next entry brings together, or what they were
// before they were merged: the response that it goes on, and those whose calls it
// answers. None means that it begins one.
func (p *Planner) joined(e *session.Entry) []int32 {
	var groups []int32
	added := p.pairs.Add(e)
	if added.Continues >= 0 {
		groups = append(groups, p.items[added.Continues].group)
	}
	for _, ref := range added.Refs {
		if ref.Call || ref.Pair == session.NoPair {
			continue
		}
		if call := p.pairs.Refs()[ref.Pair]; call.Entry != added.Index {
			groups = append(groups, p.items[call.Entry].group)
		}
	}
	return groups
}

// classWith is what a group is trimmed as when an entry of a category joins it.
// What must be kept wins; and a call goes when its results go.
func classWith(class, joining Category) Category {
	switch {
	case class == System || joining == System:
		return System
	case class == Context || joining == Context:
		return Context
	}
	return max(class, joining)
}
