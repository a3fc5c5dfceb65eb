package tiktoken

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Before anything is merged, a text is split into pieces, and no token reaches from one
// into the next. OpenAI describes pieces by a regular expression per vocabulary. Its
// alternatives, in the order in which they are tried:
//
//	o200k   a word, from capitals to small letters, with the character before it
//	          [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	          [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	cl100k  the end of a contraction
//	          (?i:'s|'t|'re|'ve|'m|'ll|'d)
//	        a word, with the character before it
//	          [^\r\n\p{L}\p{N}]?\p{L}+
//	both    up to three digits
//	          \p{N}{1,3}
//	        symbols, with the space before and the newlines after them
//	           ?[^\s\p{L}\p{N}]+[\r\n/]*     (cl100k: [\r\n]*)
//	        white space up to its last newline
//	          \s*[\r\n]+
//	        white space, without the last character if a word could have it
//	          \s+(?!\S)
//	          \s+
//
// Go's regular expressions cannot look ahead as these do. The functions here find the same
// pieces, and take linear time for every text.

// class is what the expressions ask about a character.
type class uint8

const (
	upper   class = 1 << iota // may be in the first half of a word of o200k
	lower                     // may be in its second half
	letter                    // \p{L}
	number                    // \p{N}
	symbol                    // [^\s\p{L}\p{N}]
	newline                   // [\r\n]
	space                     // other white space
)

func classOf(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsSpace(r):
		return space
	case unicode.IsLower(r):
		return letter | lower
	case unicode.IsUpper(r), unicode.IsTitle(r):
		return letter | upper
	case unicode.IsLetter(r):
		return letter | upper | lower
	case unicode.IsMark(r):
		return symbol | upper | lower
	case unicode.IsNumber(r):
		return number
	}
	return symbol
}

var ascii = func() (classes [utf8.RuneSelf]class) {
	for r := range classes {
		classes[r] = classOf(rune(r))
	}
	return classes
}()

// next returns the class of the character at a place, which is 0 at the end of the text,
// and the place after it.
func next(text string, at int) (class, int) {
	if at == len(text) {
		return 0, at
	}
	if b := text[at]; b < utf8.RuneSelf {
		return ascii[b], at + 1
	}
	r, size := utf8.DecodeRuneInString(text[at:])
	return classOf(r), at + size
}

// run returns where a run of characters of some classes ends.
func run(text string, at int, of class) int {
	for {
		c, after := next(text, at)
		if c&of == 0 {
			return at
		}
		at = after
	}
}

// splitO200k returns the length of the first piece of a text that is not empty.
func splitO200k(text string) int {
	start := 0
	// A mark could be the character before a word, too. But it can also be the word's
	// first, and then the piece is the same, or the mark is a word by itself.
	if c, after := next(text, 0); c&(symbol|space) != 0 && c&lower == 0 {
		start = after
	}
	if end := casedWord(text, start); end > start {
		return end + contraction(text[end:])
	}
	return splitRest(text, "\r\n/")
}

// casedWord returns where a word ends that starts at a place, or that place if there is
// no word.
func casedWord(text string, start int) int {
	end := start    // of the first half
	either := start // after its last character that could be in the second half
	c, after := next(text, end)
	for c&upper != 0 {
		end = after
		if c&lower != 0 {
			either = end
		}
		c, after = next(text, end)
	}
	switch {
	case c&lower != 0:
		return run(text, end, lower)
	case either > start:
		// The second half must not be empty if it can be helped. So it gets that
		// character, and capitals after it are the next word.
		return either
	}
	return end
}

// splitCl100k returns the length of the first piece of a text that is not empty.
func splitCl100k(text string) int {
	if n := contraction(text); n > 0 {
		return n
	}
	start := 0
	if c, after := next(text, 0); c&(symbol|space) != 0 {
		start = after
	}
	if end := run(text, start, letter); end > start {
		return end
	}
	return splitRest(text, "\r\n")
}

// splitRest returns the length of the first piece of a text that does not start with a
// word. Symbols have with them the characters of tail that follow.
func splitRest(text, tail string) int {
	if c, after := next(text, 0); c&number != 0 {
		for range 2 {
			if c, end := next(text, after); c&number != 0 {
				after = end
			}
		}
		return after
	}
	start := 0
	if text[0] == ' ' {
		start = 1
	}
	if end := run(text, start, symbol); end > start {
		return len(text) - len(strings.TrimLeft(text[end:], tail))
	}
	return splitSpace(text)
}

// splitSpace returns the length of the first piece of a text that starts with white space.
func splitSpace(text string) int {
	end := run(text, 0, space|newline)
	if last := strings.LastIndexAny(text[:end], "\r\n"); last >= 0 {
		return last + 1
	}
	if _, size := utf8.DecodeLastRuneInString(text[:end]); size < end && end < len(text) {
		return end - size
	}
	return end
}

// contraction returns the length of the end of a contraction that a text starts with, or
// 0. To the expressions, which ignore case, a long s is an s.
func contraction(text string) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	switch text[1] | 0x20 { // the small letter
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(text) > 2 {
		switch strings.ToLower(text[1:3]) {
		case "re", "ve", "ll", "ſ":
			return 3
		}
	}
	return 0
}
