package rawjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// A member is one call of an Object callback.
type member struct{ key, value string }

func members(b []byte) ([]member, error) {
	var list []member
	err := rawjson.Object(b, func(key, value []byte) error {
		list = append(list, member{string(key), string(value)})
		return nil
	})
	return list, err
}

func elements(b []byte) ([]string, error) {
	var list []string
	err := rawjson.Array(b, func(value []byte) error {
		list = append(list, string(value))
		return nil
	})
	return list, err
}

// checkWalk compares what Object and Array hand out with what a json.Decoder
// reads, and that they refuse everything else with an error that says where.
func checkWalk(t *testing.T, b []byte) {
	t.Helper()
	first := byte(0)
	if text := bytes.TrimLeft(b, " \t\r\n"); json.Valid(b) {
		first = text[0]
	}
	gotMembers, err := members(b)
	checkRefusal(t, b, err, first == '{')
	if want := decodeMembers(t, b); first == '{' && !slices.Equal(gotMembers, want) {
		t.Fatalf("Object(%.80q) = %q, want %q", b, gotMembers, want)
	}
	gotElements, err := elements(b)
	checkRefusal(t, b, err, first == '[')
	if want := decodeElements(t, b); first == '[' && !slices.Equal(gotElements, want) {
		t.Fatalf("Array(%.80q) = %q, want %q", b, gotElements, want)
	}
}

func checkRefusal(t *testing.T, b []byte, err error, wanted bool) {
	t.Helper()
	if wanted != (err == nil) {
		t.Fatalf("walking %.80q: error %v, want accepted %v", b, err, wanted)
	}
	if err == nil {
		return
	}
	var syntax *rawjson.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(b) || syntax.Reason == "" {
		t.Fatalf("walking %.80q: error %#v, want where and why", b, err)
	}
}

// decodeMembers returns nil when b is not a valid object.
func decodeMembers(t *testing.T, b []byte) (list []member) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b))
	if tok, _ := dec.Token(); tok != json.Delim('{') || !json.Valid(b) {
		return nil
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatalf("%.80q: %v", b, err)
		}
		list = append(list, member{key.(string), decodeRaw(t, dec)})
	}
	return list
}

// decodeElements returns nil when b is not a valid array.
func decodeElements(t *testing.T, b []byte) (list []string) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b))
	if tok, _ := dec.Token(); tok != json.Delim('[') || !json.Valid(b) {
		return nil
	}
	for dec.More() {
		list = append(list, decodeRaw(t, dec))
	}
	return list
}

func decodeRaw(t *testing.T, dec *json.Decoder) string {
	t.Helper()
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestWalkAgrees(t *testing.T) {
	t.Parallel()
	for _, s := range append(nasty(), heads()...) {
		checkWalk(t, []byte(s))
		checkWalk(t, []byte(" ["+s+" , "+s+"]\n"))
		checkWalk(t, []byte(`{"k":`+s+` , "l" :`+s+`}`))
	}
}

func TestObject(t *testing.T) {
	t.Parallel()
	got, err := members([]byte(" {\"a\" : [1, 2] ,\"\":{},\"a\":\"x\\n\",\"\\u00e9\":null,\"é\":0,\"\xff\":true} "))
	want := []member{{"a", "[1, 2]"}, {"", "{}"}, {"a", `"x\n"`}, {"é", "null"}, {"é", "0"}, {"\ufffd", "true"}}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

func TestObjectErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{``, "invalid JSON at byte 0: unexpected end"},
		{`  `, "invalid JSON at byte 2: unexpected end"},
		{` [1]`, "invalid JSON at byte 1: not an object"},
		{`tru`, "invalid JSON at byte 0: not an object"},
		{` x`, `invalid JSON at byte 1: unexpected "x"`},
		{"\xff", `invalid JSON at byte 0: unexpected "\xff"`},
		{`{`, "invalid JSON at byte 1: unexpected end"},
		{`{]`, `invalid JSON at byte 1: unexpected "]"`},
		{`{{}`, `invalid JSON at byte 1: unexpected "{"`},
		{`{"a`, "invalid JSON at byte 3: unexpected end"},
		{"{\"a\nb\":1}", `invalid JSON at byte 3: unexpected "\n"`},
		{`{"\x":1}`, `invalid JSON at byte 3: unexpected "x"`},
		{`{"\u00zz":1}`, `invalid JSON at byte 6: unexpected "z"`},
		{`{"a" 1}`, `invalid JSON at byte 5: unexpected "1"`},
		{`{"a"`, "invalid JSON at byte 4: unexpected end"},
		{`{"a":}`, `invalid JSON at byte 5: unexpected "}"`},
		{`{"a":`, "invalid JSON at byte 5: unexpected end"},
		{`{"a":tru}`, `invalid JSON at byte 8: unexpected "}"`},
		{`{"a":tr`, "invalid JSON at byte 7: unexpected end"},
		{`{"a":-}`, `invalid JSON at byte 6: unexpected "}"`},
		{`{"a":01}`, `invalid JSON at byte 6: unexpected "1"`},
		{`{"a":1.}`, `invalid JSON at byte 7: unexpected "}"`},
		{`{"a":1e+}`, `invalid JSON at byte 8: unexpected "}"`},
		{`{"a":[1,]}`, `invalid JSON at byte 8: unexpected "]"`},
		{`{"a":[1}`, `invalid JSON at byte 7: unexpected "}"`},
		{`{"a":{"b"}}`, `invalid JSON at byte 9: unexpected "}"`},
		{`{"a":{1`, `invalid JSON at byte 6: unexpected "1"`},
		{`{"a":1,}`, `invalid JSON at byte 7: unexpected "}"`},
		{`{"a":1`, "invalid JSON at byte 6: unexpected end"},
		{`{"a":1]`, `invalid JSON at byte 6: unexpected "]"`},
		{`{} {}`, `invalid JSON at byte 3: unexpected "{"`},
		{"{\"a\":1}\x00", `invalid JSON at byte 7: unexpected "\x00"`},
		{
			`{"[{":[],"a":` + strings.Repeat("[", 10000),
			"invalid JSON at byte 10012: nested deeper than 10000 levels",
		},
	} {
		_, err := members([]byte(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("Object(%.20q): %v, want %s", c.text, err, c.want)
		}
	}
}

func TestArrayErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{`{"a":1}`, "invalid JSON at byte 0: not an array"},
		{`null`, "invalid JSON at byte 0: not an array"},
		{`[1,2`, "invalid JSON at byte 4: unexpected end"},
		{`[1,2]]`, `invalid JSON at byte 5: unexpected "]"`},
		{`[1 2]`, `invalid JSON at byte 3: unexpected "2"`},
		{strings.Repeat("[", 10001), "invalid JSON at byte 10000: nested deeper than 10000 levels"},
	} {
		_, err := elements([]byte(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("Array(%.20q): %v, want %s", c.text, err, c.want)
		}
	}
}

// TestWalkBeforeDamage: what stands before the damage is handed out.
func TestWalkBeforeDamage(t *testing.T) {
	t.Parallel()
	got, err := members([]byte(`{"a":1,"b":2,"c":x}`))
	if want := []member{{"a", "1"}, {"b", "2"}}; err == nil || !slices.Equal(got, want) {
		t.Errorf("Object: %q, %v, want %q and an error", got, err, want)
	}
	elems, err := elements([]byte(`[1,2,`))
	if want := []string{"1", "2"}; err == nil || !slices.Equal(elems, want) {
		t.Errorf("Array: %q, %v, want %q and an error", elems, err, want)
	}
}

func TestWalkStops(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	calls := 0
	err := rawjson.Object([]byte(`{"a":1,"b":2,x`), func(_, _ []byte) error { calls++; return stop })
	if err != stop || calls != 1 {
		t.Errorf("Object: %v after %d calls, want the callback's own error after 1", err, calls)
	}
	err = rawjson.Array([]byte(`[1,2,x`), func([]byte) error { calls++; return stop })
	if err != stop || calls != 2 {
		t.Errorf("Array: %v after %d calls, want the callback's own error after 1", err, calls-1)
	}
}

// TestWalkValueIsCapped: appending to a value must not write into the text.
func TestWalkValueIsCapped(t *testing.T) {
	t.Parallel()
	text := []byte(`{"a":[1],"b":2}`)
	err := rawjson.Object(text, func(key, value []byte) error {
		_, _ = append(key, '!'), append(value, '!')
		return rawjson.Array([]byte(`[1,2]`), func(elem []byte) error { _ = append(elem, '!'); return nil })
	})
	if err != nil || string(text) != `{"a":[1],"b":2}` {
		t.Errorf("text is now %s, %v", text, err)
	}
}
