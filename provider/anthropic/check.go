package anthropic

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
)

// Check returns the faults for which Messages would refuse a request, given as a
// whole or as its list of messages. A request without faults may still be refused
// for reasons that only the provider knows, such as its length.
//
// Messages of the same role in a row are accepted, but calls must still be answered in
// the very next message.
func Check(request []byte) []provider.Fault {
	var c checker
	list, o := c.Messages(request, "messages")
	c.system(o.Get("system"))
	turns := make([]wire.Turn, len(list))
	c.thoughts = make([]thoughts, len(list))
	for i, raw := range list {
		c.at = i
		turns[i] = c.message(wire.Place("messages", i), raw, i+1 == len(list))
	}
	c.Pairs(turns, true)
	c.thinking(turns, o)
	return c.Faults
}

type checker struct {
	wire.Rules
	at       int // the message
	thoughts []thoughts
}

// thoughts says where a message has thinking.
type thoughts struct{ some, last bool }

// thinking checks the places of thinking. Messages of the model in a row count as one.
func (c *checker) thinking(turns []wire.Turn, request wire.Object) {
	for i := range turns {
		if c.thoughts[i].last && (i+1 == len(turns) || !turns[i+1].Model) {
			c.Break(provider.RuleOrder, turns[i].At, "the model's last block cannot be thinking")
		}
	}
	kind := wire.Members(request.Get("thinking")).Str("type")
	if !request.Has("model") || kind != "" && kind != "disabled" {
		return // a list of messages does not say whether it asks for thinking
	}
	if f, _ := provider.FamilyOf(request.Str("model")); kind == "" && (f.Unasked || f.Thinking == "") {
		return // the model thinks, or may think, without being asked to
	}
	last := len(turns) - 1
	for last >= 0 && len(turns[last].Results) > 0 {
		last--
	}
	for ; last >= 0 && turns[last].Model; last-- {
		if c.thoughts[last].some {
			c.Break(provider.RuleOrder, turns[last].At, "without asking for it, the model's last message cannot have thinking")
		}
	}
}

func (c *checker) system(raw json.RawMessage) {
	list, _ := wire.Elements(raw)
	for i, block := range list {
		at := wire.Place("system", i)
		if o, ok := c.Object(at, block); ok {
			c.text(at, o)
		}
	}
}

// message checks a message. The last one may be the beginning of an answer that the model
// continues, and may then be empty.
func (c *checker) message(at string, raw json.RawMessage, last bool) wire.Turn {
	t := wire.Turn{At: at}
	o, ok := c.Object(at, raw)
	if !ok {
		return t
	}
	role := o.Str("role")
	t.Model = role == session.RoleAssistant
	if !t.Model && role != session.RoleUser {
		c.Break(provider.RuleRole, at, "the role must be user or assistant, not %q", role)
	}
	content := o.Get("content")
	prefill := last && t.Model // the text that the model should continue may be empty
	if text, ok := rawjson.String(content); ok {
		if text == "" && !prefill {
			c.Break(provider.RuleEmpty, at+".content", "it is empty")
		}
		return t
	}
	list, ok := c.List(at+".", o, "content")
	if ok && len(list) == 0 && !prefill {
		c.Break(provider.RuleEmpty, at+".content", "it is empty")
	}
	words := false // something that is not a result came before
	for i, block := range list {
		words = c.block(&t, wire.Place(at+".content", i), block, words)
	}
	return t
}

// block checks a block of a message. It reports whether results may not follow.
func (c *checker) block(t *wire.Turn, at string, raw json.RawMessage, words bool) bool {
	o, ok := c.Object(at, raw)
	if !ok {
		return words
	}
	c.thoughts[c.at].last = t.Model && isThought(o)
	c.thoughts[c.at].some = c.thoughts[c.at].some || c.thoughts[c.at].last
	switch kind := o.Str("type"); {
	case kind == "":
		c.Break(provider.RuleShape, at, "it has no type")
	case kind == "tool_use" && !t.Model:
		c.Break(provider.RuleRole, at, "only the assistant calls tools")
	case kind == "tool_use":
		c.call(t, at, o)
	case kind == "tool_result" && t.Model:
		c.Break(provider.RuleRole, at, "only the user brings results")
	case kind == "tool_result":
		if words {
			c.Break(provider.RuleOrder, at, "results must come first in their message")
		}
		c.result(t, at, o)
		return words
	case kind == "text":
		c.text(at, o)
	case t.Model && (kind == "image" || kind == "document"):
		c.Break(provider.RuleRole, at, "only the user sends %ss", kind)
	case !t.Model && (kind == "thinking" || kind == "redacted_thinking"):
		c.Break(provider.RuleRole, at, "only the assistant thinks")
	case kind == "image" || kind == "document":
		c.source(at, raw, false)
	case kind == "thinking" && o.Str("signature") == "":
		c.Break(provider.RuleUnsigned, at, "thinking must have its signature")
	}
	return true
}

func (c *checker) text(at string, o wire.Object) {
	if o.Str("type") == "text" && wire.IsBlank(o.Str("text")) {
		c.Break(provider.RuleEmpty, at, "a text must say something")
	}
}

// source checks the source of a picture or a document. One that is stored elsewhere has no media
// type.
func (c *checker) source(at string, raw json.RawMessage, result bool) {
	c.Media(at, media.Anthropic, block(raw), result)
	source := wire.Members(wire.Members(raw).Get("source"))
	if kind := source.Str("type"); isElsewhere(kind) && source.Has("media_type") {
		c.Break(provider.RuleShape, at+".source.media_type", "a source of type %s has none", kind)
	}
}

func (c *checker) call(t *wire.Turn, at string, o wire.Object) {
	id := o.Str("id")
	c.ID(at+".id", id, maxID)
	c.Name(at+".name", o.Str("name"), maxName)
	if rawjson.Kind(o.Get("input")) != 'o' {
		c.Break(provider.RuleShape, at+".input", "must be an object")
	}
	t.Calls = append(t.Calls, wire.Ref{ID: id, At: at})
}

func (c *checker) result(t *wire.Turn, at string, o wire.Object) {
	t.Results = append(t.Results, wire.Ref{ID: o.Str("tool_use_id"), At: at})
	parts, _ := wire.Elements(o.Get("content"))
	for i, raw := range parts {
		place := wire.Place(at+".content", i)
		if part, ok := c.Object(place, raw); ok {
			c.text(place, part)
			c.source(place, raw, true)
		}
	}
}
