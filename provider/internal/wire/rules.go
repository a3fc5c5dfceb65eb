package wire

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
)

// Rules collects the faults of a request. The formats differ in the form of a request, but
// the rules for calls and results are the same for all, and are here.
type Rules struct {
	Faults []provider.Fault
}

// Break adds a fault.
func (r *Rules) Break(rule provider.Rule, at, format string, args ...any) {
	r.Faults = append(r.Faults, provider.Fault{Rule: rule, At: at, What: fmt.Sprintf(format, args...)})
}

// Turn has the calls and results of one side before the other side speaks.
type Turn struct {
	At      string
	Model   bool
	Calls   []Ref
	Results []Ref
}

// Ref is a call or a result in a request.
type Ref struct {
	ID string
	At string
}

// Pairs checks that every call is answered once, in the next turn, and that every
// result answers a call. The ids of a turn must differ; with unique, those of the whole
// request.
func (r *Rules) Pairs(turns []Turn, unique bool) {
	seen := make(map[string]bool)
	for i := range turns {
		if !unique {
			clear(seen)
		}
		for _, c := range turns[i].Calls {
			if seen[c.ID] {
				r.Break(provider.RuleRepeated, c.At, "there is another call with the id %q", c.ID)
			}
			seen[c.ID] = true
		}
		var before, after *Turn
		if i > 0 {
			before = &turns[i-1]
		}
		if i+1 < len(turns) {
			after = &turns[i+1]
		}
		r.answered(&turns[i], after)
		r.answers(&turns[i], before)
	}
}

// answered checks that the next turn answers the calls of one.
func (r *Rules) answered(t, next *Turn) {
	var answered map[string]bool
	if next != nil {
		answered = idsOf(next.Results)
	}
	for _, c := range t.Calls {
		if !answered[c.ID] {
			r.Break(provider.RuleUnanswered, c.At, "the call %q has no result in the next message", c.ID)
		}
	}
}

// answers checks that the results of a turn answer calls of the one before.
func (r *Rules) answers(t, before *Turn) {
	var calls map[string]bool
	if before != nil {
		calls = idsOf(before.Calls)
	}
	seen := make(map[string]bool, len(t.Results))
	for _, result := range t.Results {
		switch {
		case !calls[result.ID]:
			r.Break(provider.RuleOrphan, result.At, "the message before has no call %q", result.ID)
		case seen[result.ID]:
			r.Break(provider.RuleRepeated, result.At, "the call %q has a result already", result.ID)
		}
		seen[result.ID] = true
	}
}

func idsOf(list []Ref) map[string]bool {
	ids := make(map[string]bool, len(list))
	for _, ref := range list {
		ids[ref.ID] = true
	}
	return ids
}

// ID checks an id of a call.
func (r *Rules) ID(at, id string, longest int) {
	if id == "" || len(id) > longest || !isSafe(id) {
		r.Break(provider.RuleName, at, "the id %q must have 1 to %d letters, digits, _ and -", id, longest)
	}
}

// Name checks the name of a tool.
func (r *Rules) Name(at, name string, longest int) {
	if name == "" || len(name) > longest || !isSafe(name) {
		r.Break(provider.RuleName, at, "a tool cannot have the name %q", name)
	}
}

// Media checks a block of the user, or with result one of a tool's result.
func (r *Rules) Media(at string, l *media.Limits, c session.Content, result bool) {
	if why := l.Fault(c, result); why != "" {
		r.Break(provider.RuleMedia, at, "%s", why)
	}
}

// Object returns the value at a place as an object; anything else is a fault.
func (r *Rules) Object(at string, raw json.RawMessage) (Object, bool) {
	if rawjson.Kind(raw) != 'o' {
		r.Break(provider.RuleShape, at, "must be an object")
		return nil, false
	}
	return Members(raw), true
}

// List returns the member of an object as a list; anything else is a fault.
func (r *Rules) List(at string, o Object, name string) ([]json.RawMessage, bool) {
	list, ok := Elements(o.Get(name))
	if !ok {
		r.Break(provider.RuleShape, at+name, "must be a list")
	}
	return list, ok
}

// Request returns a request. A bare list of messages counts as a request with nothing
// else.
func (r *Rules) Request(data []byte, list string) (Object, bool) {
	data, err := Compact(data)
	if err != nil {
		r.Break(provider.RuleShape, "request", "not JSON: %v", err)
		return nil, false
	}
	if rawjson.Kind(data) == 'a' {
		return Object{{Name: list, Value: data}}, true
	}
	return r.Object("request", data)
}

// Messages returns the messages of a request, at least one, and the request around
// them.
func (r *Rules) Messages(data []byte, list string) ([]json.RawMessage, Object) {
	o, ok := r.Request(data, list)
	if !ok {
		return nil, nil
	}
	messages, ok := r.List("", o, list)
	if ok && len(messages) == 0 {
		r.Break(provider.RuleEmpty, list, "it is empty")
	}
	return messages, o
}

// IsBlank reports whether a text is blank: some providers refuse that.
func IsBlank(text string) bool { return strings.TrimSpace(text) == "" }

// Place returns the place of an element of a list.
func Place(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
