package code_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/render/code"
)

func parts(language, text string) (kinds []code.Kind, texts []string) {
	for kind, part := range code.Parts(language, text) {
		kinds, texts = append(kinds, kind), append(texts, part)
	}
	return kinds, texts
}

func TestPartsAreOfTheirKind(t *testing.T) {
	wantKinds := []code.Kind{code.Comment, code.Plain, code.Keyword, code.Plain, code.String, code.Plain, code.Number}
	kinds, texts := parts("go", "// x\nreturn \"s\" + 1")
	if diff := cmp.Diff(wantKinds, kinds); diff != "" {
		t.Errorf("%q: %s", texts, diff)
	}
}

// Whatever the grammar does, a reader sees the text that was written.
func TestPartsAreTheText(t *testing.T) {
	for _, text := range []string{
		"", "\n", "x", "a\r\nb\rc", "no end of line", "\"open", "/* open", "`open", "\xff\xfe", "<script>a</script><style>b</style>",
		"FROM x\nRUN [\"a\"]\nRUN make", strings.Repeat("func x() {}\n", 100), strings.Repeat("x", 20_000), strings.Repeat("((((", 100),
	} {
		for _, language := range []string{"go", "html", "bash", "docker", "python", "json", "js", "make", "vue", "php", "no such", "", "*", "c++", "c#"} {
			_, texts := parts(language, text)
			if got := strings.Join(texts, ""); got != text {
				t.Errorf("%s: %.60q became %.60q", language, text, got)
			}
		}
	}
}

func TestLanguagesAreKnownByWhatPeopleCallThem(t *testing.T) {
	for _, name := range strings.Fields("go golang js javascript ts tsx jsx typescript py python rb rs rust sh bash zsh shell c cpp c++ cs c# java kotlin swift json yaml yml toml html css scss sql diff dockerfile Dockerfile make makefile xml php lua") {
		if !code.Known(name) {
			t.Errorf("%s is not known", name)
		}
	}
	for _, name := range []string{"", "output", "*", "[", strings.Repeat("x", 1000)} {
		if code.Known(name) {
			t.Errorf("%.20q is known", name)
		}
	}
}

func BenchmarkParts(b *testing.B) {
	text := strings.Repeat("func hello(name string) error {\n\treturn fmt.Errorf(\"hello %s: %w\", name, err) // really\n}\n", 10)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for range code.Parts("go", text) {
		}
	}
}
