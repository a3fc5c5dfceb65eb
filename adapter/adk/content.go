package adk

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/genai"

	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/session"
)

// plainJSON encodes a value without escaping characters for HTML: tool arguments are kept as
// text, and people read them.
func plainJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// messageOf returns a content as a message. If the message alone is not enough to get the
// content back, verbatim is the content as JSON, which must be kept beside it.
//
// before is the content of the event with the calls that this one may answer, for
// responses that do not name their call; nil if there is none. lost reports whether the
// id of a call has no call that waits for its response.
func messageOf(c, before *genai.Content, lost func(id string) bool) (m *session.MessageEntry, verbatim json.RawMessage, err error) {
	raw, err := plainJSON(c)
	if err != nil {
		return nil, nil, err
	}
	var d google.Decoder
	if before != nil {
		earlier, err := plainJSON(before)
		if err != nil {
			return nil, nil, err
		}
		if _, err := d.Content(earlier); err != nil {
			return nil, nil, err
		}
	}
	parts, err := d.Content(raw)
	if err != nil {
		return nil, nil, err
	}
	m = joined(parts)
	told := tellLost(m, lost)
	if back, err := contentOf(m); err == nil && !told {
		if again, err := plainJSON(back); err == nil && bytes.Equal(again, raw) {
			return m, nil, nil
		}
	}
	return m, raw, nil
}

// joined merges messages that were one. An event is one entry, so that no crash can leave
// half of it.
func joined(parts []session.Entry) *session.MessageEntry {
	m := *parts[0].Message
	for _, p := range parts[1:] {
		m.Content = append(m.Content[:len(m.Content):len(m.Content)], p.Message.Content...)
		m.Role = session.RoleUser
	}
	return &m
}

// tellLost turns results that no call waits for into text, and reports whether there were
// any. A tool that runs for long answers twice: at once that it has started, and later
// with its result. A call has one result, so the later one becomes text.
func tellLost(m *session.MessageEntry, lost func(id string) bool) bool {
	told := false
	for i, c := range m.Content {
		if c.ToolResult == nil || !lost(c.ToolResult.ToolUseID) {
			continue
		}
		m.Content[i] = session.Text(fmt.Sprintf("[later result of call %s: %s]", c.ToolResult.ToolUseID, c.ToolResult.Content))
		told = true
	}
	if told && m.Role == session.RoleTool && !hasResult(m) {
		m.Role = session.RoleUser
	}
	return told
}

func hasResult(m *session.MessageEntry) bool {
	for i := range m.Content {
		if m.Content[i].ToolResult != nil {
			return true
		}
	}
	return false
}

// contentOf returns a message as a content.
func contentOf(m *session.MessageEntry) (*genai.Content, error) {
	if c := plainContent(m); c != nil {
		return c, nil
	}
	body, err := google.EncodeVerbatim([]session.Entry{{Type: session.TypeMessage, ID: "event", Message: m}})
	if err != nil {
		return nil, err
	}
	for _, f := range body.Fields {
		if f.Name != "contents" {
			continue
		}
		var contents []*genai.Content
		if err := json.Unmarshal(f.Value, &contents); err != nil {
			return nil, err
		}
		if len(contents) == 1 {
			return contents[0], nil
		}
	}
	return nil, fmt.Errorf("a message of %s is not one content: %w", m.Role, session.ErrInvalid)
}

// plainContent returns a message that is only text as a content, and nil for others. Most
// messages are only text, and this costs much less than going through JSON.
func plainContent(m *session.MessageEntry) *genai.Content {
	if len(m.Content) == 0 || len(m.Extra) > 0 {
		return nil
	}
	c := &genai.Content{Parts: make([]*genai.Part, 0, len(m.Content))}
	switch m.Role {
	case session.RoleUser:
		c.Role = genai.RoleUser
	case session.RoleAssistant:
		c.Role = genai.RoleModel
	default:
		return nil
	}
	for i := range m.Content {
		b := &m.Content[i]
		if b.Text == nil || b.Text.Content == "" || len(b.Extra) > 0 || len(b.Text.Extra) > 0 {
			return nil
		}
		c.Parts = append(c.Parts, &genai.Part{Text: b.Text.Content})
	}
	return c
}
