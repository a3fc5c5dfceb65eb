package rawjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// show makes heads comparable, and nil distinct from empty. The role is there only
// if it costs nothing: see TestHeadRole.
func show(h rawjson.Head) string {
	h.Whole, h.Role, h.Rest = false, nil, nil
	return fmt.Sprintf("%#v", h)
}

// decodeHead is the oracle: it reads members with a json.Decoder, up to limit of
// them or the first damage, and takes the first occurrence of each key.
func decodeHead(line []byte, limit int) (h rawjson.Head) {
	dec := json.NewDecoder(bytes.NewReader(line))
	if tok, _ := dec.Token(); tok != json.Delim('{') {
		return h
	}
	seen := map[any]bool{}
	for range limit {
		key, err := dec.Token()
		if _, ok := key.(string); !ok || err != nil {
			return h
		}
		var value any
		if err := dec.Decode(&value); err != nil {
			if _, ok := err.(*json.UnmarshalTypeError); !ok { // a number too large
				return h
			}
		}
		if !seen[key] {
			setMember(&h, key.(string), value)
		}
		seen[key] = true
	}
	return h
}

func setMember(h *rawjson.Head, key string, value any) {
	s, isString := value.(string)
	var text []byte
	if isString {
		text = append([]byte{}, s...)
	}
	switch key {
	case "type":
		h.Type = text
	case "id":
		h.ID = text
	case "timestamp":
		h.Timestamp = text
	case "parent_id":
		h.Parent, h.HasParent = text, isString || value == nil
	}
}

// checkHead compares ScanHead with the oracle.
func checkHead(t *testing.T, line []byte) {
	t.Helper()
	trimmed := bytes.Trim(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")), " \t\r\n")
	valid := json.Valid(trimmed) && trimmed[0] == '{'
	h, ok := rawjson.ScanHead(line)
	switch {
	case !ok && valid:
		t.Fatalf("ScanHead(%q) refuses a valid object", line)
	case !ok && show(h) != show(rawjson.Head{}):
		t.Fatalf("ScanHead(%q) is not ok, but tells %s", line, show(h))
	case ok && h.Whole && !valid:
		t.Fatalf("ScanHead(%q) takes damage for a whole line", line)
	case ok && !valid && show(h) != show(decodeHead(trimmed, 4)):
		t.Fatalf("ScanHead(%q) = %s, want %s", line, show(h), show(decodeHead(trimmed, 4)))
	case valid && show(h) != show(decodeHead(trimmed, len(line))):
		t.Fatalf("ScanHead(%q) = %s, want %s", line, show(h), show(decodeHead(trimmed, len(line))))
	}
	checkLenient(t, line, h, ok, valid)
}

// checkLenient compares LenientHead with what ScanHead said of the same line.
func checkLenient(t *testing.T, line []byte, scanned rawjson.Head, ok, valid bool) {
	t.Helper()
	h, found := rawjson.LenientHead(line)
	if found != (h.ID != nil) || h.Whole != valid {
		t.Fatalf("LenientHead(%q) = %s, %v, whole %v", line, show(h), found, h.Whole)
	}
	if ok && show(h) != show(scanned) {
		t.Fatalf("LenientHead(%q) = %s, but ScanHead says %s", line, show(h), show(scanned))
	}
}

func TestHeadAgrees(t *testing.T) {
	t.Parallel()
	for _, s := range append(heads(), nasty()...) {
		checkHead(t, []byte(s))
	}
	for _, s := range heads() {
		for cut := range len(s) {
			checkHead(t, []byte(s[:cut]))
			checkHead(t, []byte(s[:cut]+"}"))
			checkHead(t, []byte(s[:cut]+"\x00\x00"))
		}
	}
}

// TestHeadMutations changes each byte of each head in turn.
func TestHeadMutations(t *testing.T) {
	t.Parallel()
	const swaps = "\"\\}, n\x00\x80"
	for _, s := range heads() {
		b := []byte(s)
		for i, old := range b {
			for _, c := range []byte(swaps) {
				b[i] = c
				checkHead(t, b)
			}
			b[i] = old
		}
	}
}

// TestHeadRole: a head has the role only where our writer puts it, and then it is
// the message's.
func TestHeadRole(t *testing.T) {
	t.Parallel()
	const head = `"id":"a","parent_id":null,"timestamp":"2026-01-01T00:00:00.000Z"`
	for line, want := range map[string]string{
		`{"type":"message",` + head + `,"message":{"role":"user","content":[]}}`:      "user",
		`{"type":"message",` + head + `,"message":{"content":[],"role":"user"}}`:      "",
		`{"type":"message",` + head + `,"message": {"role":"user"}}`:                  "",
		`{"type":"message",` + head + `,"x":1,"message":{"role":"user"}}`:             "",
		`{"type":"message",` + head + `,"message":{"role":"us\u0065r","content":[]}}`: "",
		`{"type":"message",` + head + `,"message":{"role":5}}`:                        "",
		`{"type":"label",` + head + `,"message":{"role":"user"}}`:                     "",
		`{"message":{"role":"user"},"type":"message",` + head + `}`:                   "",
	} {
		h, ok := rawjson.ScanHead([]byte(line))
		if !ok || string(h.Role) != want {
			t.Errorf("ScanHead(%s) tells the role %q, %v; want %q", line, h.Role, ok, want)
		}
		if (h.Rest != nil) != (want != "") || want != "" && string(h.Rest) != `,"content":[]}}` {
			t.Errorf("ScanHead(%s): after the role comes %q", line, h.Rest)
		}
	}
}

func TestScanHead(t *testing.T) {
	t.Parallel()
	absent := []byte(nil)
	for _, c := range []struct {
		name, line string
		want       rawjson.Head
	}{
		{
			"as written", `{"type":"message","id":"b","parent_id":"a","timestamp":"t","x":{}}`,
			rawjson.Head{Type: []byte("message"), ID: []byte("b"), Parent: []byte("a"), HasParent: true, Timestamp: []byte("t")},
		},
		{
			"nothing after the head", `{"type":"message","id":"b","parent_id":"a","timestamp":"t"}`,
			rawjson.Head{Type: []byte("message"), ID: []byte("b"), Parent: []byte("a"), HasParent: true, Timestamp: []byte("t"), Whole: true},
		},
		{
			"root", "\xef\xbb\xbf" + `{"type":"session","id":"a","parent_id":null,"timestamp":"t","x":1}` + "\r\n",
			rawjson.Head{Type: []byte("session"), ID: []byte("a"), HasParent: true, Timestamp: []byte("t")},
		},
		{
			"the rest is not looked at", `{"type":"a","id":"b","parent_id":null,"timestamp":"t","x":tru}`,
			rawjson.Head{Type: []byte("a"), ID: []byte("b"), HasParent: true, Timestamp: []byte("t")},
		},
		{
			"other order", `{"id":"b","x":{"id":"no"},"type":"a"}`,
			rawjson.Head{Type: []byte("a"), ID: []byte("b"), Whole: true},
		},
		{
			"not strings", `{"type":1,"id":{},"parent_id":[],"timestamp":null}`,
			rawjson.Head{Type: absent, ID: absent, Parent: absent, Timestamp: absent, Whole: true},
		},
		{
			"first occurrence", `{"id":"1","id":"2","parent_id":null,"parent_id":"p"}`,
			rawjson.Head{ID: []byte("1"), HasParent: true, Whole: true},
		},
		{
			"first occurrence is not a string", `{"id":1,"id":"2","parent_id":0,"parent_id":"p"}`,
			rawjson.Head{Whole: true},
		},
		{
			"escapes", `{"type":"\u0061\n","\u0069d":"b"}`,
			rawjson.Head{Type: []byte("a\n"), ID: []byte("b"), Whole: true},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := rawjson.ScanHead([]byte(c.line))
			if !ok || show(got) != show(c.want) || got.Whole != c.want.Whole {
				t.Errorf("got %s, whole %v, ok %v, want %s, whole %v", show(got), got.Whole, ok, show(c.want), c.want.Whole)
			}
		})
	}
}

func TestScanHeadRefuses(t *testing.T) {
	t.Parallel()
	const head = `{"type":"a","id":"b","parent_id":null,"timestamp":"t"`
	for _, line := range []string{
		"", " ", "[]", "null", `"id"`, head, head + ",", head + `,"x":"cut`, head + "}\x00\x00", head + `x}`, head + `]}`,
		`{"id":"b","x":tru}`, "\xef\xbb\xbf",
	} {
		if h, ok := rawjson.ScanHead([]byte(line)); ok {
			t.Errorf("ScanHead(%q) = %s", line, show(h))
		}
	}
}

// TestLenientHeadCuts: whatever is read from the beginning of a line is what the
// whole line says, however it was cut.
func TestLenientHeadCuts(t *testing.T) {
	t.Parallel()
	for _, line := range heads() {
		whole, _ := rawjson.LenientHead([]byte(line))
		for cut := range len(line) {
			for _, tail := range []string{"", "\x00\x00\x00\x00", "\n", "}"} {
				h, ok := rawjson.LenientHead([]byte(line[:cut] + tail))
				if ok && !bytes.Equal(h.ID, whole.ID) || h.HasParent && !whole.HasParent {
					t.Fatalf("LenientHead(%q) = %s, the line has %s", line[:cut]+tail, show(h), show(whole))
				}
			}
		}
	}
}

func TestLenientHead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		ok   bool
		want rawjson.Head
	}{
		{`{"type":"a","id":"b","parent_id":"c","timest`, true, rawjson.Head{Type: []byte("a"), ID: []byte("b"), Parent: []byte("c"), HasParent: true}},
		{`{"type":"a","id":"b"`, true, rawjson.Head{Type: []byte("a"), ID: []byte("b")}},
		{`{"type":"a","id":"b`, false, rawjson.Head{Type: []byte("a")}},
		{`{"timestamp":"t","id":"b","text":"` + "\x00\x00\x00", true, rawjson.Head{Timestamp: []byte("t"), ID: []byte("b")}},
		{`{"id":"b"}` + "\x00\x00\x00", true, rawjson.Head{ID: []byte("b")}},
		{`{"text":"cut`, false, rawjson.Head{}},
		{"\x00\x00", false, rawjson.Head{}},
		{"", false, rawjson.Head{}},
	} {
		got, ok := rawjson.LenientHead([]byte(c.line))
		if ok != c.ok || show(got) != show(c.want) || got.Whole {
			t.Errorf("LenientHead(%q) = %s, %v, want %s", c.line, show(got), ok, show(c.want))
		}
	}
}

// TestHeadPointsIntoLine: a head must not cost a copy.
func TestHeadPointsIntoLine(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"type":"a","id":"b","parent_id":"c","timestamp":"d","x":1}`,
		`{"timestamp":"d","parent_id":"c","id":"b","type":"a"}`,
	} {
		line := []byte(text)
		h, ok := rawjson.ScanHead(line)
		for i := range line {
			line[i] = '#'
		}
		if all := string(h.Type) + string(h.ID) + string(h.Parent) + string(h.Timestamp); !ok || all != "####" {
			t.Errorf("head of %s is %q after the line was overwritten", text, all)
		}
	}
}
