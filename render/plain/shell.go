package plain

import (
	"fmt"
	"strings"
)

// ShellWord returns text as one word of a POSIX shell: what a person who copies
// the word passes to a program is the text, and nothing in it is run. The word
// itself is harmless to print. Text that is not harmless, for example because it has an
// escape sequence, is written in octal numbers:
//
//	"$(printf 'a\033b')"
//
// A word cannot hold a NUL, nor such characters together with a newline at its end.
// These are left out, and so is everything after a NUL.
func ShellWord(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	switch {
	case text != "" && !strings.ContainsFunc(text, special):
		return text
	case Flat(text) == text:
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return `"$(printf '` + octal(text) + `')"`
}

// special reports whether a character has a special meaning to a shell anywhere in a
// word.
func special(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/._-+:@%", r)
}

// octal writes text for printf, with all bytes that are not plain as numbers.
func octal(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; special(rune(c)) || c == '%' || c == '-' && i == 0 { // so that it is not an option
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Command returns a command line in which each word is a [ShellWord].
func Command(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = ShellWord(word)
	}
	return strings.Join(quoted, " ")
}
