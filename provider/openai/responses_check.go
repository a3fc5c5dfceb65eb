package openai

import (
	"encoding/json"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/provider/media"
)

// CheckResponses returns the faults because of which Responses would refuse a request. The
// request is given as a whole or as its list of items. A request without faults may still be
// refused for reasons that only the provider knows. With previous_response_id or a
// conversation, a request continues something unknown here, so its results may answer calls
// that it does not contain.
func CheckResponses(request []byte) []provider.Fault {
	var c itemChecker
	o, ok := c.Request(request, "input")
	if !ok {
		return c.Faults
	}
	if rawjson.Kind(o.Get("input")) == 's' {
		return nil
	}
	c.continues = o.Str("previous_response_id") != "" || o.Has("conversation")
	c.forgets = string(o.Get("store")) == "false"
	list, ok := c.List("", o, "input")
	if ok && len(list) == 0 && !c.continues {
		c.Break(provider.RuleEmpty, "input", "there must be an item")
	}
	for i, raw := range list {
		at := wire.Place("input", i)
		if item, ok := c.Object(at, raw); ok {
			c.item(at, item)
		}
	}
	for _, call := range c.calls {
		if !c.answered[call.ID] {
			c.Break(provider.RuleUnanswered, call.At, "the call %q has no output", call.ID)
		}
	}
	c.following(list)
	return c.Faults
}

type itemChecker struct {
	wire.Rules
	continues bool
	forgets   bool // the provider stores nothing
	calls     []wire.Ref
	called    map[string]bool
	answered  map[string]bool
}

func (c *itemChecker) item(at string, o wire.Object) {
	kind := o.Str("type")
	switch _, own := toolItems[kind]; {
	case kind == "function_call" || own && o.Has("call_id"):
		c.call(at, kind, o)
	case strings.HasSuffix(kind, "_call_output"):
		c.output(at, o)
	case kind == "reasoning":
		if c.forgets && o.Str("encrypted_content") == "" {
			c.Break(provider.RuleUnsigned, at, "Item with id '%s' not found. Items are not persisted when `store` is set to false. "+
				"Try again with `store` set to true, or remove this item from your input.", o.Str("id"))
		}
	case kind == itemMessage || kind == "":
		c.message(at, o)
	}
}

func (c *itemChecker) call(at, kind string, o wire.Object) {
	if c.called == nil {
		c.called = make(map[string]bool)
	}
	id := o.Str("call_id")
	if id == "" || len(id) > maxResponsesID {
		c.Break(provider.RuleName, at+".call_id", "the id %q must have 1 to %d characters", id, maxResponsesID)
	}
	if c.called[id] {
		c.Break(provider.RuleRepeated, at, "there is another call with the id %q", id)
	}
	if kind == "function_call" {
		c.Name(at+".name", o.Str("name"), maxName)
		if rawjson.Kind(o.Get("arguments")) != 's' {
			c.Break(provider.RuleShape, at+".arguments", "must be a string")
		}
	}
	c.called[id] = true
	c.calls = append(c.calls, wire.Ref{ID: id, At: at})
}

func (c *itemChecker) output(at string, o wire.Object) {
	id := o.Str("call_id")
	switch {
	case !c.called[id] && !c.continues:
		c.Break(provider.RuleOrphan, at, "no call %q comes before it", id)
	case c.answered[id]:
		c.Break(provider.RuleRepeated, at, "the call %q has an output already", id)
	}
	if c.answered == nil {
		c.answered = make(map[string]bool)
	}
	c.answered[id] = true
	list, _ := wire.Elements(o.Get("output"))
	c.parts(at+".output", list, true)
}

func (c *itemChecker) message(at string, o wire.Object) {
	switch role := o.Str("role"); role {
	case "system", roleDeveloper, "user", "assistant":
	default:
		c.Break(provider.RuleRole, at, "the role %q is unknown", role)
	}
	if rawjson.Kind(o.Get("content")) == 's' {
		return
	}
	list, ok := c.List(at+".", o, "content")
	if ok && len(list) == 0 {
		c.Break(provider.RuleEmpty, at+".content", "a list must have a part")
	}
	c.parts(at+".content", list, false)
}

func (c *itemChecker) parts(at string, list []json.RawMessage, result bool) {
	for i, raw := range list {
		c.Media(wire.Place(at, i), media.Responses, itemPart(raw, inputText), result)
	}
}

// following checks that an item of the model follows each reasoning item.
func (c *itemChecker) following(list []json.RawMessage) {
	for i := range list {
		if isStranded(list, i) {
			c.Break(provider.RuleOrder, wire.Place("input", i), "reasoning must be followed by what the model said or did")
		}
	}
}

// isStranded reports whether an item is reasoning with an id that no item of the model
// follows: the provider requires the item that the reasoning led to.
func isStranded(list []json.RawMessage, i int) bool {
	o := wire.Members(list[i])
	if o.Str("type") != "reasoning" || o.Str("id") == "" {
		return false
	}
	return i+1 == len(list) || !isModels(wire.Members(list[i+1]))
}

func isModels(o wire.Object) bool {
	switch kind := o.Str("type"); {
	case kind == itemMessage || kind == "":
		return o.Str("role") == "assistant"
	case strings.HasSuffix(kind, "_output"):
		return false
	}
	return true
}
