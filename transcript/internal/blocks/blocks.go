// Package blocks turns other programs' data into content blocks, where several formats do it
// in the same way.
package blocks

import (
	"encoding/json"
	"strings"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// Text returns a text as blocks: none if it is empty.
func Text(s string) []session.Content {
	if s == "" {
		return nil
	}
	return []session.Content{session.Text(s)}
}

// Image returns the picture at a URL, which may be a data: URL.
func Image(url string) session.Content { return session.ImageFrom(provider.SourceAt(url)) }

// File returns a picture or another file. A picture has no name.
func File(name string, s *session.Source) session.Content {
	if strings.HasPrefix(s.MediaType, "image/") {
		return session.ImageFrom(s)
	}
	return session.File(name, s)
}

// Unknown keeps a block that the format's reader does not know. Its type is its member
// "type".
func Unknown(v loose.Value) session.Content {
	return session.Content{Type: session.ContentType(v.Get("type").Text()), Raw: v.Raw()}
}

// Plain returns a text, or the JSON that is there instead: tools answer with either.
func Plain(v loose.Value) string {
	if v.IsString() || !v.Exists() {
		return v.Text()
	}
	return string(v)
}

// Joined returns a text, or the texts of a list of parts, one below the other. Parts
// without text are left out.
func Joined(v loose.Value) string {
	if v.IsString() {
		return v.Text()
	}
	var texts []string
	for part := range v.Items() {
		if s := part.Get("text").Text(); s != "" {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n")
}

// Input returns the input of a call: an object, or the text of one.
func Input(v loose.Value) json.RawMessage {
	if v.IsString() {
		return json.RawMessage(v.Text())
	}
	return v.Raw()
}

// Role returns a role as one of the four that every program knows.
func Role(role session.MessageRole) session.MessageRole {
	switch role {
	case session.RoleUser, session.RoleAssistant, session.RoleSystem, session.RoleTool:
		return role
	case session.RoleBashExecution:
		return session.RoleTool
	}
	return session.RoleSystem
}

// List returns the elements of an array as blocks, in the way that read turns one into a block.
func List(v loose.Value, read func(loose.Value) session.Content) []session.Content {
	var list []session.Content
	for part := range v.Items() {
		list = append(list, read(part))
	}
	return list
}

// Calls returns an array of calls as blocks. A call is an object with a name; the members
// with its id and its input have the given names.
func Calls(v loose.Value, id, input string) []session.Content {
	return List(v, func(call loose.Value) session.Content {
		return session.ToolUseJSON(call.Get(id).Text(), call.Get("name").Text(), Input(call.Get(input)))
	})
}

// MarkInjected marks a message in the user's name if the user wrote nothing of it: if it is
// only text, and all of it is text that the program adds.
func MarkInjected(m *session.MessageEntry, isAdded func(text string) bool) {
	if m == nil || m.Role != session.RoleUser || len(m.Content) == 0 {
		return
	}
	for _, c := range m.Content {
		if c.Text == nil || !isAdded(strings.TrimSpace(c.Text.Content)) {
			return
		}
	}
	m.Metadata = map[string]any{session.MetaInjected: true}
}

// Usage reads what a response cost from counts with the names that several programs give them.
// Their input includes what the cache served and took. It is nil if there are no counts.
func Usage(v loose.Value) *session.Usage {
	if !v.Has("inputTokens") && !v.Has("outputTokens") {
		return nil
	}
	u := &session.Usage{
		Output: v.Get("outputTokens").Int(), Reasoning: v.Get("reasoningTokens").Int(),
		CacheRead: v.Get("cacheReadTokens").Int(), CacheWrite: v.Get("cacheWriteTokens").Int(),
	}
	u.Input = max(v.Get("inputTokens").Int()-u.CacheRead-u.CacheWrite, 0)
	return u
}
