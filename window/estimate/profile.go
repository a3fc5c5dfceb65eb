package estimate

import (
	"strconv"
	"strings"
)

// Family is the maker of a model.
type Family int

// The families.
const (
	Unknown Family = iota
	OpenAI
	Gemini
	Claude
)

// Profile says how a family of models counts.
type Profile struct {
	Name   string
	Family Family
	// The factors by which the family's tokens differ from o200k_base.
	Words   float64 // words of ASCII letters: English and most of code
	Marks   float64 // punctuation, digits, line breaks: code, JSON, logs
	Ids     float64 // letters mixed with digits and capitals: base64, hashes
	CJK     float64 // Chinese, Japanese, Korean
	Foreign float64 // other scripts
}

// The prices of the pieces in tokens of o200k_base, as fitted.
const (
	priceLowerWord  = 0.959
	priceUpperWord  = 1.384
	priceLongLetter = 0.054
	priceMoreLetter = 0.426
	priceDigits     = 1.274
	priceMark       = 0.744
	priceMoreMarks  = 0.141
	priceBreak      = 0.072
	priceIndent     = 1.393
	priceSwitch     = 0.031
	priceHan        = 0.752
	priceKana       = 0.717
	priceHangul     = 0.751
	priceCyrillic   = 0.315
	priceAccented   = 0.272
	priceOther      = 0.406
	priceSymbol     = 0.836
)

// price adds up what the pieces cost.
func (p *Profile) price(f *Features) float64 {
	n := func(count int, price float64) float64 { return float64(count) * price }
	words := n(f.LowerWords, priceLowerWord) + n(f.UpperWords, priceUpperWord) + n(f.LongLetters, priceLongLetter) +
		n(f.MoreLetters, priceMoreLetter)
	marks := n(f.Digits, priceDigits) + n(f.Marks, priceMark) + n(f.MoreMarks, priceMoreMarks) +
		n(f.Breaks, priceBreak) + n(f.Indents, priceIndent) + n(f.Symbols, priceSymbol)
	cjk := n(f.Han, priceHan) + n(f.Kana, priceKana) + n(f.Hangul, priceHangul)
	foreign := n(f.Cyrillic, priceCyrillic) + n(f.Accented, priceAccented) + n(f.OtherRunes, priceOther)
	return words*p.Words + marks*p.Marks + n(f.Switches, priceSwitch)*p.Ids + cjk*p.CJK + foreign*p.Foreign
}

// The profiles. OpenAI's is measured; Gemini's was measured with the Gemma
// vocabulary; Anthropic publishes none, and what is here are ratios that users
// of the counting API report.
var (
	openAI    = &Profile{Name: "openai", Family: OpenAI, Words: 1, Marks: 1, Ids: 1, CJK: 1, Foreign: 1}
	gemini    = &Profile{Name: "gemini", Family: Gemini, Words: 1.11, Marks: 1.27, Ids: 1.3, CJK: 0.85, Foreign: 0.98}
	claude    = &Profile{Name: "claude", Family: Claude, Words: 1.18, Marks: 1.18, Ids: 1.18, CJK: 1.18, Foreign: 1.18}
	newClaude = &Profile{Name: "claude-4.7", Family: Claude, Words: 1.65, Marks: 1.45, Ids: 1.45, CJK: 1.18, Foreign: 1.18}
	// unknown errs on the side of too many: a window that is too full is an
	// error, one that is not quite full is not.
	unknown = &Profile{Name: "unknown", Words: 1.15, Marks: 1.2, Ids: 1.2, CJK: 1.1, Foreign: 1.1}
)

// For returns the profile of a model. Either name may be empty.
func For(provider, model string) *Profile {
	name := strings.ToLower(provider + "/" + model)
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(name, part) {
				return true
			}
		}
		return false
	}
	// The model decides before the provider: routers sell the models of all makers.
	switch {
	case has("claude", "anthropic"):
		if claudeVersion(name) >= 4.7 {
			return newClaude
		}
		return claude
	case has("gemini", "gemma", "google", "vertex"):
		return gemini
	case has("gpt", "openai", "codex", "/o1", "/o3", "/o4", "azure"):
		return openAI
	}
	return unknown
}

// claudeVersion returns the version in a name such as claude-opus-4-7-20270101
// or claude-opus-4.7; 0 if it has none.
func claudeVersion(name string) float64 {
	numbers := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '/' || r == '@' || r == ':' || r == '_' })
	for i, field := range numbers {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil || v >= 100 { // a date
			continue
		}
		if i+1 < len(numbers) && len(numbers[i+1]) == 1 && v == float64(int(v)) {
			if minor, err := strconv.Atoi(numbers[i+1]); err == nil {
				v += float64(minor) / 10
			}
		}
		return v
	}
	return 0
}
