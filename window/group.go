package window

import "github.com/coppice-dev/coppice/session"

// item is the planner's record of an entry.
type item struct {
	cost     Cost
	category Category
	group    int32 // see Planner.groupOf
	next     int32 // the next item of the group, or none
	at       int32 // its index in the planner's entries
	images   int32 // how many images are still in it
	gone     bool
}

const none = -1

// group is a set of items that must not be taken apart: a response of the model with the results of
// its calls, or any other entry by itself.
type group struct {
	cost        Cost
	begun       int  // how many tokens were added before it
	used        sums // tokens in the view
	first, last int32
	into        int32    // the group that it was merged into, or none
	class       Category // the category that it is trimmed with
	byUser      bool     // it begins with a message of the user
	gone        bool
	large       bool // it is in the planner's list of large ones
}

// joined returns the groups that the next entry joins, possibly under numbers from
// before a merge: the response that it continues, and those whose calls it answers. If
// there are none, it begins a group.
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

// classWith returns the class of a group after an entry of a category joins it. What
// must be kept wins, and a call goes when its results go.
func classWith(class, joining Category) Category {
	switch {
	case class == System || joining == System:
		return System
	case class == Context || joining == Context:
		return Context
	}
	return max(class, joining)
}
