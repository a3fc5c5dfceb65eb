package format_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

func TestShapeOf(t *testing.T) {
	tests := []struct {
		name, text string
		has, not   []string
		path, is   string
	}{
		{"object", ` {"a":{"b":[{"c":"x"}]},"d":1}`, []string{"a", "a.b", "a.b[]", "a.b[].c", "d"}, []string{"b", "a.b[].d"}, "a.b[].c", "x"},
		{"array", "\xef\xbb\xbf[{\"role\":\"user\"},7,\"s\"]", []string{"[]", "[].role"}, []string{"role"}, "[].role", "user"},
		{"lines", "{\"a\":1}\n{\"b\":\"y\"}\n", []string{"a", "b"}, nil, "b", "y"},
		{"cut off", `{"messages":[{"role":"user","content":"a long te`, []string{"messages[].role", "messages[].content"}, nil, "messages[].role", "user"},
		{"cut off in a name", `{"messages":[{"role":"user","cont`, []string{"messages[].role"}, []string{"messages[].cont"}, "messages[].role", "user"},
		{"not JSON", `{"a":1,}x`, []string{"a"}, nil, "", ""},
		{"no colon", `{"a" 1}`, nil, []string{"a"}, "", ""},
		{"no name", `{1:2}`, nil, []string{"1"}, "", ""},
		{"nothing", ``, nil, []string{""}, "", ""},
		{"deep", strings.Repeat(`{"a":`, 20) + `1` + strings.Repeat(`}`, 20) + `{"b":"z"}`, []string{"a.a.a", "b"}, []string{strings.Repeat("a.", 12) + "a"}, "b", "z"},
		{"word", `nul`, nil, []string{"nul"}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := shape.Of([]byte(tt.text))
			for _, path := range tt.has {
				if !s.Has("none", path) {
					t.Errorf("%s was not seen", path)
				}
			}
			if s.Has(tt.not...) {
				t.Errorf("one of %q was seen", tt.not)
			}
			if tt.path != "" && (!s.Begins(tt.path, tt.is[:1]) || s.Begins(tt.path, tt.is+"more")) {
				t.Errorf("%s does not begin like %s", tt.path, tt.is)
			}
			if tt.path != "" && !s.Is(tt.path, "none", tt.is) || s.Is(tt.path, "none") {
				t.Errorf("%s is not %s", tt.path, tt.is)
			}
		})
	}
}

func TestShapeLimits(t *testing.T) {
	var b strings.Builder
	for i := range 10000 {
		b.WriteString(`{"` + strings.Repeat("k", i%5000) + `":0}`)
	}
	b.WriteString(`{"last":"x"}`)
	if shape.Of([]byte(b.String())).Has("last") {
		t.Error("there is no limit to what is remembered")
	}
	if shape.Of([]byte(`{"a":"`+strings.Repeat("x", 100)+`"}`)).Is("a", strings.Repeat("x", 100)) {
		t.Error("a long text was remembered")
	}
}

func FuzzShapeOf(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":"c"}]}`))
	f.Fuzz(func(_ *testing.T, text []byte) { shape.Of(text) })
}
