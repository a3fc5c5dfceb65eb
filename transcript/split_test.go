package transcript

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// splitOf returns the objects and the pieces of the first line of a text, each as
// the bytes of its Span.
func splitOf(t *testing.T, text string) (objects, pieces []string) {
	t.Helper()
	for line, err := range FileOf("x", []byte(text)).Lines(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		whole, rest := line.Split()
		for _, o := range whole {
			if !json.Valid(o.Data) {
				t.Errorf("the object %q is not JSON", o.Data)
			}
			objects = append(objects, text[o.Pos:o.Pos+o.Len])
		}
		for _, p := range rest {
			pieces = append(pieces, text[p.Pos:p.Pos+p.Len])
		}
		break
	}
	return objects, pieces
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, objects, pieces string }{
		"two":                            {`{"a":1}{"b":{"c":2}}`, `{"a":1}|{"b":{"c":2}}`, ``},
		"with space and the mark":        {"\ufeff{\"a\":1} {\"b\":2}\r\n", "\ufeff{\"a\":1}| {\"b\":2}\r\n", ``},
		"with zeros":                     {"\x00\x00{\"a\":1}", "\x00\x00{\"a\":1}", ``},
		"torn in a string":               {`{"a":"hel{"b":1}`, `{"b":1}`, `{"a":"hel`},
		"torn in a key":                  {`{"a":1,"bc{"b":1}`, `{"b":1}`, `{"a":1,"bc`},
		"torn in an escape":              {`{"a":"x\{"b":1}`, `{"b":1}`, `{"a":"x\`},
		"torn after a value":             {`{"a":{"c":1}{"b":1}`, `{"b":1}`, `{"a":{"c":1}`},
		"torn after a comma":             {`{"a":1,{"b":1}`, `{"b":1}`, `{"a":1,`},
		"torn and zeros":                 {"{\"a\":\"x\x00\x00{\"b\":1}", `{"b":1}`, "{\"a\":\"x\x00\x00"},
		"torn between two":               {`{"a":1}{"x":"y{"b":1}{"c":2}`, `{"a":1}|{"b":1}|{"c":2}`, `{"x":"y`},
		"torn at the end":                {`{"a":1}{"x":"y`, `{"a":1}`, `{"x":"y`},
		"inner objects are not taken":    {`{"a":{"b":1},"c":{"d":2}`, ``, `{"a":{"b":1},"c":{"d":2}`},
		"torn where a value may stand":   {`{"a":{"b":1}`, ``, `{"a":{"b":1}`},
		"a quote that was not escaped":   {`{"a":"say {"b":1}"}`, ``, `{"a":"say {"b":1}"}`},
		"what comes after is not whole":  {`{"a":"x{"b":1} and more`, ``, `{"a":"x{"b":1} and more`},
		"the end of an object":           {`b":1},"c":{"d":2}`, ``, `b":1},"c":{"d":2}`},
		"something else after an object": {`{"a":1}]`, `{"a":1}`, `]`},
		"no JSON":                        {`hello`, ``, `hello`},
	} {
		t.Run(name, func(t *testing.T) {
			objects, pieces := splitOf(t, test.text)
			if diff := cmp.Diff(test.objects, strings.Join(objects, "|")); diff != "" {
				t.Error("objects", diff)
			}
			if diff := cmp.Diff(strings.ReplaceAll(test.pieces, "\x00", "0"), strings.ReplaceAll(strings.Join(pieces, "|"), "\x00", "0")); diff != "" {
				t.Error("pieces", diff)
			}
		})
	}
}

// TestSplitOfWhatMayGrow: only the end of a file that has no line end is torn.
func TestSplitOfWhatMayGrow(t *testing.T) {
	t.Parallel()
	_, pieces := Line{Data: []byte(`{"a":"x{"b":1}{"c`), Torn: true}.Split()
	if len(pieces) != 1 || !pieces[0].Torn {
		t.Errorf("the pieces are %+v", pieces)
	}
	_, pieces = Line{Data: []byte(`{"a":"x{"b":1}`), Torn: true}.Split()
	if len(pieces) != 1 || pieces[0].Torn {
		t.Errorf("the pieces are %+v", pieces)
	}
	if objects, pieces := (Line{Data: []byte(`{"a":1}{"b`), Cut: true}).Split(); len(objects) != 0 || len(pieces) != 1 {
		t.Errorf("a line that was cut is split into %d objects and %d pieces", len(objects), len(pieces))
	}
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{`{"a":1}{"b":2}`, `{"a":"x{"b":1}`, "\x00{} {\"", `{"a":{"b":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, pieces := Line{Data: data, Span: Span{Pos: 7, Len: int64(len(data))}}.Split()
		covered := int64(0)
		for _, o := range objects {
			if !json.Valid(o.Data) {
				t.Errorf("the object %q is not JSON", o.Data)
			}
			covered += o.Len
		}
		for _, p := range pieces {
			covered += p.Len
		}
		if len(objects)+len(pieces) > 0 && covered != int64(len(data)) {
			t.Errorf("of %d bytes %d are covered", len(data), covered)
		}
	})
}
