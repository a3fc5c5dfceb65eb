// Package residue keeps what a format says and a session has no place for, so
// that the format's own writer can say it again.
//
// A reader makes an entry of a record, lets the writer make a record of that
// entry, and keeps the difference between the two with the entry. When the entry
// is written again, the difference is put back: the record has equal JSON values
// then, whatever the reader understood of it. What it understood is not kept
// twice.
package residue

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/loose"
)

// The members of a residue. It describes how to turn a value into another one of
// the same kind.
const (
	put  = "set"   // members to set: {"name": value}
	drop = "unset" // members to remove: ["name"]
	deep = "in"    // residues of members or elements: {"name or index": residue}
)

// Of returns what must be done to a value to make it equal to the original, or
// nil if it is equal. Both are the text of a JSON object.
func Of(made, original loose.Value) json.RawMessage {
	if bytes.Equal(made, original) {
		return nil
	}
	var o, set, in Object
	var unset []json.RawMessage
	have, want := members(made), members(original)
	for _, f := range want {
		at := have.Index(f.Name)
		if at < 0 {
			set.Set(f.Name, loose.Value(f.Value).Raw())
			continue
		}
		difference(loose.Value(have[at].Value), loose.Value(f.Value), f.Name, &set, &in)
	}
	for _, f := range have {
		if want.Index(f.Name) < 0 {
			name, _ := json.Marshal(f.Name)
			unset = append(unset, name)
		}
	}
	setObject(&o, put, set)
	if len(unset) > 0 {
		o.Set(drop, List(unset))
	}
	setObject(&o, deep, in)
	if len(o) == 0 {
		return nil
	}
	return o.JSON()
}

func setObject(o *Object, name string, value Object) {
	if len(value) > 0 {
		o.Set(name, value.JSON())
	}
}

// difference tells how a member differs: by what is in it where both are objects
// or arrays of one length, or else as a whole.
func difference(have, want loose.Value, name string, set, in *Object) {
	switch {
	case have.IsObject() && want.IsObject():
		if inner := Of(have, want); inner != nil {
			in.Set(name, inner)
		}
		return
	case have.IsArray() && want.IsArray():
		inner, ok := ofElements(have, want)
		if ok && inner != nil {
			in.Set(name, inner)
		}
		if ok {
			return
		}
	case same(have, want):
		return
	}
	set.Set(name, want.Raw())
}

// ofElements compares two arrays of the same length element by element.
func ofElements(have, want loose.Value) (json.RawMessage, bool) {
	if bytes.Equal(have, want) {
		return nil, true
	}
	a, b := elements(have), elements(want)
	if len(a) != len(b) {
		return nil, false
	}
	var o, set, in Object
	for i := range a {
		difference(a[i], b[i], strconv.Itoa(i), &set, &in)
	}
	setObject(&o, put, set)
	setObject(&o, deep, in)
	if len(o) == 0 {
		return nil, true
	}
	return o.JSON(), true
}

func elements(v loose.Value) []loose.Value {
	var list []loose.Value
	for item := range v.Items() {
		list = append(list, item)
	}
	return list
}

// Restore does to a value what a residue says. A residue that does not fit,
// because the value has changed since, changes what it can.
func Restore(made loose.Value, what loose.Value) json.RawMessage {
	switch {
	case made.IsObject():
		return restoreObject(made, what)
	case made.IsArray():
		return restoreArray(made, what)
	}
	return json.RawMessage(made)
}

func restoreObject(made, what loose.Value) json.RawMessage {
	o := members(made)
	for name, inner := range what.Get(deep).Members() {
		if at := o.Index(name); at >= 0 {
			o[at].Value = Restore(loose.Value(o[at].Value), inner)
		}
	}
	for name, value := range what.Get(put).Members() {
		o.Set(name, json.RawMessage(value))
	}
	for name := range what.Get(drop).Items() {
		o.Remove(name.Text())
	}
	return o.JSON()
}

func restoreArray(made, what loose.Value) json.RawMessage {
	var list []json.RawMessage
	for i, element := range elements(made) {
		name := strconv.Itoa(i)
		if value := what.Get(put, name); value != nil {
			element = value
		}
		if inner := what.Get(deep, name); inner != nil {
			element = loose.Value(Restore(element, inner))
		}
		list = append(list, json.RawMessage(element))
	}
	return List(list)
}

// same reports whether two texts are the same value, which is no object and no
// array. A string may be written in several ways.
func same(a, b loose.Value) bool {
	return bytes.Equal(a, b) || a.IsString() && b.IsString() && a.Text() == b.Text()
}

// Keep adds a residue to the unknown members of something, under the name of a
// format. Nothing is added for nil.
func Keep(extra session.Fields, format string, what json.RawMessage) session.Fields {
	if what == nil {
		return extra
	}
	return append(extra, session.Field{Name: format, Value: what})
}

// In returns the residue that was kept for a format, or nil.
func In(extra session.Fields, format string) loose.Value {
	for _, f := range extra {
		if f.Name == format {
			return loose.Value(f.Value)
		}
	}
	return nil
}
