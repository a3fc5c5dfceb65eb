package google

import (
	"encoding/json"
	"regexp"
	"sync"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/provider/media"
)

// Check returns the faults for which generateContent would refuse a request, given
// as a whole or as its list of contents. A request without faults may still be
// refused for reasons that only the provider knows: a newer model asks for the
// signatures of its own thoughts, for instance.
func Check(request []byte) []provider.Fault {
	var c checker
	list, _ := c.Messages(request, "contents")
	turns := make([]wire.Turn, len(list))
	for i, raw := range list {
		turns[i] = c.content(wire.Place("contents", i), raw)
		if len(turns[i].Calls) > 0 && (i == 0 || turns[i-1].Model) {
			c.Break(provider.RuleOrder, turns[i].At, "calls must come right after the user's words or after results")
		}
	}
	c.pairs(turns)
	return c.Faults
}

type checker struct{ wire.Rules }

// maxName is the length of the longest function name.
const maxName = 64

// toolName is what a function may be called.
var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`) })

func (c *checker) content(at string, raw json.RawMessage) wire.Turn {
	t := wire.Turn{At: at}
	o, ok := c.Object(at, raw)
	if !ok {
		return t
	}
	role := o.Str("role")
	t.Model = role == roleModel
	if !t.Model && role != roleUser && role != "function" && role != "" {
		c.Break(provider.RuleRole, at, "the role must be user or model, not %q", role)
	}
	list, ok := c.List(at+".", o, "parts")
	if ok && len(list) == 0 {
		c.Break(provider.RuleEmpty, at+".parts", "there must be a part")
	}
	for i, part := range list {
		place := wire.Place(at+".parts", i)
		if o, ok := c.Object(place, part); ok {
			c.part(&t, place, o)
		}
	}
	return t
}

func (c *checker) part(t *wire.Turn, at string, o wire.Object) {
	if call, ok := either(o, callNames); ok {
		if !t.Model {
			c.Break(provider.RuleRole, at, "only the model calls functions")
			return
		}
		if name := call.Str("name"); !toolName().MatchString(name) {
			c.Break(provider.RuleName, at+".name", "a tool cannot have the name %q", name)
		}
		t.Calls = append(t.Calls, wire.Ref{ID: refOf(call), At: at})
		return
	}
	if result, ok := either(o, resultNames); ok {
		if t.Model {
			c.Break(provider.RuleRole, at, "only the user brings results")
			return
		}
		if result.Str("name") == "" {
			c.Break(provider.RuleName, at+".name", "a result must name its function")
		}
		if rawjson.Kind(result.Get("response")) != 'o' {
			c.Break(provider.RuleShape, at+".response", "must be an object")
		}
		t.Results = append(t.Results, wire.Ref{ID: refOf(result), At: at})
		return
	}
	if content, ok := (&Decoder{}).part(o.JSON()); ok && !t.Model {
		c.Media(at, media.Google, content, false)
	}
	if text, ok := rawjson.String(o.Get("text")); len(o) == 0 || ok && text == "" && len(o) == 1 {
		c.Break(provider.RuleEmpty, at, "a part must say something")
	}
}

func either(o wire.Object, names []string) (wire.Object, bool) {
	for _, name := range names {
		if o.Has(name) {
			return wire.Members(o.Get(name)), true
		}
	}
	return nil, false
}

// refOf returns the id of a call or a result, or else its name: without ids, names pair
// them.
func refOf(o wire.Object) string {
	if id := o.Str("id"); id != "" {
		return id
	}
	return "the function " + o.Str("name")
}

// pairs checks that calls are followed by their results. Ids are optional here, so a
// function that is called twice has two results with its name.
func (c *checker) pairs(turns []wire.Turn) {
	for i := range turns {
		number(turns[i].Calls)
		number(turns[i].Results)
	}
	c.Pairs(turns, false)
}

// number makes references with the same id distinct, by their order.
func number(list []wire.Ref) {
	count := make(map[string]int)
	for i := range list {
		id := list[i].ID
		if count[id]++; count[id] > 1 {
			list[i].ID += "#" + string(wire.Number(count[id]))
		}
	}
}
