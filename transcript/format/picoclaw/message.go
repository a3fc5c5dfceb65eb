package picoclaw

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// chat turns messages, which are OpenAI's with a few more members, into entries.
type chat struct{ decoder openai.ChatDecoder }

// entry turns a message into an entry. A message without a time gets the given one.
func (c *chat) entry(m loose.Value, began time.Time) session.Entry {
	at := cmp.Or(m.Get("created_at").Time(time.Local), began)
	if isTransient(m) {
		e := session.Custom(transient, m.Map())
		e.Timestamp = at
		return e
	}
	entry, err := c.decoder.Message(withStandardCalls(m))
	if err != nil || entry.Message == nil {
		entry = plainMessage(m)
	}
	entry.Timestamp = at
	entry.Message.Model = m.Get("model_name").Text()
	entry.Message.Extra = residue.Keep(entry.Message.Extra, name, residue.Of(loose.Value(encode(&entry)[0]), m))
	return entry
}

// isTransient recognises a line that the program itself skips on reading: the thinking before
// an answer that has a line of its own.
func isTransient(m loose.Value) bool {
	return m.Get("role").Text() == "assistant" && m.Get("content").Text() == "" && m.Get("reasoning_content").Text() != "" &&
		m.Get("tool_calls").First() == nil && m.Get("media").First() == nil && m.Get("attachments").First() == nil
}

// plainMessage returns the text of a message that is nothing like OpenAI's.
func plainMessage(m loose.Value) session.Entry {
	return session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
		Role: m.Get("role").Text(), Content: []session.Content{session.Text(m.Get("content").Text())},
	}}
}

// withStandardCalls returns a message with the calls as OpenAI has them: in early versions
// a call had its name and its arguments, as an object, beside its id.
func withStandardCalls(m loose.Value) []byte {
	o := withPictures(m, residue.Object(m.Except("model_name", "created_at")))
	if calls := m.Get("tool_calls"); calls.IsArray() {
		var list []json.RawMessage
		for call := range calls.Items() {
			list = append(list, standardCall(call))
		}
		o.Set("tool_calls", residue.List(list))
	}
	return o.JSON()
}

func standardCall(call loose.Value) json.RawMessage {
	if call.Get("function").IsObject() || !call.Has("name") {
		return call.Raw()
	}
	arguments := call.Get("arguments")
	text := arguments.Text()
	if !arguments.IsString() {
		text = string(arguments)
	}
	var function, o residue.Object
	function.Set("name", call.Get("name").Text())
	function.Set("arguments", text)
	o.Set("id", call.Get("id").Text())
	o.Set("type", "function")
	o.Set("function", function.JSON())
	return o.JSON()
}

// encode turns an entry into messages: one, or one for each of several tool results.
func encode(e *session.Entry) []json.RawMessage {
	var list []json.RawMessage
	encoded, err := openai.EncodeChatVerbatim([]session.Entry{*e}, &openai.ChatOptions{Reasoning: "reasoning_content"})
	if err == nil {
		for message := range loose.Value(encoded.Request(nil)).Get("messages").Items() {
			list = append(list, withOwn(e, flat(message)))
		}
	}
	if list == nil {
		var o residue.Object
		o.Set("role", e.Message.Role)
		o.Set("content", "")
		list = append(list, withOwn(e, o))
	}
	return list
}

// flat returns a message whose content is a string, because the program reads no
// other. The pictures have a member of their own.
func flat(message loose.Value) residue.Object {
	o := residue.Object(message.Except())
	content := message.Get("content")
	if !content.IsArray() {
		return o
	}
	var texts, pictures []string
	for part := range content.Items() {
		switch part.Get("type").Text() {
		case "text":
			texts = append(texts, part.Get("text").Text())
		case "image_url":
			pictures = append(pictures, part.Get("image_url").Get("url").Text())
		}
	}
	o.Set("content", strings.Join(texts, "\n\n"))
	if pictures != nil {
		o.Set("media", pictures)
	}
	return o
}

// withPictures is the reverse of flat. Pictures that a message only names stay as they are.
func withPictures(m loose.Value, o residue.Object) residue.Object {
	var parts []json.RawMessage
	for item := range m.Get("media").Items() {
		if url := item.Text(); strings.HasPrefix(url, "data:image/") {
			var image, part residue.Object
			image.Set("url", url)
			part.Set("type", "image_url")
			part.Set("image_url", image.JSON())
			parts = append(parts, part.JSON())
		}
	}
	if parts == nil || !m.Get("content").IsString() {
		return o
	}
	if text := m.Get("content").Text(); text != "" {
		var part residue.Object
		part.Set("type", "text")
		part.Set("text", text)
		parts = slices.Insert(parts, 0, json.RawMessage(part.JSON()))
	}
	o = residue.Object(loose.Value(o.JSON()).Except("media"))
	o.Set("content", residue.List(parts))
	return o
}

// withOwn adds picoclaw's own members, and those that a program gave to package keyed, which
// serves the same kind of bots.
func withOwn(e *session.Entry, o residue.Object) json.RawMessage {
	for _, f := range keyedMembers(e.Message.Extra) {
		o.Set(f.Name, f.Value)
	}
	withCallMembers(e, &o)
	if calls := loose.Value(o.JSON()).Get("tool_calls"); calls.First() != nil && e.Message.Role == session.RoleAssistant {
		o.Set("role", session.RoleAssistant) // calls of other roles do not count
	}
	if e.Message.Model != "" {
		o.Set("model_name", e.Message.Model)
	}
	if !e.Timestamp.IsZero() {
		o.Set("created_at", e.Timestamp.UTC().Format(time.RFC3339Nano))
	}
	return o.JSON()
}

// keyedMembers returns the other members that package keyed was given with a message or a call.
func keyedMembers(extra session.Fields) session.Fields {
	return residue.In(extra, session.FieldKeyed).Except()
}

// withCallMembers adds the members that package keyed was given with calls.
func withCallMembers(e *session.Entry, o *residue.Object) {
	extra := make(map[string]session.Fields)
	for i := range e.Message.Content {
		if call := e.Message.Content[i].ToolUse; call != nil {
			if members := keyedMembers(call.Extra); len(members) > 0 {
				extra[call.ID] = members
			}
		}
	}
	if len(extra) == 0 {
		return
	}
	var calls []json.RawMessage
	for call := range loose.Value(o.JSON()).Get("tool_calls").Items() {
		made := residue.Object(call.Except())
		for _, f := range extra[call.Get("id").Text()] {
			made.Set(f.Name, f.Value)
		}
		calls = append(calls, made.JSON())
	}
	if calls != nil {
		o.Set("tool_calls", residue.List(calls))
	}
}
