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

// grouping finds out which group an entry belongs to.
type grouping struct {
	// waiting has, by call id, the latest call that has no result yet, as a place
	// in calls. Some providers use ids again, so there may be others under it.
	waiting map[string]int32
	calls   []openCall
	// last is the last message, if it was the model's.
	last         *session.MessageEntry
	lastGroup    int32
	onlyThinking bool
}

type openCall struct {
	group int32
	under int32 // the call of the same id that waited before, or none
}

// join returns the groups that an entry brings together, or what they were before
// they were merged. None means that it begins one.
func (g *grouping) join(e *session.Entry) []int32 {
	m := e.Message
	if m == nil {
		return nil // the last message is still what it was
	}
	var joined []int32
	if g.goesOn(m) {
		joined = append(joined, g.lastGroup)
	}
	for i := range m.Content {
		if result := m.Content[i].ToolResult; result != nil {
			if at, ok := g.waiting[result.ToolUseID]; ok {
				joined = append(joined, g.calls[at].group)
				g.answered(result.ToolUseID, at)
			}
		}
	}
	return joined
}

// goesOn reports whether a message goes on the response of the last one:
// thinking stays with what was thought about.
func (g *grouping) goesOn(m *session.MessageEntry) bool {
	if g.last == nil || m.Role != session.RoleAssistant {
		return false
	}
	if g.last.ResponseID != "" || m.ResponseID != "" {
		return g.last.ResponseID == m.ResponseID
	}
	return g.onlyThinking
}

// note remembers what later entries may join.
func (g *grouping) note(e *session.Entry, at int32) {
	m := e.Message
	if m == nil {
		return
	}
	g.last = nil
	if m.Role != session.RoleAssistant {
		return
	}
	g.last, g.lastGroup, g.onlyThinking = m, at, len(m.Content) > 0
	for i := range m.Content {
		if m.Content[i].Thinking == nil {
			g.onlyThinking = false
		}
		if call := m.Content[i].ToolUse; call != nil {
			g.wait(call.ID, at)
		}
	}
}

func (g *grouping) wait(id string, group int32) {
	if g.waiting == nil {
		g.waiting = make(map[string]int32)
	}
	under, ok := g.waiting[id]
	if !ok {
		under = none
	}
	if len(g.waiting) == 0 {
		g.calls = g.calls[:0] // nobody refers to them any more
	}
	g.waiting[id] = int32(len(g.calls))
	g.calls = append(g.calls, openCall{group, under})
}

func (g *grouping) answered(id string, at int32) {
	if under := g.calls[at].under; under != none {
		g.waiting[id] = under
		return
	}
	delete(g.waiting, id)
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
