package conversation

import "github.com/coppice-dev/coppice/session"

// pairing follows the tool calls of a conversation and their results.
type pairing struct {
	open map[string]bool // calls that wait for their result
}

// add takes the next message into account. It returns false if a call or a result
// stands alone, or not where it should.
func (p *pairing) add(e *session.Entry) (inOrder bool) {
	results := 0
	inOrder = true
	for i := range e.Message.Content {
		if r := e.Message.Content[i].ToolResult; r != nil {
			results++
			if !p.open[r.ToolUseID] {
				inOrder = false
			}
			delete(p.open, r.ToolUseID)
		}
	}
	if results == 0 && len(p.open) > 0 {
		inOrder = false // something came between a call and its result
		if e.Message.Role == session.RoleUser {
			clear(p.open) // the user goes on: what has no result was interrupted
		}
	}
	for i := range e.Message.Content {
		if u := e.Message.Content[i].ToolUse; u != nil {
			if p.open == nil {
				p.open = make(map[string]bool)
			}
			p.open[u.ID] = true
		}
	}
	return inOrder
}

// pending reports whether a call waits for its result.
func (p *pairing) pending() bool { return len(p.open) > 0 }

// beginsTurn reports whether a message is the user's and not a tool's result.
func beginsTurn(e *session.Entry) bool {
	if e.Message == nil || e.Message.Role != session.RoleUser {
		return false
	}
	for i := range e.Message.Content {
		if e.Message.Content[i].ToolResult != nil {
			return false
		}
	}
	return true
}
