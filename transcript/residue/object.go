package residue

import (
	"encoding/json"
	"slices"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/loose"
)

// Object is a JSON object that is being made, its members in order.
type Object session.Fields

// Set gives a member a value, which is written as JSON: where the member is, or
// as the last one. A value that cannot be written is null.
func (o *Object) Set(name string, value any) {
	raw, ok := value.(json.RawMessage)
	if !ok {
		text, err := rawjson.AppendAny(nil, value)
		if err != nil {
			text = []byte("null")
		}
		raw = text
	}
	if at := o.index(name); at >= 0 {
		(*o)[at].Value = raw
		return
	}
	*o = append(*o, session.Field{Name: name, Value: raw})
}

// SetText sets a member to a text, unless that is empty.
func (o *Object) SetText(name, text string) {
	if text != "" {
		o.Set(name, text)
	}
}

// Remove removes a member.
func (o *Object) Remove(name string) {
	if at := o.index(name); at >= 0 {
		*o = slices.Delete(*o, at, at+1)
	}
}

func (o *Object) index(name string) int {
	return slices.IndexFunc(*o, func(f session.Field) bool { return f.Name == name })
}

// JSON returns the object as text.
func (o Object) JSON() json.RawMessage {
	text := []byte{'{'}
	for i, f := range o {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(rawjson.AppendString(text, f.Name), ':'), f.Value...)
	}
	return append(text, '}')
}

// List returns an array of values that are JSON already.
func List(values []json.RawMessage) json.RawMessage {
	text := []byte{'['}
	for i, v := range values {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, v...)
	}
	return append(text, ']')
}

// members returns the members of an object; of a name that is there twice the
// last counts, as it does for most programs.
func members(v loose.Value) Object {
	var o Object
	for name, value := range v.Members() {
		o.Set(name, json.RawMessage(value))
	}
	return o
}
