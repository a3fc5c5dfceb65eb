package format_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

func TestResidueOf(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, made, original, want string }{
		{"equal", `{"a":1}`, `{"a":1}`, ``},
		{"equal in other words", `{"a":"é","b":2}`, `{ "b":2, "a":"\u00e9" }`, ``},
		{"more", `{"a":1}`, `{"a":1,"b":[2]}`, `{"set":{"b":[2]}}`},
		{"less", `{"a":1,"b":2}`, `{"a":1}`, `{"unset":["b"]}`},
		{"another value", `{"a":1}`, `{"a":"1"}`, `{"set":{"a":"1"}}`},
		{"digits count", `{"a":1.0}`, `{"a":1}`, `{"set":{"a":1}}`},
		{"inside", `{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"d":3}}`, `{"in":{"a":{"set":{"d":3},"unset":["c"]}}}`},
		{"an element", `{"a":[{"b":1},2,3]}`, `{"a":[{"b":1,"c":2},2,4]}`, `{"in":{"a":{"set":{"2":4},"in":{"0":{"set":{"c":2}}}}}}`},
		{"another length", `{"a":[1,2]}`, `{"a":[1]}`, `{"set":{"a":[1]}}`},
		{"another kind", `{"a":[1,2]}`, `{"a":{}}`, `{"set":{"a":{}}}`},
		{"null and absent differ", `{}`, `{"a":null}`, `{"set":{"a":null}}`},
		{"a name twice", `{"a":1}`, `{"a":2,"a":1}`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := residue.Of(loose.Value(tt.made), loose.Value(tt.original))
			if string(got) != tt.want {
				t.Errorf("the residue is %s, want %s", got, tt.want)
			}
			checkRestored(t, tt.made, tt.original, got)
		})
	}
}

func checkRestored(t interface {
	Errorf(string, ...any)
}, made, original string, what json.RawMessage,
) {
	restored := residue.Restore(loose.Value(made), loose.Value(what))
	if !reflect.DeepEqual(loose.Value(restored).Any(), loose.Value(original).Any()) {
		t.Errorf("%s with %s is %s, want %s", made, what, restored, original)
	}
}

// TestResidueRestoreGivesBack is the promise: whatever two objects are, the residue
// turns one into the other.
func TestResidueRestoreGivesBack(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(t *rapid.T) {
		made, original := object(3).Draw(t, "made"), object(3).Draw(t, "original")
		a, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(original)
		if err != nil {
			t.Fatal(err)
		}
		checkRestored(t, string(a), string(b), residue.Of(a, b))
	})
}

func object(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "0", "set", "in", "unset", "é<"}), residueValue(depth), 0, 4)
}

func residueValue(depth int) *rapid.Generator[any] {
	scalars := rapid.SampledFrom([]any{nil, true, 1, 2.5, "x", "<&>", ""})
	if depth == 0 {
		return scalars
	}
	return rapid.OneOf(scalars, object(depth-1).AsAny(), rapid.SliceOfN(residueValue(depth-1), 0, 3).AsAny())
}

func TestResidueRestoreWhatHasChanged(t *testing.T) {
	t.Parallel()
	what := loose.Value(`{"set":{"n":1},"in":{"gone":{"set":{"x":1}},"list":{"set":{"7":1}},"text":{"set":{"x":1}}}}`)
	got := residue.Restore(loose.Value(`{"list":[1],"text":"t"}`), what)
	if string(got) != `{"list":[1],"text":"t","n":1}` {
		t.Errorf("restored is %s", got)
	}
}

func TestResidueObject(t *testing.T) {
	t.Parallel()
	var o residue.Object
	o.Set("a", "<x>")
	o.Set("b", json.RawMessage(`[1, 2]`))
	o.SetText("c", "")
	o.SetText("d", "y")
	o.Set("a", 2)
	o.Set("e", math.Inf(1))
	o.Remove("d")
	o.Remove("missing")
	if got := string(o.JSON()); got != `{"a":2,"b":[1, 2],"e":null}` {
		t.Errorf("the object is %s", got)
	}
}

func TestResidueKeep(t *testing.T) {
	t.Parallel()
	var extra session.Fields
	extra = residue.Keep(extra, "pi", nil)
	if extra != nil || residue.In(extra, "pi") != nil {
		t.Error("nothing was kept, and it is something")
	}
	extra = residue.Keep(extra, "pi", json.RawMessage(`{"set":{}}`))
	if string(residue.In(extra, "pi")) != `{"set":{}}` || residue.In(extra, "codex") != nil {
		t.Errorf("what was kept is %v", extra)
	}
}

// TestResiduesOnDisk: what earlier versions wrote is still understood.
func TestResiduesOnDisk(t *testing.T) {
	t.Parallel()
	const line = `{"set":{"chat":123456789012345678},"unset":["b"],"in":{"c":{"set":{"1":"two"},"in":{"0":{"unset":["x"]}}}}}`
	got := residue.Restore(loose.Value(`{"a":1,"b":2,"c":[{"x":1,"y":2},2]}`), loose.Value(line))
	if want := `{"a":1,"c":[{"y":2},"two"],"chat":123456789012345678}`; string(got) != want {
		t.Errorf("restored %s, want %s", got, want)
	}
}
