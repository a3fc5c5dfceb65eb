// Package render shows conversations to people: what an entry is and says in a word and in
// a line, and the outline of a conversation with its branches. The packages below it draw
// whole documents from that: render/terminal, render/markdown and render/html.
//
// Nothing here decides anything about a session. All text in a session is untrusted: every
// renderer passes it through render/plain or escapes it.
package render

import (
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// Conversation is what a renderer draws: one session, or several that continue each other,
// read as one.
type Conversation struct {
	*session.Session
	Blobs   store.Blobs // has the content that is too large for an entry
	Name    string      // what a person types for it: a short prefix of its id
	Title   string      // its name, or else its first prompt; "" if it has neither
	Links   []string    // its sessions in order; one if nothing continues it
	Missing []string    // the ids of sessions that belong to it and do not exist
	// Lost, unless it is nil, is called with what cannot be read of the entries that are shown: a
	// blob, or the entry itself if err is nil.
	Lost func(entry string, blob store.Ref, err error)

	// Subagents are the names of the sessions that tool calls of this one started, by the
	// ids of the calls or by the prompts in the calls.
	Subagents map[string]string

	// Only the page shows these.
	Cost    string   // what it has cost, in words; "" for nothing to say
	Picture *Picture // how it went; nil for none

	Working string // the program that works on it now, or "". Only the terminal shows it

	// Only the Markdown shows these.
	Updated time.Time // when something was last said, on any branch
	Tokens  int       // what it has cost so far; 0 if not counted
}

// SubagentsOf returns the names of the sessions that the calls of an entry started.
func (c Conversation) SubagentsOf(e *session.Entry) (names []string) {
	if e.Message == nil || len(c.Subagents) == 0 {
		return nil
	}
	for i := range e.Message.Content {
		if call := e.Message.Content[i].ToolUse; call != nil {
			if name := c.Subagent(call); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// Subagent returns the name of the session that a tool call started, or "". Few
// programs record which call it was, but the subagent's first message is a copy of
// the call's prompt.
func (c Conversation) Subagent(call *session.ToolUseContent) string {
	if len(c.Subagents) == 0 {
		return ""
	}
	if name := c.Subagents[call.ID]; name != "" {
		return name
	}
	for _, argument := range call.Input {
		if text, ok := argument.(string); ok && c.Subagents[text] != "" {
			return c.Subagents[text]
		}
	}
	return ""
}
