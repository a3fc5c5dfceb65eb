package render_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/render/code"
)

func parts(language, text string) (kinds []code.Kind, texts []string) {
	for kind, part := range code.Parts(language, text) {
		kinds, texts = append(kinds, kind), append(texts, part)
	}
	return kinds, texts
}

// marked writes a kind before each part that has one: {k:return}.
func marked(language, text string) string {
	names := [...]string{
		code.Keyword: "k", code.Type: "t", code.Function: "f", code.String: "s", code.Number: "n", code.Comment: "c",
		code.Name: "a", code.Heading: "h", code.Inserted: "i", code.Deleted: "d",
	}
	var b strings.Builder
	for kind, part := range code.Parts(language, text) {
		if kind == code.Plain {
			b.WriteString(part)
		} else {
			b.WriteString("{" + names[kind] + ":" + part + "}")
		}
	}
	return b.String()
}

func TestCodePartsAreOfTheirKind(t *testing.T) {
	for _, tt := range []struct{ language, text, want string }{
		{"go", "// x\nreturn \"s\" + 1", "{c:// x}\n{k:return} {s:\"s\"} + {n:1}"},
		{"go", "s := `a\\` + f(x) // 'y", "s := {s:`a\\`} + {f:f}(x) {c:// 'y}"},
		{"js", "`a\\`b` /* c\nd */ if", "{s:`a\\`b`} {c:/* c\nd */} {k:if}"},
		{"py", "@cached\ndef f(self): # don't", "{a:@cached}\n{k:def} {f:f}({t:self}): {c:# don't}"},
		{"py", `"""a "b" c""" 'x'`, `{s:"""a "b" c"""} {s:'x'}`},
		{"sh", "echo $# ${x#y} $HOME # it's", "{k:echo} $# ${x#y} {a:$HOME} {c:# it's}"},
		{"rs", "fn f<'a>(x: &'a str) -> char { 'x' }", "{k:fn} f<'a>(x: &'a {t:str}) -> {t:char} { {s:'x'} }"},
		{"json", `{"a": "b", "c": [1.5, true]}`, `{{a:"a"}: {s:"b"}, {a:"c"}: [{n:1.5}, {t:true}]}`},
		{"yaml", "my-key: yes # c\n- b: 'x'", "{a:my-key}: {t:yes} {c:# c}\n- {a:b}: {s:'x'}"},
		{"toml", "[a.b]\nc.d = 1", "{h:[a.b]}\n{a:c.d} = {n:1}"},
		{"html", `<a href="x">"y"</a><!-- z -->`, `{a:<a} {a:href}={s:"x"}>"y"{a:</a}>{c:<!-- z -->}`},
		{"SQL", "SELECT 'it' FROM t -- x", "{k:SELECT} {s:'it'} {k:FROM} t {c:-- x}"},
		{"diff", "@@ -1 +1 @@\n-a\n+b\n c", "{h:@@ -1 +1 @@}\n{d:-a}\n{i:+b}\n c"},
		{"go", `"open` + "\nreturn", `"open` + "\n{k:return}"},
	} {
		if got := marked(tt.language, tt.text); got != tt.want {
			t.Errorf("%s %q:\n got %s\nwant %s", tt.language, tt.text, got, tt.want)
		}
	}
}

// Whatever the text and its language, a reader sees the text that was written, and
// neighbours are of different kinds.
func FuzzCodeParts(f *testing.F) {
	f.Add("go", "return `a")
	f.Add("yaml", "a: b")
	f.Fuzz(func(t *testing.T, language, text string) {
		kinds, texts := parts(language, text)
		if got := strings.Join(texts, ""); got != text {
			t.Errorf("%q became %q", text, got)
		}
		for i := 1; i < len(kinds); i++ {
			if kinds[i] == kinds[i-1] || texts[i] == "" {
				t.Errorf("%q and %q", texts[i-1], texts[i])
			}
		}
	})
}

// Whatever the grammar does, a reader sees the text that was written.
func TestCodePartsAreTheText(t *testing.T) {
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

func TestCodeLanguagesAreKnownByWhatPeopleCallThem(t *testing.T) {
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

func BenchmarkCodeParts(b *testing.B) {
	text := strings.Repeat("func hello(name string) error {\n\treturn fmt.Errorf(\"hello %s: %w\", name, err) // really\n}\n", 10)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for range code.Parts("go", text) {
		}
	}
}
