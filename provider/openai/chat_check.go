package openai

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
)

// CheckChat returns the faults because of which Chat Completions would refuse a request. The
// request is given as a whole or as its list of messages. A request without faults may still
// be refused for reasons that only the provider knows.
func CheckChat(request []byte) []provider.Fault {
	var c chatChecker
	list, _ := c.Messages(request, "messages")
	for i, raw := range list {
		c.message(wire.Place("messages", i), raw)
	}
	c.Pairs(c.turns, false)
	return c.Faults
}

type chatChecker struct {
	wire.Rules
	turns []wire.Turn // each result is a message of its own; those in a row are one turn
	tool  bool        // the last message was a result
}

// message checks a message. The results of one turn are messages in a row.
func (c *chatChecker) message(at string, raw json.RawMessage) {
	o, ok := c.Object(at, raw)
	if !ok {
		return
	}
	role := o.Str("role")
	before := c.tool
	c.tool = role == session.RoleTool || role == roleFunction
	if !c.tool || !before {
		c.turns = append(c.turns, wire.Turn{At: at, Model: role == session.RoleAssistant})
	}
	t := &c.turns[len(c.turns)-1]
	switch role {
	case session.RoleSystem, roleDeveloper, session.RoleUser:
		c.content(at, o, role)
	case session.RoleAssistant:
		c.assistant(t, at, o)
	case session.RoleTool:
		t.Results = append(t.Results, wire.Ref{ID: o.Str("tool_call_id"), At: at})
		c.content(at, o, role)
	case roleFunction: // the old format, which has no ids
	default:
		c.Break(provider.RuleRole, at, "the role %q is unknown", role)
	}
}

// assistant checks a model's message: with calls, it needs no content.
func (c *chatChecker) assistant(t *wire.Turn, at string, o wire.Object) {
	if calls := o.Get("tool_calls"); calls != nil {
		list, ok := c.List(at+".", o, "tool_calls")
		if ok && len(list) == 0 {
			c.Break(provider.RuleEmpty, at+".tool_calls", "it is empty")
		}
		for i, raw := range list {
			place := wire.Place(at+".tool_calls", i)
			if call, ok := c.Object(place, raw); ok {
				c.call(t, place, call)
			}
		}
		return
	}
	if o.Has("function_call") || o.Has("refusal") || o.Has("audio") {
		return
	}
	if content := o.Get("content"); content == nil || rawjson.IsNull(content) {
		c.Break(provider.RuleEmpty, at+".content", "without calls, a message must have a content")
		return
	}
	c.content(at, o, session.RoleAssistant)
}

// call checks a call of a function or of a custom tool, whose input is text.
func (c *chatChecker) call(t *wire.Turn, at string, o wire.Object) {
	id := o.Str("id")
	if id == "" || len(id) > maxChatID {
		c.Break(provider.RuleName, at+".id", "the id %q must have 1 to %d characters", id, maxChatID)
	}
	member, text := "function", "arguments"
	if o.Str("type") == formCustom {
		member, text = formCustom, "input"
	}
	inner := wire.Members(o.Get(member))
	c.Name(at+".name", inner.Str("name"), maxName)
	if rawjson.Kind(inner.Get(text)) != 's' {
		c.Break(provider.RuleShape, at+"."+member+"."+text, "must be a string")
	}
	t.Calls = append(t.Calls, wire.Ref{ID: id, At: at})
}

// content checks a content: only users may send media.
func (c *chatChecker) content(at string, o wire.Object, role session.MessageRole) {
	content := o.Get("content")
	if rawjson.Kind(content) == 's' {
		return // an empty one is accepted
	}
	list, ok := c.List(at+".", o, "content")
	if ok && len(list) == 0 {
		c.Break(provider.RuleEmpty, at+".content", "a list must have a part")
	}
	for i, raw := range list {
		place := wire.Place(at+".content", i)
		part, ok := c.Object(place, raw)
		if ok && role != session.RoleUser && part.Str("type") != "text" && part.Str("type") != "refusal" {
			c.Break(provider.RuleRole, place, "only users send %q", part.Str("type"))
		}
		c.Media(place, media.Chat, chatPart(raw), role == session.RoleTool)
	}
}
