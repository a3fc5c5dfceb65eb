// Package estimate guesses how many tokens a text has without any vocabulary.
//
// Tokenizers first break a text into pieces (a word with the space before it, up
// to three digits, a run of punctuation, a line break) and then give each piece
// one token or a few. So does this package: one pass counts the pieces by kind,
// and each kind has a price. The prices were fitted to o200k_base, OpenAI's
// vocabulary, over prose, code, JSON, logs, base64 and a dozen languages. Other
// providers' vocabularies differ by script: a Profile has a factor for each.
package estimate

import (
	"math"
	"unicode"
	"unicode/utf8"
)

// Features are what a text is made of, as a tokenizer would break it.
type Features struct {
	LowerWords  int // words that begin with a small letter
	UpperWords  int // words that begin with a capital
	LongLetters int // letters of words beyond the fifth, up to the tenth
	MoreLetters int // letters of words beyond the tenth
	Digits      int // groups of up to three digits
	Marks       int // runs of punctuation
	MoreMarks   int // punctuation beyond the first of a run
	Breaks      int // runs of line breaks
	Indents     int // runs of two or more spaces
	Switches    int // letter next to digit, or small next to capital: ids, base64
	Han         int // Chinese characters
	Kana        int // Japanese syllables
	Hangul      int // Korean syllables
	Cyrillic    int // letters
	Accented    int // letters of Latin beyond ASCII
	OtherRunes  int // letters of any other script
	Symbols     int // emoji and the like
}

// Bytes by what they are to a tokenizer.
type class uint8

const (
	other class = iota // not ASCII
	lower
	upper
	digit
	space
	newline
	mark
)

var classes = classify()

func classify() (t [256]class) {
	for b := range 128 {
		switch {
		case b >= 'a' && b <= 'z':
			t[b] = lower
		case b >= 'A' && b <= 'Z':
			t[b] = upper
		case b >= '0' && b <= '9':
			t[b] = digit
		case b == '\n' || b == '\r':
			t[b] = newline
		case b == ' ' || b == '\t':
			t[b] = space
		default:
			t[b] = mark
		}
	}
	return t
}

// Read returns the features of a text.
func Read(text string) (f Features) {
	for i := 0; i < len(text); {
		switch classes[text[i]] {
		case lower, upper:
			i = f.word(text, i)
		case digit:
			i = f.number(text, i)
		case space:
			i = f.spaces(text, i)
		case newline:
			i = run(text, i, newline)
			f.Breaks++
		case mark:
			end := run(text, i, mark)
			f.Marks++
			f.MoreMarks += end - i - 1
			i = end
		default:
			i = f.rune(text, i)
		}
	}
	return f
}

// run returns where a run of bytes of one class ends.
func run(text string, i int, c class) int {
	for i < len(text) && classes[text[i]] == c {
		i++
	}
	return i
}

// word reads capitals and then small letters, which are one piece.
func (f *Features) word(text string, i int) int {
	start := i
	if classes[text[i]] == upper {
		f.UpperWords++
		i = run(text, i, upper)
	} else {
		f.LowerWords++
	}
	i = run(text, i, lower)
	if n := i - start - 5; n > 0 {
		f.LongLetters += min(n, 5)
		f.MoreLetters += max(0, n-5)
	}
	if i < len(text) {
		if next := classes[text[i]]; next == upper || next == digit {
			f.Switches++
		}
	}
	return i
}

func (f *Features) number(text string, i int) int {
	end := run(text, i, digit)
	f.Digits += (end - i + 2) / 3
	if end < len(text) {
		if next := classes[text[end]]; next == lower || next == upper {
			f.Switches++
		}
	}
	return end
}

func (f *Features) spaces(text string, i int) int {
	end := run(text, i, space)
	if end-i > 1 || end == len(text) {
		f.Indents++
	}
	return end
}

// rune reads one character that is not ASCII.
func (f *Features) rune(text string, i int) int {
	r, size := utf8.DecodeRuneInString(text[i:])
	switch {
	case r >= 0x4e00 && r <= 0x9fff || r >= 0x3400 && r <= 0x4dbf:
		f.Han++
	case r >= 0x3040 && r <= 0x30ff:
		f.Kana++
	case r >= 0xac00 && r <= 0xd7a3:
		f.Hangul++
	case r >= 0x400 && r <= 0x52f:
		f.Cyrillic++
	case r >= 0xc0 && r <= 0x24f:
		f.Accented++
	case r != utf8.RuneError && unicode.IsOneOf(letters, r):
		f.OtherRunes++
	default: // a byte that is not text costs about as much
		f.Symbols++
	}
	return i + size
}

var letters = []*unicode.RangeTable{unicode.L, unicode.M}

// Count returns how many tokens a text has for a model of the profile.
func (p *Profile) Count(text string) int {
	if text == "" {
		return 0
	}
	f := Read(text)
	return max(1, int(math.Round(p.price(&f))))
}
