package mcp

import (
	"strings"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// How much of an entry is quoted where others are quoted, too, in tokens: of what was said,
// of a call or an output, and of thoughts.
const (
	mostSaid    = 1_000
	mostOutput  = 250
	mostThought = 150
)

// entryText returns an entry as text: its id, who said it and when, and what it says. Without
// a limit it is complete.
func (v *view) entryText(n *render.Node, names render.Names, room int) string {
	e := &n.Entry
	head := []string{"entry " + render.OneLine(names.Name(e.ID), 0), render.Kind(e), when(e.Timestamp)}
	if names == nil {
		head[0] = "entry " + render.OneLine(render.ShortID(e.ID), 0)
	}
	if n.Label != "" {
		head = append(head, "label "+render.OneLine(n.Label, 0))
	}
	body, cut := entryBody(e, room)
	if cut {
		head = append(head, "shortened: pass its id as entry to read all of it")
	}
	return "## " + strings.Join(head, " · ") + "\n" + body + "\n"
}

// entryBody returns what an entry says, and whether something was left out.
func entryBody(e *session.Entry, room int) (text string, cut bool) {
	limit := func(text string, most int) string {
		if room == 0 || tokensAtMost(text, min(most, room/2)) {
			return text
		}
		cut = true
		return shorten(text, min(most, room/2))
	}
	switch {
	case e.Message == nil && e.Summary() != "":
		return limit(e.Summary(), mostSaid), cut
	case e.Message == nil:
		return render.Gist(e, 0), false
	}
	var parts []string
	for i := range e.Message.Content {
		if text := blockText(&e.Message.Content[i], limit); text != "" {
			parts = append(parts, text)
		}
	}
	if failure := render.Failure(e.Message); failure != "" {
		parts = append(parts, "[failed: "+limit(failure, mostThought)+"]")
	}
	return strings.Join(parts, "\n"), cut
}

func blockText(c *session.Content, limit func(string, int) string) string {
	switch {
	case c.Text != nil:
		return limit(c.Text.Content, mostSaid)
	case c.Thinking != nil && c.Thinking.Content == "":
		return ""
	case c.Thinking != nil:
		return "[thinking] " + limit(c.Thinking.Content, mostThought)
	case c.ToolUse != nil:
		input, _ := c.ToolUse.InputJSON() // an unreadable input is left out
		return "[calls " + c.ToolUse.Name + "] " + limit(string(input), mostOutput)
	case c.ToolResult != nil:
		return resultText(c.ToolResult, limit)
	case c.Image != nil:
		return render.MediaGist(c) + " (get_image shows it)"
	}
	return render.MediaGist(c)
}

func resultText(r *session.ToolResultContent, limit func(string, int) string) string {
	text := "[output] "
	if r.IsError {
		text = "[error] "
	}
	text += limit(r.Content, mostOutput)
	for i := range r.Parts {
		if r.Parts[i].Text == nil { // the texts are the content
			text += "\n" + blockText(&r.Parts[i], limit)
		}
	}
	return text
}

// tokensAtMost reports whether a text has at most most tokens. A token has at least one byte,
// so a short text need not be counted.
func tokensAtMost(text string, most int) bool {
	return len(text) <= most || len(text) < 16*most && tokensIn(text) <= most
}
