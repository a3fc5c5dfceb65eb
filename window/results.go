package window

import (
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// minResult is how many bytes of a result are always kept: less is no use to a model.
const minResult = 500

// ShortenResults returns context edits that make the tool results of a context shorter by a
// number of bytes, or by as much as they can: the longest first, all of them to one length. It
// returns none if no result can be made shorter. Once the edits are appended, a session.Revert
// of each brings the whole result back.
func ShortenResults(c *session.Context, by int) []session.Entry {
	shown := make(map[string]int) // a late result is apart from its message
	for i := range c.Entries {
		shown[c.Entries[i].ID]++
	}
	var sizes []int
	var found []*session.Entry
	for i := range c.Entries {
		e := &c.Entries[i]
		if e.Message == nil || shown[e.ID] > 1 || strings.HasPrefix(e.ID, session.InterruptedPrefix) {
			continue // an edit is about a whole message of the log
		}
		has := false
		for j := range e.Message.Content {
			if b := e.Message.Content[j : j+1]; b[0].ToolResult != nil {
				eachText(b, func(text string) { sizes = append(sizes, len(text)) })
				has = true
			}
		}
		if has {
			found = append(found, e)
		}
	}
	longest := max(level(sizes, by), minResult)
	var edits []session.Entry
	for _, e := range found {
		var content []session.Content
		changed := false
		for j := range e.Message.Content {
			b := e.Message.Content[j : j+1]
			if b[0].ToolResult != nil {
				short, cut := shortened(b, longest, func(text string) int { return len(text) })
				b, changed = short, changed || cut
			}
			content = append(content, b...)
		}
		if changed {
			edits = append(edits, session.ContextEdit(e.ID, content...))
		}
	}
	return edits
}
