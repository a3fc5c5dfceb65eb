package window_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/window/estimate"
)

func TestEstimateRead(t *testing.T) {
	tests := map[string]estimate.Features{
		"":                   {},
		"the roses":          {LowerWords: 2},
		"The HTTPServer":     {UpperWords: 2, LongLetters: 5},
		"camelCase":          {LowerWords: 1, UpperWords: 1, Switches: 1},
		"internationalizing": {LowerWords: 1, LongLetters: 5, MoreLetters: 8},
		"1234567 12":         {Digits: 4},
		"a1b":                {LowerWords: 2, Digits: 1, Switches: 2},
		"x := f(1);":         {LowerWords: 2, Marks: 3, MoreMarks: 2, Digits: 1},
		"a\n\n\tb  c ":       {LowerWords: 3, Breaks: 1, Indents: 2},
		"玫瑰":                 {Han: 2},
		"バラが":                {Kana: 3},
		"장미":                 {Hangul: 2},
		"роза":               {Cyrillic: 4},
		"ä":                  {Accented: 1},
		"ورد":                {OtherRunes: 3},
		"🌹\xff":              {Symbols: 2},
	}
	for text, want := range tests {
		if diff := cmp.Diff(want, estimate.Read(text)); diff != "" {
			t.Errorf("%q:\n%s", text, diff)
		}
	}
}

func TestEstimateFor(t *testing.T) {
	tests := map[[2]string]string{
		{"openai", "gpt-5"}: "openai",
		{"", "o3-mini"}:     "openai",
		{"azure", ""}:       "openai",
		{"anthropic", ""}:   "claude",
		{"anthropic", "claude-3-5-sonnet-20241022"}: "claude",
		{"anthropic", "claude-opus-4-6"}:            "claude",
		{"anthropic", "claude-opus-4-7-20270101"}:   "claude-4.7",
		{"openrouter", "anthropic/claude-opus-4.7"}: "claude-4.7",
		{"bedrock", "claude-sonnet-5@20280101"}:     "claude-4.7",
		{"anthropic", "claude-instant-20230101"}:    "claude",
		{"google", "gemini-2.5-pro"}:                "gemini",
		{"openrouter", "google/gemma-3"}:            "gemini",
		{"mistral", "mistral-large"}:                "unknown",
		{"", ""}:                                    "unknown",
	}
	for model, want := range tests {
		if got := estimate.For(model[0], model[1]).Name; got != want {
			t.Errorf("%v has the profile %s, want %s", model, got, want)
		}
	}
}

// Providers differ by script.
func TestEstimateProfiles(t *testing.T) {
	english, chinese := strings.Repeat("the roses in this garden ", 40), strings.Repeat("玫瑰园里的花", 40)
	count := func(provider, text string) int { return estimate.For(provider, "").Count(text) }
	if o, g := count("openai", english), count("google", english); g <= o {
		t.Errorf("English: openai %d, google %d", o, g)
	}
	if o, g := count("openai", chinese), count("google", chinese); g >= o {
		t.Errorf("Chinese: openai %d, google %d", o, g)
	}
	if n := count("openai", "x"); n != 1 {
		t.Errorf("a letter has %d tokens", n)
	}
	if n := count("openai", ""); n != 0 {
		t.Errorf("nothing has %d tokens", n)
	}
}

func FuzzEstimateCount(f *testing.F) {
	f.Add("The roses, 12 of them.\n\tx := \"玫瑰\"")
	f.Add("\xff\xfe🌹")
	p := estimate.For("", "")
	f.Fuzz(func(t *testing.T, text string) {
		n := p.Count(text)
		if n < 0 || n > 2*len(text)+1 || (n == 0) != (text == "") {
			t.Errorf("%q has %d tokens", text, n)
		}
	})
}
