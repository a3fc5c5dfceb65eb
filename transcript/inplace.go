package transcript

import (
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// InPlace returns messages for a format without call ids, where the place of a result
// decides: it answers the first call that has no answer yet. Replies are joined, each
// result is a message of its own, in the order of the calls, and a call that was never
// answered has a result that says so. If every result is already in its place, the
// conversation is returned as it is.
func InPlace(entries []session.Entry) []session.Entry {
	if inPlace(entries) {
		return entries
	}
	joined := JoinReplies(entries)
	var pairs session.Pairs
	for i := range joined {
		pairs.Add(&joined[i])
	}
	refs := pairs.Refs()
	asked := make(map[string]bool)
	var out []session.Entry
	next := 0 // of refs
	for i := range joined {
		e := &joined[i]
		if rest, ok := withoutEarlierResults(e, asked); ok {
			out = append(out, rest)
		}
		for ; next < len(refs) && refs[next].Entry == i; next++ {
			switch call := refs[next]; {
			case !call.Call:
				continue
			case call.Pair == session.NoPair:
				out = append(out, only(e, session.ToolResult(call.ID, session.InterruptedText, true)))
			default:
				from := refs[call.Pair]
				out = append(out, only(&joined[from.Entry], joined[from.Entry].Message.Content[from.Block]))
			}
			asked[refs[next].ID] = true
		}
	}
	return out
}

// inPlace reports whether each result answers the first call that has no answer, and is
// alone in its message.
func inPlace(entries []session.Entry) bool {
	var waiting []string
	for i := range entries {
		e := &entries[i]
		if asks := calls(e); len(asks) > 0 {
			if len(waiting) > 0 {
				return false // formats differ on whether they still wait for these
			}
			for _, c := range asks {
				waiting = append(waiting, c.ToolUse.ID)
			}
		}
		for _, c := range results(e) {
			if len(e.Message.Content) > 1 || len(waiting) == 0 || waiting[0] != c.ToolResult.ToolUseID {
				return false
			}
			waiting = waiting[1:]
		}
	}
	return true
}

func calls(e *session.Entry) []session.Content {
	return blocks(e, func(c session.Content) bool { return c.ToolUse != nil })
}

func results(e *session.Entry) []session.Content {
	return blocks(e, func(c session.Content) bool { return c.ToolResult != nil })
}

func blocks(e *session.Entry, want func(session.Content) bool) []session.Content {
	if e.Message == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(e.Message.Content), func(c session.Content) bool { return !want(c) })
}

// only returns an entry with a single result.
func only(e *session.Entry, c session.Content) session.Entry {
	one := *e
	m := *e.Message
	if len(m.Content) != 1 || m.Role != session.RoleTool {
		m = session.MessageEntry{Role: session.RoleTool}
	}
	m.Content = []session.Content{c}
	one.Message = &m
	return one
}

// withoutEarlierResults returns an entry without the results of earlier calls, which are written
// elsewhere. It returns false if nothing is left of it.
func withoutEarlierResults(e *session.Entry, asked map[string]bool) (session.Entry, bool) {
	if len(results(e)) == 0 {
		return *e, true
	}
	rest := *e
	m := *e.Message
	m.Content = blocks(e, func(c session.Content) bool { return c.ToolResult == nil || !asked[c.ToolResult.ToolUseID] })
	if len(m.Content) < len(e.Message.Content) {
		m.Extra = nil
	}
	if m.Role == session.RoleTool && !slices.ContainsFunc(m.Content, func(c session.Content) bool { return c.ToolResult != nil }) {
		m.Role = session.RoleUser
	}
	rest.Message = &m
	return rest, len(m.Content) > 0
}
