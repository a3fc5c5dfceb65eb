package wire

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// EncodeTools writes the tools of a request, with their arguments in a member, each as around
// returns it.
func EncodeTools(list []provider.Tool, arguments string, around func(Object) Object) json.RawMessage {
	all := make([]json.RawMessage, len(list))
	for i := range list {
		var o Object
		o.SetStr("name", list[i].Name)
		o.SetText("description", list[i].Description)
		o.Put(arguments, list[i].Arguments())
		all[i] = around(o).JSON()
	}
	return List(all)
}

// Call returns a tool call whose arguments are a string that should be a JSON object. If the
// string is not an object, or differs from how the log would write it, it is added to the
// residue. An empty string means that there are no arguments.
func Call(id, name, arguments string, r *Residue) session.Content {
	if IsBlank(arguments) {
		r.Text = &arguments
		return session.ToolUseJSON(id, name, json.RawMessage("{}"))
	}
	input, err := Compact([]byte(arguments))
	if err != nil || rawjson.Kind(input) != 'o' {
		r.Text = &arguments
		return session.ToolUse(id, name, nil)
	}
	if string(input) != arguments {
		r.Text = &arguments
	}
	return session.ToolUseJSON(id, name, input)
}

// textInput is the one member of the input of a call that takes free text.
const textInput = "input"

// TextCall returns a call of a tool that takes free text.
func TextCall(id, name, text string) session.Content {
	var o Object
	o.SetStr(textInput, text)
	return session.ToolUseJSON(id, name, o.JSON())
}

// CallText returns the free text of a call; ok is false if there is other input
// too, or none.
func CallText(t *session.ToolUseContent) (text string, ok bool) {
	text, ok = t.Input[textInput].(string)
	return text, ok && len(t.Input) == 1
}

// Arguments returns the arguments of a call as a string. Unless verbatim is set, that is the
// text of an object: servers that parse it refuse anything else, as long as the call is in
// the conversation (https://github.com/vllm-project/vllm/pull/48922).
func Arguments(t *session.ToolUseContent, r *Residue, verbatim bool) (string, error) {
	input, err := t.InputJSON()
	if err != nil {
		return "", err
	}
	none := rawjson.IsNull(input)
	if none && !verbatim && r.Text != nil && *r.Text != "" {
		return string(wrapArguments(*r.Text)), nil
	}
	if r.Text != nil && (verbatim || !none) {
		same, err := Compact([]byte(*r.Text))
		if none || err == nil && string(same) == string(input) || verbatim && IsBlank(*r.Text) && string(input) == "{}" {
			return *r.Text, nil
		}
	}
	if none {
		return "{}", nil
	}
	return string(input), nil
}

// Input returns the input of a call as a JSON object. Arguments that are not an object
// become one that holds them as text.
func Input(t *session.ToolUseContent, extra session.Fields, notes *Notes) (json.RawMessage, error) {
	input, err := t.InputJSON()
	if err != nil || rawjson.Kind(input) == 'o' {
		return input, err
	}
	for _, format := range formats {
		r, _ := ResidueOf(extra, format)
		if r.Text != nil && *r.Text != "" {
			notes.Add("the arguments of a call of %s are not a JSON object and are sent as text in one", t.Name)
			return wrapArguments(*r.Text), nil
		}
	}
	return json.RawMessage("{}"), nil
}

func wrapArguments(text string) json.RawMessage {
	return Object{{Name: "arguments", Value: Quote(text)}}.JSON()
}

// Result returns a tool's answer that is a list. A plain text needs no parts, unless it
// is empty: nothing would be left of it.
func Result(id string, parts []session.Content, format string) session.Content {
	c := session.ToolResult(id, session.TextOf(parts), false)
	if len(parts) > 0 && (!IsPlain(parts, format) || c.ToolResult.Content == "") {
		c.ToolResult.Parts = parts
	}
	return c
}

// Parts returns a tool's answer as blocks.
func Parts(r *session.ToolResultContent) []session.Content {
	switch {
	case len(r.Parts) > 0:
		return r.Parts
	case r.Content == "":
		return nil
	}
	return []session.Content{session.Text(r.Content)}
}

// Pairs finds the call that a result without an id answers: the first open one
// of its name. The zero value is ready.
type Pairs struct {
	open     []string            // ids of calls, in order
	byName   map[string][]string // and by the name of the tool
	answered map[string]bool     // calls in the lists that are no longer open
	n        int                 // how many ids were made
}

// Turn begins a message of the model: earlier open calls will no longer be answered.
func (p *Pairs) Turn() { *p = Pairs{n: p.n} }

// Call records a call, and returns its id; a call without one gets one.
func (p *Pairs) Call(id, name string) string {
	if id == "" {
		id = p.madeID()
	}
	if p.byName == nil {
		p.byName, p.answered = make(map[string][]string), make(map[string]bool)
	}
	delete(p.answered, id)
	p.open = append(p.open, id)
	p.byName[name] = append(p.byName[name], id)
	return id
}

func (p *Pairs) madeID() string {
	p.n++
	return "call_auto_" + string(rawjson.AppendInt(nil, int64(p.n)))
}

// Answer returns the id of the call that a result answers, given the id that the
// result has, or else the name of the tool, or else its place. If no call is open, it
// makes an id: an orphan is kept too.
func (p *Pairs) Answer(id, name string) string {
	if id == "" && name == "" {
		id, p.open = p.first(p.open)
	} else if id == "" && p.byName != nil {
		id, p.byName[name] = p.first(p.byName[name])
	}
	if id == "" {
		return p.madeID()
	}
	if p.answered != nil {
		p.answered[id] = true
	}
	return id
}

// first returns the first open call of a list and what follows it.
func (p *Pairs) first(list []string) (id string, rest []string) {
	for i, id := range list {
		if !p.answered[id] {
			return id, list[i+1:]
		}
	}
	return "", nil
}

// Names finds the names of the tools that results come from. It has the names of the
// calls without a result, by id.
type Names map[string][]string

// Note records the calls of a message.
func (n Names) Note(blocks []session.Content) {
	for i := range blocks {
		if t := blocks[i].ToolUse; t != nil {
			n[t.ID] = append(n[t.ID], t.Name)
		}
	}
}

// Answer returns the name of the tool that a result comes from, "" if there was no call. A
// result answers the latest open call with its id. If there are more results than calls, the
// rest count as answers to the first call.
func (n Names) Answer(id string) string {
	names := n[id]
	if len(names) == 0 {
		return ""
	}
	if len(names) > 1 {
		n[id] = names[:len(names)-1]
	}
	return names[len(names)-1]
}
