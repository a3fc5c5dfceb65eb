package session

import (
	"fmt"
	"slices"
)

// Cuts knows where a conversation may be cut: before which entries a compaction
// or a window may begin. It is kept up to date entry by entry, so that asking
// costs nothing.
//
// A cut may stand before a message of the user, before a message of the model
// that calls no tools, and before entries that are not messages. There is none
// between a tool call and its result, whatever stands between the two; none
// inside one response of the model, which may be several entries; and none
// between the model's thinking and what it thought about.
//
// A call that was never answered holds the cuts up only until the user speaks
// again: it was interrupted, and must not prevent compaction for ever.
type Cuts struct {
	n      int
	legal  []int            // ascending
	calls  map[string][]int // by call id, where those were made that have no result
	open   int              // calls of the present turn that have no result
	turn   map[string]int   // the same by call id, where there are any
	last   *Entry           // the last message, or nil
	lastAt int              // its index
}

// Add takes the next entry of the path into account.
func (c *Cuts) Add(e Entry) {
	at := c.n
	c.n++
	if c.calls == nil {
		c.calls = make(map[string][]int)
		c.turn = make(map[string]int)
	}
	if c.mayCutBefore(&e) {
		c.legal = append(c.legal, at)
	}
	c.track(&e, at)
}

func (c *Cuts) mayCutBefore(e *Entry) bool {
	m := e.Message
	if m == nil {
		return c.open == 0
	}
	switch m.Role {
	case RoleTool:
		return false
	case RoleAssistant:
		return c.open == 0 && !hasCalls(m) && !c.sameResponse(m)
	case RoleUser:
		return !hasResults(m) // the user speaks: what has no answer was interrupted
	}
	return c.open == 0 && !hasResults(m)
}

// sameResponse reports whether a message goes on the response of the last one.
func (c *Cuts) sameResponse(m *MessageEntry) bool {
	if m.Role != RoleAssistant || c.last == nil || c.last.Message.Role != RoleAssistant {
		return false
	}
	if id := c.last.Message.ResponseID; id != "" || m.ResponseID != "" {
		return id == m.ResponseID
	}
	return onlyThinking(c.last.Message)
}

func onlyThinking(m *MessageEntry) bool {
	for i := range m.Content {
		if m.Content[i].Thinking == nil {
			return false
		}
	}
	return len(m.Content) > 0
}

func hasCalls(m *MessageEntry) bool {
	return slices.ContainsFunc(m.Content, func(c Content) bool { return c.ToolUse != nil })
}

func hasResults(m *MessageEntry) bool {
	return slices.ContainsFunc(m.Content, func(c Content) bool { return c.ToolResult != nil })
}

// track follows calls and results. A result takes back the cuts since its call,
// and a message those since the one whose response it goes on.
func (c *Cuts) track(e *Entry, at int) {
	m := e.Message
	if m == nil {
		return // the last message is still what it was
	}
	if c.sameResponse(m) {
		c.takeBack(c.lastAt)
	}
	c.last, c.lastAt = e, at
	if m.Role == RoleUser && !hasResults(m) {
		c.open = 0
		if len(c.turn) > 0 { // clearing would cost what the largest turn so far did
			c.turn = make(map[string]int)
		}
	}
	for i := range m.Content {
		switch block := &m.Content[i]; {
		case block.ToolUse != nil:
			c.calls[block.ToolUse.ID] = append(c.calls[block.ToolUse.ID], at)
			c.turn[block.ToolUse.ID]++
			c.open++
		case block.ToolResult != nil:
			c.answer(block.ToolResult.ToolUseID)
		}
	}
}

// answer takes a result for that of the latest call of its id that has none, as
// the context does.
func (c *Cuts) answer(id string) {
	made := c.calls[id]
	if len(made) == 0 {
		return
	}
	c.calls[id] = made[:len(made)-1]
	c.takeBack(made[len(made)-1])
	switch n := c.turn[id]; {
	case n > 1:
		c.turn[id] = n - 1
		c.open--
	case n == 1:
		delete(c.turn, id)
		c.open--
	}
}

// takeBack removes the cuts after an entry.
func (c *Cuts) takeBack(at int) {
	for n := len(c.legal); n > 0 && c.legal[n-1] > at; n-- {
		c.legal = c.legal[:n-1]
	}
}

// Legal returns the indices of the entries before which a cut may stand, in
// ascending order.
func (c *Cuts) Legal() []int { return slices.Clone(c.legal) }

// Pending returns whether a tool call of the present turn waits for its result:
// nothing may be cut after it, and no compaction may be recorded.
func (c *Cuts) Pending() bool { return c.open > 0 }

// CutPoints returns the indices of the entries before which a conversation may
// be cut. See Cuts for the rules.
func CutPoints(entries []Entry) []int {
	var c Cuts
	for i := range entries {
		c.Add(entries[i])
	}
	return c.Legal()
}

// CheckCut returns nil if the conversation may be cut before the entry of an
// id, and a *CutError that says why if not.
func CheckCut(entries []Entry, firstKept string) error {
	at := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == firstKept })
	if at < 0 {
		return &CutError{firstKept, "it is not on the path"}
	}
	if slices.Contains(CutPoints(entries), at) {
		return nil
	}
	return &CutError{firstKept, whyNoCut(entries, at)}
}

// whyNoCut explains why there is no cut before an entry.
func whyNoCut(entries []Entry, at int) string {
	if call, result, ok := spanningPair(entries, at); ok {
		if result == "" {
			return fmt.Sprintf("tool call %s still waits for its result", call)
		}
		return fmt.Sprintf("it would separate tool call %s from its result in entry %s", call, result)
	}
	m := entries[at].Message
	switch {
	case m != nil && m.Role == RoleTool:
		return "a tool result cannot come first"
	case m != nil && hasCalls(m):
		return "a message that calls tools cannot come first; cut before the user's message"
	}
	return "it goes on the response of the entry before it"
}

// spanningPair finds a call before an entry whose result comes at or after it,
// or never.
func spanningPair(entries []Entry, at int) (callID, resultEntry string, ok bool) {
	open := make(map[string]bool)
	var order []string
	for i := range at {
		for _, b := range contentOf(&entries[i]) {
			if b.ToolUse != nil {
				open[b.ToolUse.ID] = true
				order = append(order, b.ToolUse.ID)
			}
			if b.ToolResult != nil {
				delete(open, b.ToolResult.ToolUseID)
			}
		}
	}
	for i := at; i < len(entries); i++ {
		for _, b := range contentOf(&entries[i]) {
			if b.ToolResult != nil && open[b.ToolResult.ToolUseID] {
				return b.ToolResult.ToolUseID, entries[i].ID, true
			}
		}
	}
	for i := len(order) - 1; i >= 0; i-- {
		if open[order[i]] {
			return order[i], "", true
		}
	}
	return "", "", false
}

func contentOf(e *Entry) []Content {
	if e.Message == nil {
		return nil
	}
	return e.Message.Content
}
