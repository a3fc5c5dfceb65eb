package index_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/index"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text   string
		parts  string
		wholes string
	}{
		{"Hello, world!", "hello world", ""},
		{"camelCase", "camel case", "camelcase"},
		{"HTTPServer getURLFor", "http server get url for", "httpserver geturlfor"},
		{"snake_case_name", "snake case name", "snakecasename"},
		{"SCREAMING_SNAKE", "screaming snake", "screamingsnake"},
		{"kebab-case", "kebab case", "kebabcase"},
		{"my_camelCase_thing", "my camel case thing", "camelcase mycamelcasething"},
		{"__init__", "init", ""},
		{"--flag=value", "flag value", "__flag"},
		{"git --no-verify", "git no verify", "noverify __noverify"},
		{"a--b ---c -- d", "a b c d", ""},
		{"a - b", "a b", ""},
		{"src/store/file.go", "src store file go", ""},
		{"os.ReadFile", "os read file", "readfile"},
		{`C:\Users\Ann`, "c users ann", ""},
		{"utf8 sha256 v2.10.3", "utf8 sha256 v2 10 3", ""},
		{"Base64Encode", "base64 encode", "base64encode"},
		{"iPhone OpenAI", "i phone open ai", "iphone openai"},
		{"don't", "don t", ""},
		{"user@example.com", "user example com", ""},
		{"Crème BRÛLÉE", "creme brulee", ""},
		{"cre\u0300me", "creme", ""}, // decomposed
		{"Straße Łódź Ærø", "strasse lodz aero", ""},
		{"ПРИВЕТ, Ёлка", "привет елка", ""},
		{"ΑΘΉΝΑ", "αθηνα", ""},
		{"ﬁnd ＡＢＣ①", "find abc1", ""},
		{"中文字", "中文 文字 字", ""},
		{"用Go写代码", "用 go 写代 代码 码", ""},
		{"ひらがなカタカナー", "ひら らが がな なカ カタ タカ カナ ナー ー", ""},
		{"한국어 검색", "한국 국어 어 검색 색", ""},
		{"한국어", "한국 국어 어", ""}, // decomposed
		{"ภาษา", "ภา าษ ษา า", ""},
		{"हिन्दी", "हिन्दी", ""},
		{"ship it 🚀🎉", "ship it 🚀 🎉", ""},
		{"👩\u200d💻 ❤\ufe0f", "👩 💻 ❤", ""},
		{"a\x00b\xffc", "a b c", ""},
		{"", "", ""},
		{" \n\t…—", "", ""},
		{strings.Repeat("aB", 40), strings.Repeat("ab", 32), ""}, // base64 and the like
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			parts, wholes := index.Tokens(tt.text)
			if diff := cmp.Diff(tt.parts, strings.Join(parts, " ")); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.wholes, strings.Join(wholes, " ")); diff != "" {
				t.Errorf("wholes (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzTokens(f *testing.F) {
	for _, text := range []string{"camelCase snake_case", "中文 héllo", "🚀\u200d", "\xff\xfe", "½ǅ\u0345"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parts, wholes := index.Tokens(text)
		for _, token := range append(parts, wholes...) {
			// What SQLite would take for two tokens, or for none, could never be found.
			if token == "" || strings.ContainsFunc(token, func(r rune) bool {
				return r < 0x80 && (r < '0' || r > '9') && (r < 'a' || r > 'z')
			}) {
				t.Errorf("token %q of %q", token, text)
			}
			again, _ := index.Tokens(token)
			if len(again) == 0 {
				t.Errorf("token %q of %q is itself not searchable", token, text)
			}
		}
	})
}
