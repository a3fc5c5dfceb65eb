package claudecode

import (
	"bytes"
	"crypto/sha256"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// hashKey returns the key of an id that is no UUID.
func hashKey(id []byte) key {
	sum := sha256.Sum256(id)
	return key(sum[:16])
}

// contents reads the content of a message: a string, or a list of blocks. A list with more
// blocks than a message can hold becomes one unknown block.
func contents(raw []byte) []session.Content {
	if text, ok := rawjson.String(raw); ok {
		if text == "" {
			return nil
		}
		return []session.Content{session.Text(text)}
	}
	if rawjson.Kind(raw) != 'a' {
		return nil
	}
	if session.CheckBlocks(raw) != nil {
		return []session.Content{{Raw: bytes.Clone(raw)}}
	}
	var list []session.Content
	_ = rawjson.Array(raw, func(block []byte) error { // it was walked before: it is whole
		list = append(list, content(block))
		return nil
	})
	return list
}

// member is a member of a block.
type member struct {
	key   string
	value []byte
}

// keyText returns a key as text, without a copy if it is a common one.
func keyText(k []byte) string {
	switch string(k) {
	case "text":
		return "text"
	case "thinking":
		return "thinking"
	case "signature":
		return "signature"
	case "id":
		return "id"
	case "name":
		return "name"
	case "input":
		return "input"
	case "tool_use_id":
		return "tool_use_id"
	case "content":
		return "content"
	case "is_error":
		return "is_error"
	case "source":
		return "source"
	}
	return string(k)
}

// content reads a block. It keeps unknown members with the block, and keeps an unknown or
// malformed block as it is.
func content(raw []byte) session.Content {
	var room [8]member
	members := room[:0]
	var typ []byte
	err := rawjson.Object(raw, func(k, v []byte) error {
		if string(k) == "type" {
			typ, _ = rawjson.StringBytes(v, nil)
			return nil
		}
		members = append(members, member{keyText(k), v})
		return nil
	})
	if err != nil {
		return session.Content{Raw: bytes.Clone(raw)}
	}
	var c session.Content
	ok := false
	switch string(typ) {
	case "text":
		c, ok = textBlock(members)
	case "thinking", "redacted_thinking":
		c, ok = thinkingBlock(members)
	case "tool_use":
		c, ok = toolUseBlock(members)
	case "tool_result":
		c, ok = toolResultBlock(members)
	case "image":
		c, ok = sourceBlock(members, session.ContentTypeImage)
	case "document":
		c, ok = sourceBlock(members, session.ContentTypeFile)
	}
	if !ok {
		return session.Content{Type: session.ContentType(typ), Raw: bytes.Clone(raw)}
	}
	return c
}

// extra adds an unknown member to a block.
func extra(fields *session.Fields, m member) {
	*fields = append(*fields, session.Field{Name: m.key, Value: bytes.Clone(m.value)})
}

// textBlock reads a text. Like all readers of blocks it reports false for a malformed block, which
// is then kept whole.
func textBlock(members []member) (session.Content, bool) {
	t := &session.TextContent{}
	ok := false
	for _, m := range members {
		if m.key == "text" {
			t.Content, ok = rawjson.String(m.value)
		} else {
			extra(&t.Extra, m)
		}
	}
	return session.Content{Type: session.ContentTypeText, Text: t}, ok
}

// thinkingBlock reads thinking, which may be empty beside its signature, or redacted thinking.
func thinkingBlock(members []member) (session.Content, bool) {
	t := &session.ThinkingContent{}
	ok := true
	for _, m := range members {
		good := true
		switch m.key {
		case "thinking":
			t.Content, good = rawjson.String(m.value)
		case "signature":
			t.Signature, good = rawjson.String(m.value)
		case "data":
			t.Redacted, good = rawjson.String(m.value)
		default:
			extra(&t.Extra, m)
		}
		ok = ok && good
	}
	return session.Content{Type: session.ContentTypeThinking, Thinking: t}, ok
}

// toolUseBlock reads a call. The input is kept as bytes, because most readers never ask for it.
func toolUseBlock(members []member) (session.Content, bool) {
	var id, name string
	var input []byte
	var more session.Fields
	for _, m := range members {
		switch m.key {
		case "id":
			id, _ = rawjson.String(m.value)
		case "name":
			name, _ = rawjson.String(m.value)
		case "input":
			input = m.value
		default:
			extra(&more, m)
		}
	}
	if id == "" || rawjson.Kind(input) != 'o' {
		return session.Content{}, false
	}
	c := session.ToolUseOpaque(id, name, bytes.Clone(input))
	c.ToolUse.Extra = more
	return c, true
}

// toolResultBlock reads a tool's answer. Without the id of its call it would answer nothing.
func toolResultBlock(members []member) (session.Content, bool) {
	r := &session.ToolResultContent{}
	ok := true
	for _, m := range members {
		switch m.key {
		case "tool_use_id":
			r.ToolUseID, _ = rawjson.String(m.value)
		case "is_error":
			r.IsError, _ = rawjson.Bool(m.value)
		case "content":
			ok = resultContent(r, m.value)
		default:
			extra(&r.Extra, m)
		}
	}
	return session.Content{Type: session.ContentTypeToolResult, ToolResult: r}, ok && r.ToolUseID != ""
}

// resultContent reads a tool's answer: text, or blocks. A single plain text block becomes
// text.
func resultContent(r *session.ToolResultContent, raw []byte) bool {
	switch rawjson.Kind(raw) {
	case 's':
		r.Content, _ = rawjson.String(raw)
		return true
	case '0':
		return true
	case 'a':
	default:
		return false
	}
	parts := contents(raw)
	if len(parts) == 1 && parts[0].Text != nil && parts[0].Text.Extra == nil {
		r.Content = parts[0].Text.Content
		r.Extra = append(r.Extra, session.Field{Name: blocksField, Value: []byte("true")})
		return true
	}
	r.Parts = parts
	var text []string
	for i := range parts {
		if parts[i].Text != nil {
			text = append(text, parts[i].Text.Content)
		}
	}
	r.Content = strings.Join(text, "\n")
	return true
}

// blocksField marks a result that was a list with one text block, not a bare text.
const blocksField = "blocks"

// sourceBlock reads a picture or a document.
func sourceBlock(members []member, t session.ContentType) (session.Content, bool) {
	var s *session.Source
	var name string
	var more session.Fields
	for _, m := range members {
		switch {
		case m.key == "source":
			s = source(m.value)
		case m.key == "title" && t == session.ContentTypeFile && rawjson.Kind(m.value) == 's':
			name, _ = rawjson.String(m.value)
		default:
			extra(&more, m)
		}
	}
	if s == nil {
		return session.Content{}, false
	}
	if t == session.ContentTypeFile {
		return session.Content{Type: t, File: &session.FileContent{Name: name, Source: s, Extra: more}}, true
	}
	return session.Content{Type: t, Image: &session.ImageContent{Source: s, Extra: more}}, true
}

// source reads where the bytes of an image are, or returns nil if a session cannot express
// it.
func source(raw []byte) *session.Source {
	s := &session.Source{}
	data := false
	err := rawjson.Object(raw, func(k, v []byte) error {
		switch string(k) {
		case "type":
			s.Type, _ = rawjson.String(v)
		case "media_type":
			s.MediaType, _ = rawjson.String(v)
		case "data", "url":
			s.Data, data = rawjson.String(v)
		default:
			extra(&s.Extra, member{string(k), v})
		}
		return nil
	})
	if err != nil || !data || s.Type != "base64" && s.Type != "url" {
		return nil
	}
	return s
}

// usage reads what a reply cost.
func usage(raw []byte) *session.Usage {
	if rawjson.Kind(raw) != 'o' {
		return nil
	}
	u := &session.Usage{}
	_ = rawjson.Object(raw, func(k, v []byte) error { // it was walked before: it is whole
		n, _ := rawjson.Int(v)
		switch string(k) {
		case "input_tokens":
			u.Input = int(n)
		case "output_tokens":
			u.Output = int(n)
		case "cache_creation_input_tokens":
			u.CacheWrite = int(n)
		case "cache_creation":
			hour, _ := rawjson.Int(rawjson.MembersOf(v).Get("ephemeral_1h_input_tokens"))
			u.CacheWriteHour = int(hour)
		case "cache_read_input_tokens":
			u.CacheRead = int(n)
		}
		return nil
	})
	return u
}
