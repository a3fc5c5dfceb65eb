// Package plain makes text by strangers harmless to print: on a terminal, in JSON that is
// shown on a terminal, and in a command for a shell.
//
// A session holds what models, tools and other programs said. An escape sequence in it
// could write to the reader's clipboard, set the title of the window or hide what follows;
// a bidirectional control can make a line appear to say something else. One rule decides
// what is harmless, and everything here follows it: see [Harmless].
//
// Programs print through a [Writer]. It replaces what is not harmless, except for styles
// that [Paint] made in the same process. So no caller has to remember to clean a field
// before printing it.
package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// replacement replaces what must not be printed.
const replacement = "\uFFFD"

// Harmless reports whether a terminal, an editor or a pager shows r as a character
// and does nothing else because of it. Newline and tab are harmless; so are the
// joiners inside words and emoji, which is why before is the rune in front of r.
//
// Not harmless are control characters (C0, DEL and C1), characters that turn the
// direction of text or that have no width, and the separators of lines and
// paragraphs that are not the newline.
func Harmless(before, r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return true
	case r < ' ':
		return false
	case r < 0x7f:
		return true
	case r == zwnj || r == zwj:
		return before >= 0xa0 && unicode.In(before, unicode.L, unicode.M, unicode.So, unicode.Sk)
	}
	return !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// The joiners of scripts such as Persian and Hindi, and of emoji that are made of
// several.
const (
	zwnj = '\u200c'
	zwj  = '\u200d'
)

// Text replaces everything that is not harmless by U+FFFD, including bytes that are not
// UTF-8. A carriage return before a newline is removed. Styles that Paint made stay.
func Text(text string) string {
	if isASCII(text) {
		return text
	}
	var c cleaner
	clean, _ := c.clean(make([]byte, 0, len(text)+8), []byte(text), true)
	return string(clean)
}

// Line is Text on one line: every run of white space becomes one space, and there
// is none at the ends.
func Line(text string) string {
	text = Text(text)
	if isLine(text) {
		return text
	}
	return strings.Join(strings.Fields(text), " ")
}

// isLine reports whether Line would leave text unchanged. Most text is like that, and
// need not be copied.
func isLine(text string) bool {
	space := true // before the first character none is wanted either
	for _, r := range text {
		if unicode.IsSpace(r) && (r != ' ' || space) {
			return false
		}
		space = r == ' '
	}
	return !space || text == ""
}

// Flat is Text on one line that keeps its spaces: newlines and tabs become spaces.
func Flat(text string) string { return flatten.Replace(Text(text)) }

var flatten = strings.NewReplacer("\n", " ", "\t", " ")

// isASCII reports whether text is made of printable ASCII, newlines and tabs.
func isASCII(text string) bool {
	for i := range len(text) {
		if !isPlainByte(text[i]) {
			return false
		}
	}
	return true
}

func isPlainByte(b byte) bool { return b >= ' ' && b < 0x7f || b == '\n' || b == '\t' }

// JSON returns the same JSON value with all that is not harmless written as \u
// escapes. Bytes that are not UTF-8 become \ufffd, which is what decoders read
// them as.
func JSON(text []byte) []byte {
	c := cleaner{json: true}
	clean, _ := c.clean(make([]byte, 0, len(text)+8), text, true)
	return clean
}

// cleaner is the one loop that everything passes through.
type cleaner struct {
	json   bool // write \u escapes
	unmark bool // turn the marks of Paint into what a terminal understands
	before rune // the last rune that was seen
}

// clean appends the cleaned src to dst. Unless it is the end of the text, it may leave
// and return bytes that depend on what follows.
func (c *cleaner) clean(dst, src []byte, end bool) (clean, rest []byte) {
	for len(src) > 0 {
		n := 0
		for n < len(src) && isPlainByte(src[n]) {
			n++
		}
		if n > 0 {
			dst = append(dst, src[:n]...)
			c.before = rune(src[n-1])
			src = src[n:]
			continue
		}
		var took int
		if dst, took = c.nonASCII(dst, src, end); took == 0 {
			return dst, src
		}
		src = src[took:]
	}
	return dst, nil
}

// nonASCII handles the beginning of src that is not plain ASCII, and returns how many bytes
// that was: 0 if more of the text is needed.
func (c *cleaner) nonASCII(dst, src []byte, end bool) ([]byte, int) {
	switch {
	case src[0] == '\r':
		if len(src) == 1 && !end {
			return dst, 0
		}
		if len(src) > 1 && src[1] == '\n' {
			return dst, 1
		}
	case src[0] == escape && !c.json:
		style, n, more := c.style(src)
		if more && !end {
			return dst, 0
		}
		if n > 0 {
			return append(dst, style...), n
		}
	case !utf8.FullRune(src) && !end:
		return dst, 0
	}
	r, n := utf8.DecodeRune(src)
	switch {
	case r == utf8.RuneError && n == 1, !Harmless(c.before, r):
		dst = c.replace(dst, r)
	default:
		dst = append(dst, src[:n]...)
	}
	c.before = r
	return dst, n
}

func (c *cleaner) replace(dst []byte, r rune) []byte {
	switch {
	case !c.json:
		return append(dst, replacement...)
	case r == '\r':
		return append(dst, ' ') // white space between tokens; it cannot be in a string
	}
	return appendEscape(dst, r)
}

func appendEscape(dst []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	unit := func(u rune) {
		dst = append(dst, '\\', 'u', digits[u>>12&15], digits[u>>8&15], digits[u>>4&15], digits[u&15])
	}
	if r > 0xffff {
		r -= 0x10000
		unit(0xd800 + r>>10)
		unit(0xdc00 + r&0x3ff)
		return dst
	}
	unit(r)
	return dst
}
