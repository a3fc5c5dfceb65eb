package home_test

import (
	"encoding"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/coppice-dev/coppice/home"
)

// Faces send requests and results as JSON: whatever an operation takes and returns
// has names for that, all the way down, and nothing that JSON cannot hold.
func TestRequestsAndResultsAreJSON(t *testing.T) {
	seen := make(map[reflect.Type]bool)
	for _, group := range []any{&home.Sessions{}, &home.Entries{}, &home.Search{}, &home.Transfer{}, &home.Upkeep{}} {
		for m := range reflect.TypeOf(group).Methods() {
			for in := range m.Type.Ins() {
				if in.Kind() == reflect.Struct {
					checkJSON(t, in, m.Name, seen)
				}
			}
			// A conversation that is open, and what is handed over one by one, are not
			// results that a server encodes as they are.
			if out := m.Type.Out(0); out != reflect.TypeFor[*home.Conversation]() && out.Kind() != reflect.Func {
				checkJSON(t, out, m.Name, seen)
			}
		}
	}
	checkJSON(t, reflect.TypeFor[home.Arrival](), "Follow", seen)
	checkJSON(t, reflect.TypeFor[home.TreeNode](), "Tree", seen)
}

func checkJSON(t *testing.T, is reflect.Type, at string, seen map[reflect.Type]bool) {
	t.Helper()
	pointer := reflect.PointerTo(is)
	encodes := pointer.Implements(reflect.TypeFor[json.Marshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextMarshaler]())
	if seen[is] || encodes {
		return
	}
	seen[is] = true
	switch is.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		checkJSON(t, is.Elem(), at, seen)
	case reflect.Func, reflect.Chan:
		t.Errorf("%s: JSON cannot hold %v", at, is)
	case reflect.Interface:
		if is.NumMethod() > 0 {
			t.Errorf("%s: JSON says nothing of %v", at, is)
		}
	case reflect.Struct:
		for f := range is.Fields() {
			name, named := f.Tag.Lookup("json")
			if !f.IsExported() || name == "-" {
				continue
			}
			if !named && !f.Anonymous {
				t.Errorf("%s: %v.%s has no name in JSON", at, is, f.Name)
			}
			checkJSON(t, f.Type, at+"."+f.Name, seen)
		}
	}
}
