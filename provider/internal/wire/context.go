package wire

import (
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
)

// Message is a message as it is to be sent.
type Message struct {
	Entry string // the id of the entry that it is from
	// Role is one of system, user, assistant and tool. Messages of role tool hold only
	// tool results, and no other messages hold any.
	Role session.MessageRole
	// Part says that it is the part of an entry before or after its tool results.
	Part bool
	*session.MessageEntry
}

// Sent returns the entries of a context as messages in the order that providers require. It
// leaves out files of the user's machine, and replaces media that the provider does not
// accept. With verbatim, the messages stay as they are.
func Sent(entries []session.Entry, verbatim bool, limits *media.Limits, notes *Notes) []Message {
	list := Messages(entries)
	if verbatim {
		return list
	}
	for i := range list {
		notes.Of(list[i].Entry)
		if kept, found := session.WithoutLocal(list[i].Content); found {
			list[i].setContent(kept)
			notes.Add("a file of this machine is left out")
		}
		if list[i].Role == session.RoleAssistant {
			continue
		}
		if fit, what := limits.Fit(list[i].Content, false); len(what) > 0 {
			list[i].setContent(fit)
			for _, w := range what {
				notes.Add("%s", w)
			}
		}
	}
	return resultsFirst(list)
}

func (m *Message) setContent(content []session.Content) {
	other := *m.MessageEntry
	other.Content, m.MessageEntry = content, &other
}

// resultsFirst returns messages in the order that providers require: the results of a
// model's calls come before anything else. In a log, text may come before the results
// in the same message.
func resultsFirst(list []Message) []Message {
	out := make([]Message, 0, len(list))
	for len(list) > 0 {
		n := 1 // the model's message and those after it, or those before the first
		for n < len(list) && list[n].Role != session.RoleAssistant {
			n++
		}
		for _, results := range []bool{true, false} {
			for i, m := range list[:n] {
				first := m.Role == session.RoleTool || i == 0 && m.Role == session.RoleAssistant
				if first == results {
					out = append(out, m)
				}
			}
		}
		list = list[n:]
	}
	return out
}

// Messages returns the entries of a context as messages, without entries that a model does
// not see.
func Messages(entries []session.Entry) []Message {
	var list []Message
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Message != nil:
			list = appendMessage(list, e)
		case e.Compaction != nil:
			list = appendSummary(list, e, session.CompactionLead, e.Compaction.Summary)
		case e.BranchSummary != nil:
			list = appendSummary(list, e, session.BranchLead, e.BranchSummary.Summary)
		case e.Merge != nil:
			list = appendSummary(list, e, session.MergeLead, e.Merge.Summary)
		}
	}
	return list
}

func appendSummary(list []Message, e *session.Entry, lead, summary string) []Message {
	if summary == "" {
		return list
	}
	return append(list, Message{Entry: e.ID, Role: session.RoleUser, MessageEntry: &session.MessageEntry{
		Role: session.RoleUser, Content: []session.Content{session.Text(lead + summary)},
	}})
}

// appendMessage appends a message, split where tool results begin and end: some sources
// put results and text into one message.
func appendMessage(list []Message, e *session.Entry) []Message {
	m := Message{Entry: e.ID, Role: roleOf(e.Message), MessageEntry: e.Message}
	runs := runsOf(e.Message.Content)
	if len(runs) == 0 {
		return append(list, m)
	}
	for i, run := range runs {
		m := m
		if len(runs) > 1 {
			part := *e.Message
			part.Content = run
			if m.Part = i > 0; m.Part {
				part.Extra = nil
			}
			m.MessageEntry = &part
		}
		switch {
		case run[0].ToolResult != nil:
			m.Role = session.RoleTool
		case m.Role == session.RoleTool:
			m.Role = session.RoleUser
		}
		list = append(list, m)
	}
	return list
}

func roleOf(m *session.MessageEntry) session.MessageRole {
	switch role := m.Role; role {
	case session.RoleSystem, session.RoleAssistant, session.RoleTool:
		return role
	}
	// Commands, extensions' messages and summaries are sent in the user's name.
	return session.RoleUser
}

// runsOf splits blocks into runs of tool results and of others.
func runsOf(blocks []session.Content) [][]session.Content {
	var runs [][]session.Content
	from := 0
	for i := range blocks {
		if i+1 == len(blocks) || (blocks[i].ToolResult != nil) != (blocks[i+1].ToolResult != nil) {
			runs = append(runs, blocks[from:i+1])
			from = i + 1
		}
	}
	return runs
}

// Describe names a block, for notes.
func Describe(c *session.Content) string {
	switch {
	case c.Raw != nil && c.Type != "":
		return "a block of type " + string(c.Type)
	case c.Raw != nil:
		return "a block of unknown type"
	case c.Type == session.ContentTypeImage, c.Type == session.ContentTypeAudio:
		return "an " + string(c.Type)
	}
	return "a " + string(c.Type)
}

// IsPlain reports whether blocks are one text and nothing else of this format.
func IsPlain(blocks []session.Content, format string) bool {
	if len(blocks) != 1 || blocks[0].Text == nil {
		return false
	}
	_, kept := ResidueOf(blocks[0].Extra, format)
	return !kept
}

// CutSystem returns the system messages at the beginning, and the others. A system
// message that was among the others in this format stays there.
func CutSystem(list []Message, format string) (system, rest []Message) {
	for i, m := range list {
		r, _ := ResidueOf(m.Extra, format)
		if m.Role != session.RoleSystem || r.Fields.Has("role") {
			return list[:i], list[i:]
		}
	}
	return list, nil
}
