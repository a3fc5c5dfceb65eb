package rawjson_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

func checkAny(t *testing.T, v any) {
	t.Helper()
	want, err := encode(v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := rawjson.AppendAny([]byte("x"), v)
	if err != nil || string(got) != "x"+string(want) {
		t.Fatalf("AppendAny(%v) = %s, %v, want x%s", v, got, err, want)
	}
}

func TestAppendAny(t *testing.T) {
	t.Parallel()
	deep := any(map[string]any{"end": []any{}})
	for range 200 {
		deep = map[string]any{"d": []any{deep}}
	}
	for _, v := range []any{
		nil, "a<b>\u2028\n", true, false, 0, -5, int64(math.MinInt64), int8(3), uint64(math.MaxUint64), float32(0.1), 'x',
		map[string]any{},
		map[string]any(nil),
		[]any{},
		[]any(nil),
		map[string]any{"b": 1, "a": []any{nil, "x", 1.5, map[string]any{"z": false}}, "\u2028": 2, "é": 3, "": 4, "\"": 5},
		map[string]string{"b": "<", "a": "&"},
		map[int]any{10: 1, 9: 2},
		[]string{"a", "b"},
		[]byte("bytes"),
		struct {
			A string `json:"a,omitempty"`
			B any
		}{B: []any{"<", 1e100}},
		json.RawMessage(` {"b" : "<" , "a":1}`), json.Number("12e3"), time.Unix(0, 0).UTC(), deep,
	} {
		checkAny(t, v)
	}
}

// TestAppendAnyInvalidKey: sorted by its bytes, written with U+FFFD.
func TestAppendAnyInvalidKey(t *testing.T) {
	t.Parallel()
	got, err := rawjson.AppendAny(nil, map[string]any{"\xff": 1, "\xfe": "\xfd", "z": 2})
	if want := `{"z":2,"\ufffd":"\ufffd","\ufffd":1}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestAppendAnyFloats(t *testing.T) {
	t.Parallel()
	for _, f := range []float64{
		0, math.Copysign(0, -1), 1, -1.5, 0.1, 1e-6, 9.99e-7, 1e-7, -1e-9, 1e-10, 1.5e-300, 5e-324, 1e20, 1e21, -1e21, 9.99e20, 1e300,
		math.MaxFloat64, 1 << 53, 123456789.123, 1.0 / 3,
	} {
		checkAny(t, f)
	}
}

func TestAppendAnyErrors(t *testing.T) {
	t.Parallel()
	loop := map[string]any{}
	loop["a"] = []any{loop}
	mapLoop := map[string]any{}
	mapLoop["a"] = mapLoop
	sliceLoop := []any{nil}
	sliceLoop[0] = sliceLoop
	for _, v := range []any{
		math.NaN(), math.Inf(1), math.Inf(-1), make(chan int), func() {}, loop, mapLoop, sliceLoop,
		[]any{1, math.NaN()},
		map[string]any{"a": make(chan int)},
		json.RawMessage(`{`),
	} {
		_, want := encode(v)
		got, err := rawjson.AppendAny([]byte("x"), v)
		if err == nil || string(got) != "x" {
			t.Errorf("AppendAny = %s, %v, want x and an error", got, err)
			continue
		}
		// Which value of a cycle is met first depends on the depth at which
		// encoding/json takes over.
		if want.Error() != err.Error() && !strings.Contains(err.Error(), "cycle") {
			t.Errorf("AppendAny: %v, want %v", err, want)
		}
	}
}
