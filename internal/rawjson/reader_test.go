package rawjson

import (
	"slices"
	"strings"
	"testing"
)

// keysOf reads an object whose values do not matter.
func keysOf(text string) (keys []string, err error) {
	var r Reader
	r.Reset([]byte(text))
	for more := r.Open('{'); more; more = r.More('}') {
		keys = append(keys, string(r.Key()))
		r.Raw()
	}
	return keys, r.End()
}

func TestReaderReadsKeysInAnyForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{"abc":1,"b_c":{"d":2},"":[],"e":"f"}`:            {"abc", "b_c", "", "e"},
		"{\"abc\" :1,\"def\": 1,\n\"ghi\"\t:\r1}":          {"abc", "def", "ghi"},
		`{"aBc":1,"a1":1,"a-b":1,"é":1,"a\u0062":1}`:       {"aBc", "a1", "a-b", "é", "ab"},
		`{"` + strings.Repeat("long_", 100) + `key":null}`: {strings.Repeat("long_", 100) + "key"},
	} {
		if got, err := keysOf(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`{"abc`, `{"abc"`, `{"abc":`, `{"abc": `, `{"abc"1}`, `{abc:1}`, `{"abc":}`, "{\"ab\nc\":1}", `{"abc":1,`} {
		if keys, err := keysOf(text); err == nil {
			t.Errorf("%s: %q and no error", text, keys)
		}
	}
}

func TestReaderReadsFramedStrings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[{"a":{"b":"x"}},1]`:      "x",
		`[{"a":{"b":"\u0041\n"}}]`: "A\n",
		`[{"a":{"b":"\xff"}}]`:     "",
		`[{"a":{"b":1}}]`:          "",
		`[{"a":{"b":"x"} }]`:       "",
		`[{"a":{"b":"x","c":1}}]`:  "",
		`[{"a": {"b":"x"}}]`:       "",
		`[{"a":{"b":"x`:            "",
		`[{"a":`:                   "",
	} {
		var r Reader
		r.Reset([]byte(text))
		r.Open('[')
		before := r.Mark()
		body, ok := r.Framed(`{"a":{"b":`, `}}`, 2)
		if string(body) != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", text, body, ok, want)
		}
		if !ok && r.Mark() != before {
			t.Errorf("%s: it went from %d to %d", text, before, r.Mark())
		}
		r.Rewind(before)
		for more := true; more; more = r.More(']') {
			r.Raw()
		}
		if err := r.End(); (err == nil) != Valid([]byte(text)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What is framed counts as nested as deep as it would be if it were read step by
// step.
func TestReaderCountsFramedLevels(t *testing.T) {
	t.Parallel()
	for _, around := range []int{maxDepth - 2, maxDepth - 1} {
		var r Reader
		r.Reset([]byte(strings.Repeat("[", around) + `{"a":{"b":"x"}}` + strings.Repeat("]", around)))
		for range around {
			r.Open('[')
		}
		if _, ok := r.Framed(`{"a":{"b":`, `}}`, 2); ok != (around+2 <= maxDepth) {
			t.Errorf("%d levels around: %v", around, ok)
		}
	}
}
