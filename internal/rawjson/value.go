package rawjson

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// IsValue reports whether v is what [Any] makes of b. It is quick, and allocates
// nothing, when the answer is yes.
func IsValue(v any, b []byte) bool {
	var r Reader
	r.Reset(b)
	if r.is(v) && r.End() == nil {
		return true
	}
	// A key that occurs twice is not seen by a look at one member after the other.
	if _, isMap := v.(map[string]any); isMap { // which Map has decoded, perhaps not all of it
		decoded, err := Map(b)
		return err == nil && reflect.DeepEqual(v, decoded)
	}
	decoded, err := Any(b)
	return err == nil && reflect.DeepEqual(v, decoded)
}

func (r *Reader) is(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return v != nil && r.isMap(v)
	case []any:
		return v != nil && r.isSlice(v)
	case string:
		s, ok := r.StringBytes()
		return ok && string(s) == v
	case bool:
		b, ok := r.Bool()
		return ok && b == v
	case nil:
		return r.Null()
	case json.RawMessage:
		return v != nil && bytes.Equal(r.Raw(), v)
	case float64:
		f, ok := r.number().(float64)
		return ok && f == v
	case json.Number:
		n, ok := r.number().(json.Number)
		return ok && n == v
	}
	return false
}

// number reads a number, or returns nil.
func (r *Reader) number() any {
	if Kind(r.rest()) != 'n' {
		return nil
	}
	return Number(r.Raw())
}

func (r *Reader) isMap(m map[string]any) bool {
	if r.Kind() != '{' {
		return false
	}
	n := 0
	for more := r.Open('{'); more; more = r.More('}') {
		v, ok := m[string(r.Key())]
		if !ok || !r.is(v) {
			return false
		}
		n++
	}
	return n == len(m)
}

func (r *Reader) isSlice(s []any) bool {
	if r.Kind() != '[' {
		return false
	}
	n := 0
	for more := r.Open('['); more; more = r.More(']') {
		if n == len(s) || !r.is(s[n]) {
			return false
		}
		n++
	}
	return n == len(s)
}
