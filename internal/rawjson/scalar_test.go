package rawjson_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// bare reports whether b is a valid value without white space around it.
func bare(b []byte) bool {
	return json.Valid(b) && len(bytes.Trim(b, " \t\r\n")) == len(b)
}

func TestScalarsAgree(t *testing.T) {
	t.Parallel()
	for _, s := range nasty() {
		b := []byte(s)
		checkInt(t, b)
		var flag *bool
		wantBool := bare(b) && json.Unmarshal(b, &flag) == nil && flag != nil
		if v, ok := rawjson.Bool(b); ok != wantBool || ok && v != *flag {
			t.Errorf("Bool(%.40q) = %v, %v", b, v, ok)
		}
		if got := rawjson.IsNull(b); got != (s == "null") {
			t.Errorf("IsNull(%.40q) = %v", b, got)
		}
	}
}

func checkInt(t *testing.T, b []byte) {
	t.Helper()
	var want *int64
	wantOK := bare(b) && json.Unmarshal(b, &want) == nil && want != nil
	if n, ok := rawjson.Int(b); ok != wantOK || ok && n != *want || !ok && n != 0 {
		t.Errorf("Int(%.40q) = %d, %v", b, n, ok)
	}
}

func TestKind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want byte
	}{
		{`{}`, 'o'},
		{`[]`, 'a'},
		{`""`, 's'},
		{`0`, 'n'},
		{`9`, 'n'},
		{`-1`, 'n'},
		{`true`, 'b'},
		{`false`, 'b'},
		{`null`, '0'},
		{``, 0},
		{` 1`, 0},
		{`x`, 0},
		{`}`, 0},
	} {
		if got := rawjson.Kind([]byte(c.text)); got != c.want {
			t.Errorf("Kind(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

// TestAllocations: reading must not allocate unless there is text to decode.
func TestAllocations(t *testing.T) {
	line := []byte(`{"type":"message","id":"m1","parent_id":null,"timestamp":"2026-01-01T00:00:00.000Z","n":[1,"\u00e9",{"é":true}]}`)
	other := []byte(`{ "id":"m1","parent_id":null,"n":[1,"\u00e9",{"a":true}]}`)
	list := []byte(`[1,[2]]`)
	scratch := make([]byte, 0, 256)
	for name, run := range map[string]func(){
		"Skip":            func() { rawjson.Skip(line, 0) },
		"Valid":           func() { rawjson.Valid(line) },
		"Object":          func() { _ = rawjson.Object(line, func(_, _ []byte) error { return nil }) },
		"Array":           func() { _ = rawjson.Array(list, func([]byte) error { return nil }) },
		"ScanHead":        func() { rawjson.ScanHead(line) },
		"ScanHead walked": func() { rawjson.ScanHead(other) },
		"LenientHead":     func() { rawjson.LenientHead(line[:60]) },
		"StringBytes":     func() { rawjson.StringBytes([]byte(`"a\nb"`), scratch) },
		"Int":             func() { rawjson.Int([]byte("-123")) },
		"AppendString":    func() { rawjson.AppendString(scratch, "a\nb\xffé\u2028") },
		"AppendInt":       func() { rawjson.AppendInt(scratch, -123) },
	} {
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
