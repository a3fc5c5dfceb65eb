package bedrock

import (
	"encoding/json"
	"regexp"
	"sync"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
)

// Check returns the faults for which Converse would refuse a request, given as a
// whole or as its list of messages. A request without faults may still be refused
// for reasons that only the provider knows.
func Check(request []byte) []provider.Fault {
	var c checker
	list, _ := c.Messages(request, "messages")
	turns := make([]wire.Turn, len(list))
	for i, raw := range list {
		at := wire.Place("messages", i)
		turns[i] = c.message(at, raw)
		switch {
		case i == 0 && turns[i].Model:
			c.Break(provider.RuleOrder, at, "a conversation begins with the user")
		case i > 0 && turns[i].Model == turns[i-1].Model:
			c.Break(provider.RuleOrder, at, "user and assistant must take turns")
		}
	}
	c.Pairs(turns, true)
	return c.Faults
}

type checker struct{ wire.Rules }

var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) })

func (c *checker) message(at string, raw json.RawMessage) wire.Turn {
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
	list, ok := c.List(at+".", o, "content")
	if ok && len(list) == 0 {
		c.Break(provider.RuleEmpty, at+".content", "it is empty")
	}
	for i, block := range list {
		place := wire.Place(at+".content", i)
		o, ok := c.Object(place, block)
		if ok {
			c.block(&t, place, o)
		}
		if i+1 == len(list) && t.Model && isThought(o) {
			c.Break(provider.RuleOrder, place, "the model's last block cannot be thinking")
		}
	}
	return t
}

func (c *checker) block(t *wire.Turn, at string, o wire.Object) {
	switch {
	case o.Has("toolUse") && !t.Model:
		c.Break(provider.RuleRole, at, "only the assistant calls tools")
	case o.Has("toolUse"):
		call := wire.Members(o.Get("toolUse"))
		id := call.Str("toolUseId")
		c.ID(at+".toolUse.toolUseId", id, maxID)
		c.Name(at+".toolUse.name", call.Str("name"), toolName())
		if rawjson.Kind(call.Get("input")) != 'o' {
			c.Break(provider.RuleShape, at+".toolUse.input", "must be an object")
		}
		t.Calls = append(t.Calls, wire.Ref{ID: id, At: at})
	case o.Has("toolResult") && t.Model:
		c.Break(provider.RuleRole, at, "only the user brings results")
	case o.Has("toolResult"):
		result := wire.Members(o.Get("toolResult"))
		t.Results = append(t.Results, wire.Ref{ID: result.Str("toolUseId"), At: at})
		list, _ := c.List(at+".toolResult.", result, "content") // in a result, an empty text is accepted
		for i, raw := range list {
			c.Media(wire.Place(at+".toolResult.content", i), media.Bedrock, resultPart(raw), true)
		}
	default:
		if content, ok := block(o.JSON()); ok && !t.Model {
			c.Media(at, media.Bedrock, content, false)
		}
		if text, ok := rawjson.String(o.Get("text")); ok && wire.IsBlank(text) {
			c.Break(provider.RuleEmpty, at, "a text must say something")
		}
	}
}
