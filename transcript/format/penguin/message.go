package penguin

import (
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
	"github.com/coppice-dev/coppice/window"
)

// timeForm is how Penguin writes times: local, without a zone.
const timeForm = "2006-01-02T15:04:05.000000"

// entryOf turns a message into an entry without an id.
func entryOf(m loose.Value, chat *openai.ChatDecoder) session.Entry {
	entry, err := chat.Message(chatMessage(m))
	if err != nil || entry.Message == nil {
		entry = session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
			Role: m.Get("role").Text(), Content: []session.Content{session.Text(m.Get("content").Text())},
		}}
	}
	entry.ID, entry.Timestamp = "", m.Get("timestamp").Time(time.Local)
	message := entry.Message
	message.Category = category(m.Get("category").Name())
	message.Metadata = m.Get("metadata").Map()
	delete(message.Metadata, "tool_calls") // they are in the content
	if len(message.Metadata) == 0 {
		message.Metadata = nil
	}
	message.Tokens = session.CountedTokens(m.Get("tokens").Int())
	made := encode(&entry)
	message.Extra = residue.Keep(message.Extra, name, residue.Of(loose.Value(made[0]), m))
	return entry
}

// category returns the name of a category, which may be given by its number.
func category(c string) string {
	if known, err := window.ParseCategory(c); err == nil {
		return known.String()
	}
	return c
}

// chatMessage returns a message in OpenAI's form: calls are beside the content, not in the
// metadata.
func chatMessage(m loose.Value) []byte {
	var o residue.Object
	o.Set("role", m.Get("role").Text())
	o.Set("content", content(m.Get("content")))
	if calls := m.Get("metadata", "tool_calls"); calls.First() != nil {
		o.Set("tool_calls", calls.Raw())
	}
	if call := m.Get("metadata", "tool_call_id").Text(); call != "" {
		o.Set("tool_call_id", call)
	}
	return o.JSON()
}

// content turns the paths of pictures into URLs.
func content(c loose.Value) json.RawMessage {
	if !c.IsArray() {
		if !c.Exists() {
			return json.RawMessage(`""`)
		}
		return c.Raw()
	}
	var parts []json.RawMessage
	for part := range c.Items() {
		if path := part.Get("image_path").Text(); path != "" && !part.Has("image_url") {
			var url residue.Object
			url.Set("url", "file://"+filepath.ToSlash(path))
			o := residue.Object(part.Except("image_path"))
			o.Set("type", "image_url")
			o.Set("image_url", url.JSON())
			part = loose.Value(o.JSON())
		}
		parts = append(parts, part.Raw())
	}
	return residue.List(parts)
}

// encode turns an entry into messages: one, or one for each of several tool results. They
// have only members that Penguin reads; it rejects a file with others.
func encode(e *session.Entry) []json.RawMessage {
	var list []json.RawMessage
	encoded, err := openai.EncodeChatVerbatim([]session.Entry{*e}, nil)
	if err == nil {
		for message := range loose.Value(encoded.Request(nil)).Get("messages").Items() {
			list = append(list, message.Raw())
		}
	}
	if list == nil {
		list = append(list, json.RawMessage(`{"content":""}`))
	}
	for i := range list {
		list[i] = toPenguin(e, loose.Value(list[i]), i)
	}
	return list
}

// toPenguin converts a message from OpenAI's form to Penguin's.
func toPenguin(e *session.Entry, message loose.Value, nth int) json.RawMessage {
	m := e.Message
	metadata := make(map[string]any)
	for member, value := range m.Metadata {
		metadata[member] = value
	}
	if calls := message.Get("tool_calls"); calls.First() != nil {
		metadata["tool_calls"] = calls.Any()
	}
	if call := message.Get("tool_call_id").Text(); call != "" {
		metadata["tool_call_id"] = call
	}
	withIDs(m, message, metadata)
	var o residue.Object
	o.Set("role", blocks.Role(m.Role))
	o.Set("content", contentOf(message))
	o.Set("category", categoryOf(m))
	o.Set("id", messageID(e.ID, nth))
	o.Set("timestamp", e.Timestamp.Local().Format(timeForm))
	o.Set("metadata", metadata)
	o.Set("tokens", tokens(m))
	o.Set("agent_id", nil)
	o.Set("recipient_id", nil)
	o.Set("message_type", messageType(m))
	return o.JSON()
}

// withIDs writes a call of OpenAI's older kind, which had no id, and its result as those
// of today.
func withIDs(m *session.MessageEntry, message loose.Value, metadata map[string]any) {
	function := message.Get("function_call")
	for i := range m.Content {
		switch c := &m.Content[i]; {
		case c.ToolUse != nil && function.IsObject():
			metadata["tool_calls"] = []any{map[string]any{"id": c.ToolUse.ID, "type": "function", "function": function.Any()}}
		case c.ToolResult != nil && message.Get("role").Text() == "function":
			metadata["tool_call_id"] = c.ToolResult.ToolUseID
		}
	}
}

func contentOf(message loose.Value) json.RawMessage {
	if c := message.Get("content"); c.Exists() {
		return c.Raw()
	}
	return json.RawMessage(`""`)
}

// categoryOf returns a message's category, or else the one that its role suggests.
func categoryOf(m *session.MessageEntry) string {
	switch {
	case m.Category != "":
		return m.Category
	case m.Role == session.RoleSystem:
		return "SYSTEM"
	case m.Role == session.RoleTool, m.Role == session.RoleBashExecution:
		return "SYSTEM_OUTPUT"
	}
	return "DIALOG"
}

func tokens(m *session.MessageEntry) int {
	if m.Tokens == nil {
		return 0
	}
	return *m.Tokens
}

func messageType(m *session.MessageEntry) string {
	if blocks.Role(m.Role) == session.RoleTool {
		return "action"
	}
	return "message"
}

// messageID returns an entry's id in Penguin's form, or unchanged if it came from Penguin.
func messageID(id string, nth int) string {
	if nth == 0 && len(id) == len("msg_")+8 && id[:4] == "msg_" {
		return id
	}
	return "msg_" + transcript.HashID(id, string(rune('0'+nth)))[:8]
}
