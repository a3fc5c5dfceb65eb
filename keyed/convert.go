package keyed

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// entryOf returns the entry for a message.
func entryOf(m Message, at time.Time) (session.Entry, error) {
	m, err := m.normal()
	if err != nil {
		return session.Entry{}, err
	}
	said := &session.MessageEntry{Role: m.Role, Model: m.Model}
	if said.Extra, err = packExtra(m.Extra); err != nil {
		return session.Entry{}, err
	}
	if m.ReasoningContent != "" {
		said.Content = append(said.Content, session.Thinking(m.ReasoningContent, ""))
	}
	switch {
	case m.ToolCallID != "":
		said.Content = append(said.Content, session.ToolResult(m.ToolCallID, m.Content, false))
	case m.Content != "":
		said.Content = append(said.Content, session.Text(m.Content))
	}
	for _, c := range m.ToolCalls {
		call := session.ToolUse(c.ID, c.Name, c.Arguments)
		if call.ToolUse.Extra, err = packExtra(c.Extra); err != nil {
			return session.Entry{}, err
		}
		said.Content = append(said.Content, call)
	}
	return session.Entry{Type: session.TypeMessage, Timestamp: at, Message: said}, nil
}

// packExtra puts members under one name, where no reader mistakes them for members of the entry.
func packExtra(fields session.Fields) (session.Fields, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	text, err := writeObject(fields)
	if err != nil {
		return nil, invalidMessage(err)
	}
	return session.Fields{{Name: session.FieldKeyed, Value: text}}, nil
}

// unpackExtra is the reverse of packExtra. The members are sorted by name.
func unpackExtra(fields session.Fields) session.Fields {
	for _, f := range fields {
		if f.Name != session.FieldKeyed {
			continue
		}
		if members, err := readObject(session.FieldKeyed, f.Value); err == nil {
			return sorted(members)
		}
	}
	return nil
}

// messagesOf returns what an entry adds to a history: usually one message, but each tool
// result is a message of its own.
func messagesOf(e *session.Entry) []Message {
	switch {
	case e.Message != nil:
		return messagesIn(e.Message)
	case e.BranchSummary != nil && e.BranchSummary.Summary != "":
		return []Message{{Role: session.RoleSystem, Content: e.BranchSummary.Summary}}
	case e.Merge != nil && e.Merge.Summary != "":
		return []Message{{Role: session.RoleSystem, Content: e.Merge.Summary}}
	}
	return nil
}

func messagesIn(said *session.MessageEntry) []Message {
	m := Message{Role: said.Role, Model: said.Model, Extra: unpackExtra(said.Extra)}
	var results []Message
	var texts, thoughts []string
	for i := range said.Content {
		switch c := &said.Content[i]; {
		case c.Text != nil:
			texts = append(texts, c.Text.Content)
		case c.Thinking != nil:
			thoughts = append(thoughts, c.Thinking.Content)
		case c.ToolUse != nil:
			m.ToolCalls = append(m.ToolCalls, ToolCall{
				ID: c.ToolUse.ID, Name: c.ToolUse.Name, Arguments: c.ToolUse.Input, Extra: unpackExtra(c.ToolUse.Extra),
			})
		case c.ToolResult != nil:
			results = append(results, Message{
				Role: session.RoleTool, Content: resultText(c.ToolResult), ToolCallID: c.ToolResult.ToolUseID,
			})
		default:
			texts = append(texts, placeholder(c))
		}
	}
	m.Content, m.ReasoningContent = strings.Join(texts, "\n"), strings.Join(thoughts, "\n")
	if len(results) == 0 {
		return []Message{m}
	}
	if len(texts) == 0 && len(m.ToolCalls) == 0 { // only results
		first := &results[0]
		first.Model, first.Extra, first.ReasoningContent = m.Model, m.Extra, m.ReasoningContent
		return results
	}
	return append(results, m)
}

// resultText returns a tool's answer as text, with a placeholder for each part that is not
// text.
func resultText(r *session.ToolResultContent) string {
	text := r.Content
	for i := range r.Parts {
		if r.Parts[i].Text == nil {
			text = strings.TrimPrefix(text+"\n"+placeholder(&r.Parts[i]), "\n")
		}
	}
	return text
}

// placeholder returns the text that replaces other content in a history.
func placeholder(c *session.Content) string {
	source := c.Source()
	if source == nil || source.MediaType == "" {
		return "[" + string(c.Type) + "]"
	}
	return "[" + string(c.Type) + " " + source.MediaType + "]"
}

// marks is what our entries say in addition to their payload.
type marks struct {
	// OpenCalls are the calls that were cleared before their results came. They are in
	// compactions.
	OpenCalls []string `json:"open_calls,omitempty"`
	// Again marks messages that were said before and are only recorded again.
	Again bool `json:"again,omitempty"`
	// Last is the last of several entries that count together or not at all. Before is the last
	// entry of the conversation before them. Restart says that they start a new history instead
	// of following it. If some of them are missing, a crash has cut them short: see cutShort.
	Last    string `json:"last,omitempty"`
	Before  string `json:"before,omitempty"`
	Restart bool   `json:"restart,omitempty"`
}

func (m marks) fields() session.Fields {
	if len(m.OpenCalls) == 0 && !m.Again && m.Last == "" {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil // strings always encode
	}
	return session.Fields{{Name: session.FieldKeyed, Value: text}}
}

func marksOf(extra session.Fields) marks {
	var m marks
	for _, f := range extra {
		if f.Name == session.FieldKeyed && json.Unmarshal(f.Value, &m) != nil {
			return marks{}
		}
	}
	return m
}
