package rawjson

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// A patch says how to turn a JSON value into another of the same kind. It is how
// entries keep what a format says and a session has no place for: the residue.
// Its members, any of which may be missing:
//
//	set    members to set: {"name": value}
//	unset  members to remove: ["name"]
//	in     patches of members or elements: {"name or index": patch}
//
// The keeper of a patch may add members of other names, which mean nothing here.
const (
	PatchSet   = "set"
	PatchUnset = "unset"
	PatchIn    = "in"
)

// Difference returns the patch that makes an object equal to the original, or nil
// if it is equal. Both are the text of a JSON object.
func Difference(made, original []byte) json.RawMessage {
	if bytes.Equal(made, original) {
		return nil
	}
	var set, in Members
	var unset []string
	have, want := MembersOf(made), MembersOf(original)
	for _, f := range want {
		at := have.Index(f.Name)
		if at < 0 {
			set.Put(f.Name, f.Value)
			continue
		}
		difference(have[at].Value, f.Value, f.Name, &set, &in)
	}
	for _, f := range have {
		if !want.Has(f.Name) {
			unset = append(unset, f.Name)
		}
	}
	return patch(set, unset, in)
}

func patch(set Members, unset []string, in Members) json.RawMessage {
	var o Members
	o.PutPatch(set, unset)
	if len(in) > 0 {
		o.SetObject(PatchIn, in)
	}
	if len(o) == 0 {
		return nil
	}
	return o.JSON()
}

// PutPatch makes the object a patch that sets and removes members.
func (o *Members) PutPatch(set Members, unset []string) {
	if len(set) > 0 {
		o.SetObject(PatchSet, set)
	}
	if len(unset) > 0 {
		names := make([]json.RawMessage, len(unset))
		for i, name := range unset {
			names[i] = Quote(name)
		}
		o.Put(PatchUnset, List(names))
	}
}

// difference tells how a member differs: by what is in it where both are objects
// or arrays of one length, or else as a whole.
func difference(have, want []byte, name string, set, in *Members) {
	switch {
	case Kind(have) == 'o' && Kind(want) == 'o':
		if inner := Difference(have, want); inner != nil {
			in.Put(name, inner)
		}
		return
	case Kind(have) == 'a' && Kind(want) == 'a':
		inner, ok := elementDifference(have, want)
		if ok && inner != nil {
			in.Put(name, inner)
		}
		if ok {
			return
		}
	case sameScalar(have, want):
		return
	}
	set.Put(name, want) // patch makes a copy of it
}

// elementDifference compares two arrays of the same length element by element.
func elementDifference(have, want []byte) (json.RawMessage, bool) {
	if bytes.Equal(have, want) {
		return nil, true
	}
	a, _ := Elements(have)
	b, _ := Elements(want)
	if len(a) != len(b) {
		return nil, false
	}
	var set, in Members
	for i := range a {
		difference(a[i], b[i], strconv.Itoa(i), &set, &in)
	}
	return patch(set, nil, in), true
}

// sameScalar reports whether two texts are the same value, which is no object and
// no array. A string may be written in several ways.
func sameScalar(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	s, ok := String(a)
	other, isString := String(b)
	return ok && isString && s == other
}

// Patch does to a value what a patch says. A patch that does not fit, because the
// value has changed since, changes what it can.
func Patch(made, patch []byte) json.RawMessage {
	switch Kind(made) {
	case 'o':
		return patchObject(made, MembersOf(patch))
	case 'a':
		return patchArray(made, MembersOf(patch))
	}
	return made
}

func patchObject(made []byte, p Members) json.RawMessage {
	o := MembersOf(made)
	for _, inner := range MembersOf(p.Get(PatchIn)) {
		if at := o.Index(inner.Name); at >= 0 {
			o[at].Value = Patch(o[at].Value, inner.Value)
		}
	}
	for _, f := range MembersOf(p.Get(PatchSet)) {
		o.Put(f.Name, f.Value)
	}
	names, _ := Elements(p.Get(PatchUnset))
	for _, name := range names {
		s, _ := String(name)
		o.Remove(s)
	}
	return o.JSON()
}

func patchArray(made []byte, p Members) json.RawMessage {
	set, in := MembersOf(p.Get(PatchSet)), MembersOf(p.Get(PatchIn))
	list, _ := Elements(made)
	for i := range list {
		name := strconv.Itoa(i)
		if value := set.Get(name); value != nil {
			list[i] = value
		}
		if inner := in.Get(name); inner != nil {
			list[i] = Patch(list[i], inner)
		}
	}
	return List(list)
}
