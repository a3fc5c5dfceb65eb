package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// Object is a JSON object: its members in the order of the text.
type Object session.Fields

// Parse reads an object. The values are slices of raw. Of a member that occurs
// more than once, the last counts, as everywhere.
func Parse(raw []byte) (Object, error) {
	o := Object{}
	err := rawjson.Object(raw, func(key, value []byte) error {
		o = append(o, session.Field{Name: string(key), Value: value})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return o.unique(), nil
}

// fewMembers is how many members are compared with one another: for so many that
// is faster than remembering them.
const fewMembers = 16

// repeats reports whether a name occurs twice.
func (o Object) repeats() bool {
	for i := range o {
		if o[:i].index(o[i].Name) >= 0 {
			return true
		}
	}
	return false
}

// unique leaves the last of the members that share a name, in the place of the
// first.
func (o Object) unique() Object {
	if len(o) <= fewMembers && !o.repeats() {
		return o
	}
	at := make(map[string]int, len(o))
	kept := o[:0]
	for _, f := range o {
		if i, ok := at[f.Name]; ok {
			kept[i].Value = f.Value
			continue
		}
		at[f.Name] = len(kept)
		kept = append(kept, f)
	}
	return kept
}

// Members returns the members of raw, or nil if it is no object.
func Members(raw []byte) Object {
	o, err := Parse(raw)
	if err != nil {
		return nil
	}
	return o
}

// Elements returns the elements of raw; ok is false if it is no array.
func Elements(raw []byte) (list []json.RawMessage, ok bool) {
	list = []json.RawMessage{}
	err := rawjson.Array(raw, func(value []byte) error {
		list = append(list, value)
		return nil
	})
	return list, err == nil
}

// Compact returns raw without the white space between its tokens, or an error
// if it is not JSON. The log keeps one entry a line, so what is kept in entries
// must have no newlines; and bytes that depend on whether an entry came from the
// wire or from the log would defeat prompt caches.
func Compact(raw []byte) ([]byte, error) {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	var buf bytes.Buffer
	if err := json.Compact(&buf, raw); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return buf.Bytes(), nil
}

func (o Object) index(name string) int {
	return slices.IndexFunc(o, func(f session.Field) bool { return f.Name == name })
}

// Get returns a member, or nil if there is none.
func (o Object) Get(name string) json.RawMessage {
	if i := o.index(name); i >= 0 {
		return o[i].Value
	}
	return nil
}

// Has reports whether there is such a member.
func (o Object) Has(name string) bool { return o.index(name) >= 0 }

// Str returns a member that is a string, or "".
func (o Object) Str(name string) string {
	s, _ := rawjson.String(o.Get(name))
	return s
}

// Int returns a member that is an integer, or 0.
func (o Object) Int(name string) int {
	n, _ := rawjson.Int(o.Get(name))
	return int(n)
}

// Take returns a member and removes it.
func (o *Object) Take(name string) json.RawMessage {
	i := o.index(name)
	if i < 0 {
		return nil
	}
	value := (*o)[i].Value
	*o = slices.Delete(slices.Clone(*o), i, i+1)
	return value
}

// TakeStr returns a member that is a string and removes it. One that is
// something else stays.
func (o *Object) TakeStr(name string) (s string, ok bool) {
	if s, ok = rawjson.String(o.Get(name)); ok {
		o.Take(name)
	}
	return s, ok
}

// TakeText is TakeStr of a string that is not empty, for members that an encoder
// leaves out when they are.
func (o *Object) TakeText(name string) (s string, ok bool) {
	if o.Str(name) == "" {
		return "", false
	}
	return o.TakeStr(name)
}

// TakeObject returns a member that is an object and removes it. One that is
// something else stays.
func (o *Object) TakeObject(name string) (Object, bool) {
	inner, err := Parse(o.Get(name))
	if err != nil {
		return nil, false
	}
	o.Take(name)
	return inner, true
}

// TakeElements returns the elements of a member that is an array and removes
// it. One that is something else stays.
func (o *Object) TakeElements(name string) ([]json.RawMessage, bool) {
	list, ok := Elements(o.Get(name))
	if ok {
		o.Take(name)
	}
	return list, ok
}

// Set adds a member, or replaces the one of this name.
func (o *Object) Set(name string, value json.RawMessage) {
	if i := o.index(name); i >= 0 {
		(*o)[i].Value = value
		return
	}
	*o = append(*o, session.Field{Name: name, Value: value})
}

// Merge sets all members of another object.
func (o *Object) Merge(other Object) {
	have := *o // the others differ from one another
	for _, f := range other {
		if i := have.index(f.Name); i >= 0 {
			(*o)[i].Value = f.Value
			continue
		}
		*o = append(*o, f)
	}
}

// SetStr sets a member to a string.
func (o *Object) SetStr(name, s string) { o.Set(name, Quote(s)) }

// SetObject sets a member to an object.
func (o *Object) SetObject(name string, inner Object) { o.Set(name, inner.JSON()) }

// JSON returns the object as text.
func (o Object) JSON() json.RawMessage {
	buf := []byte{'{'}
	for i, f := range o {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = rawjson.AppendString(buf, f.Name)
		buf = append(buf, ':')
		buf = append(buf, f.Value...)
	}
	return append(buf, '}')
}

// List returns an array as text.
func List(elements []json.RawMessage) json.RawMessage {
	buf := []byte{'['}
	for i, e := range elements {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(buf, e...)
	}
	return append(buf, ']')
}

// Quote returns a string as JSON text.
func Quote(s string) json.RawMessage { return rawjson.AppendString(nil, s) }

// Number returns an integer as JSON text.
func Number(n int) json.RawMessage { return rawjson.AppendInt(nil, int64(n)) }
