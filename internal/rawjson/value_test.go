package rawjson_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// checkIsValue: a value is what it was decoded from, and others are not.
func checkIsValue(t *testing.T, b []byte) {
	t.Helper()
	v, err := rawjson.Any(b)
	if (err == nil) != rawjson.IsValue(v, b) {
		t.Fatalf("%q is not taken for %#v, or is although it is no JSON", b, v)
	}
	for _, other := range []any{nil, true, "x", 1.25, json.Number("1.25"), map[string]any{}, []any{}, []any{v}, map[string]any{"x": v}} {
		if want := err == nil && reflect.DeepEqual(other, v); rawjson.IsValue(other, b) != want {
			t.Fatalf("%q is taken for %#v: %v, want %v", b, other, !want, want)
		}
	}
}

func TestIsValue(t *testing.T) {
	t.Parallel()
	for _, s := range append(nasty(), heads()...) {
		checkIsValue(t, []byte(s))
	}
}

func TestIsValueAfterAChange(t *testing.T) {
	t.Parallel()
	raw := []byte(`{"a":{"b":[1,"x",null,true]},"n":123456789012345678}`)
	change := map[string]func(m map[string]any){
		"nothing":  func(map[string]any) {},
		"a member": func(m map[string]any) { m["c"] = 1.0 },
		"one less": func(m map[string]any) { delete(m, "n") },
		"a string": func(m map[string]any) { m["a"].(map[string]any)["b"].([]any)[1] = "y" },
		"a number": func(m map[string]any) { m["n"] = json.Number("123456789012345679") },
		"its type": func(m map[string]any) { m["n"] = 123456789012345678.0 },
		"an int":   func(m map[string]any) { m["a"].(map[string]any)["b"].([]any)[0] = 1 },
		"one more": func(m map[string]any) {
			m["a"].(map[string]any)["b"] = append(m["a"].(map[string]any)["b"].([]any), nil)
		},
		"the value": func(m map[string]any) { m["a"] = nil },
	}
	for name, f := range change {
		m, err := rawjson.Map(raw)
		if err != nil {
			t.Fatal(err)
		}
		f(m)
		if rawjson.IsValue(m, raw) != (name == "nothing") {
			t.Errorf("%s was changed, and IsValue did not notice, or the other way round", name)
		}
	}
	if rawjson.IsValue(map[string]any(nil), []byte("{}")) {
		t.Error("no map is taken for an empty one")
	}
}

// FuzzIsValue: a value is what it was decoded from.
func FuzzIsValue(f *testing.F) {
	addSeeds(f)
	f.Fuzz(checkIsValue)
}
