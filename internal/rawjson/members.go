package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Member is a member of a JSON object: its name, and its value as text.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members is a JSON object that is read, changed or made: its members in the order
// of the text. It is the one way to build JSON here; code that reads much of it and
// builds none uses [Object] and [Array].
type Members []Member

// ParseMembers reads an object. The values are slices of raw. Of a member that
// occurs more than once, the last counts, as everywhere, in the place of the first.
func ParseMembers(raw []byte) (Members, error) {
	o := Members{}
	err := Object(raw, func(key, value []byte) error {
		o = append(o, Member{Name: string(key), Value: value})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return o.unique(), nil
}

// MembersOf returns the members of raw, or nil if it is no object.
func MembersOf(raw []byte) Members {
	o, err := ParseMembers(raw)
	if err != nil {
		return nil
	}
	return o
}

// fewMembers is how many members are compared with one another: for so many that
// is faster than remembering them.
const fewMembers = 16

// repeats reports whether a name occurs twice.
func (o Members) repeats() bool {
	for i := range o {
		if o[:i].Index(o[i].Name) >= 0 {
			return true
		}
	}
	return false
}

// unique leaves the last of the members that share a name, in the place of the
// first.
func (o Members) unique() Members {
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

// Index returns where a member is, or -1.
func (o Members) Index(name string) int {
	return slices.IndexFunc(o, func(f Member) bool { return f.Name == name })
}

// Get returns a member, or nil if there is none.
func (o Members) Get(name string) json.RawMessage {
	if i := o.Index(name); i >= 0 {
		return o[i].Value
	}
	return nil
}

// Has reports whether there is such a member.
func (o Members) Has(name string) bool { return o.Index(name) >= 0 }

// Str returns a member that is a string, or "".
func (o Members) Str(name string) string {
	s, _ := String(o.Get(name))
	return s
}

// Int returns a member that is an integer, or 0.
func (o Members) Int(name string) int {
	n, _ := Int(o.Get(name))
	return int(n)
}

// Take returns a member and removes it, in a copy of the list: others may have it.
func (o *Members) Take(name string) json.RawMessage {
	i := o.Index(name)
	if i < 0 {
		return nil
	}
	value := (*o)[i].Value
	*o = slices.Delete(slices.Clone(*o), i, i+1)
	return value
}

// Remove removes a member.
func (o *Members) Remove(name string) { o.Take(name) }

// TakeStr returns a member that is a string and removes it. One that is
// something else stays.
func (o *Members) TakeStr(name string) (s string, ok bool) {
	if s, ok = String(o.Get(name)); ok {
		o.Take(name)
	}
	return s, ok
}

// TakeText is TakeStr of a string that is not empty, for members that an encoder
// leaves out when they are.
func (o *Members) TakeText(name string) (s string, ok bool) {
	if o.Str(name) == "" {
		return "", false
	}
	return o.TakeStr(name)
}

// TakeObject returns a member that is an object and removes it. One that is
// something else stays.
func (o *Members) TakeObject(name string) (Members, bool) {
	inner, err := ParseMembers(o.Get(name))
	if err != nil {
		return nil, false
	}
	o.Take(name)
	return inner, true
}

// TakeElements returns the elements of a member that is an array and removes
// it. One that is something else stays.
func (o *Members) TakeElements(name string) ([]json.RawMessage, bool) {
	list, ok := Elements(o.Get(name))
	if ok {
		o.Take(name)
	}
	return list, ok
}

// Put gives a member a value that is JSON already: where the member is, or as the
// last one.
func (o *Members) Put(name string, value json.RawMessage) {
	if i := o.Index(name); i >= 0 {
		(*o)[i].Value = value
		return
	}
	*o = append(*o, Member{Name: name, Value: value})
}

// Set is Put of a value that is written as [AppendAny] writes it; a
// json.RawMessage is JSON already. A value that cannot be written is null.
func (o *Members) Set(name string, value any) {
	raw, ok := value.(json.RawMessage)
	if !ok {
		text, err := AppendAny(nil, value)
		if err != nil {
			text = []byte("null")
		}
		raw = text
	}
	o.Put(name, raw)
}

// SetStr sets a member to a string.
func (o *Members) SetStr(name, s string) { o.Put(name, Quote(s)) }

// SetText sets a member to a string, unless that is empty.
func (o *Members) SetText(name, s string) {
	if s != "" {
		o.SetStr(name, s)
	}
}

// SetObject sets a member to an object.
func (o *Members) SetObject(name string, inner Members) { o.Put(name, inner.JSON()) }

// Merge puts all members of another object.
func (o *Members) Merge(other Members) {
	have := *o // the others differ from one another
	for _, f := range other {
		if i := have.Index(f.Name); i >= 0 {
			(*o)[i].Value = f.Value
			continue
		}
		*o = append(*o, f)
	}
}

// JSON returns the object as text.
func (o Members) JSON() json.RawMessage {
	text := []byte{'{'}
	for i, f := range o {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(AppendString(text, f.Name), ':')
		text = append(text, f.Value...)
	}
	return append(text, '}')
}

// Indented returns the object as text for people, with two spaces a level.
func (o Members) Indented() []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, o.JSON(), "", "  "); err != nil {
		return o.JSON() // a value is not JSON: its reader will say so
	}
	return b.Bytes()
}

// List returns an array of values that are JSON already.
func List(elements []json.RawMessage) json.RawMessage {
	text := []byte{'['}
	for i, e := range elements {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, e...)
	}
	return append(text, ']')
}

// Elements returns the elements of raw; ok is false if it is no array.
func Elements(raw []byte) (list []json.RawMessage, ok bool) {
	list = []json.RawMessage{}
	err := Array(raw, func(value []byte) error {
		list = append(list, value)
		return nil
	})
	return list, err == nil
}

// Quote returns a string as JSON text.
func Quote(s string) json.RawMessage { return AppendString(nil, s) }

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
