// Package code splits source code into tokens, so that a renderer can colour them.
//
// The language is given: after the fence of a code block, or as the extension of a file.
// It is never guessed from the code.
//
// One small scanner reads all languages by a table of their comments, strings and
// keywords. It is meant for reading: it colours what an eye looks for, and where it errs
// it errs to the end of a line. Full grammars were tried. They cost 8 ms at every start of
// a program, 3 MB of its size, and a second for each megabyte of code.
package code

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// Kind is what a part of a piece of code is.
type Kind uint8

// The kinds. Anything else is Plain, and so are operators: a page on which everything
// is coloured emphasises nothing.
const (
	Plain Kind = iota
	Keyword
	Type
	Function
	String
	Number
	Comment
	Name     // a tag, an attribute, a key, a decorator, a variable of a shell
	Heading  // a section of a configuration file, the head of a diff
	Inserted // a line of a diff
	Deleted  // a line of a diff
)

// Parts yields a text part by part. Together they are the text, whatever it is, and
// neighbours differ in their kind. If the language is not known, all of it is one part.
func Parts(language, text string) iter.Seq2[Kind, string] {
	return func(yield func(Kind, string) bool) {
		g := find(language)
		if g == nil {
			if text != "" {
				yield(Plain, text)
			}
			return
		}
		from, at, last := 0, 0, Plain
		for at < len(text) {
			kind, n := g.next(text, at)
			if kind != last && at > from {
				if !yield(last, text[from:at]) {
					return
				}
				from = at
			}
			last, at = kind, at+n
		}
		if from < len(text) {
			yield(last, text[from:])
		}
	}
}

// Known reports whether there is a grammar for a language.
func Known(language string) bool { return find(language) != nil }

// grammar is a language, ready to be read.
type grammar struct {
	*language
	comments []string    // what begins a comment that ends with its line
	blocks   [][2]string // how other comments begin and end
	long     [][2]string // how strings of several lines begin and end
	words    map[string]Kind
}

// next returns the kind and the size of the token at a place. The size is at least 1.
func (g *grammar) next(text string, at int) (Kind, int) {
	rest := text[at:]
	if g.traits&lines != 0 {
		return wholeLine(rest)
	}
	c := rest[0]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return Plain, 1
	case c == '\\':
		return Plain, min(2, len(rest)) // whatever it escapes begins nothing
	}
	if kind, n := g.enclosed(text, at); n > 0 {
		return kind, n
	}
	if g.traits&markup != 0 {
		return g.tag(text, at)
	}
	switch {
	case c == '[' && g.traits&keys != 0 && beginsLine(text, at):
		return Heading, lineEnd(rest)
	case isDigit(c):
		return Number, numberEnd(rest)
	case isLetter(c):
		return g.word(text, at)
	case c == '@' && g.traits&decorators != 0, c == '$' && g.traits&variables != 0:
		if n := wordEnd(rest[1:]); n > 0 {
			return Name, 1 + n
		}
	}
	return Plain, 1
}

// enclosed recognises what has a beginning and an end of its own: comments and strings.
// Its size is 0 where there is neither.
func (g *grammar) enclosed(text string, at int) (Kind, int) {
	rest := text[at:]
	for _, b := range g.blocks {
		if strings.HasPrefix(rest, b[0]) {
			return Comment, g.through(rest, b[0], b[1])
		}
	}
	for _, mark := range g.comments {
		// In a shell, $# and a#b are not comments.
		if strings.HasPrefix(rest, mark) && (mark != "#" || at == 0 || isSpace(text[at-1])) {
			return Comment, lineEnd(rest)
		}
	}
	for _, b := range g.long {
		if strings.HasPrefix(rest, b[0]) {
			return String, g.through(rest, b[0], b[1])
		}
	}
	if strings.IndexByte(g.quotes, rest[0]) < 0 || g.traits&markup != 0 && (at == 0 || text[at-1] != '=') {
		return Plain, 0
	}
	n := quotedEnd(rest)
	switch {
	case n == 0, rest[0] == '\'' && g.traits&runes != 0 && !isRune(rest[1:n-1]):
		return Plain, 1 // an apostrophe, or the name of a lifetime
	case g.traits&keys != 0 && isKey(rest[n:]):
		return Name, n
	}
	return String, n
}

// word distinguishes the words of a language from names.
func (g *grammar) word(text string, at int) (Kind, int) {
	n := wordEnd(text[at:])
	word, rest := text[at:at+n], text[at+n:]
	if g.traits&keys != 0 && beginsLine(text, at) {
		// Keys may have dots and dashes.
		for len(rest) > 1 && (rest[0] == '-' || rest[0] == '.') && wordEnd(rest[1:]) > 0 {
			n += 1 + wordEnd(rest[1:])
			rest = text[at+n:]
		}
		if isKey(rest) {
			return Name, n
		}
		word = text[at : at+n]
	}
	if g.traits&folded != 0 {
		word = strings.ToLower(word)
	}
	if kind, ok := g.words[word]; ok {
		return kind, n
	}
	if strings.HasPrefix(rest, "(") && g.traits&keys == 0 {
		return Function, n
	}
	return Plain, n
}

// tag reads the inside of tags. Between them is text.
func (g *grammar) tag(text string, at int) (Kind, int) {
	rest := text[at:]
	if rest[0] == '<' {
		n := 1
		if strings.HasPrefix(rest, "</") || strings.HasPrefix(rest, "<!") || strings.HasPrefix(rest, "<?") {
			n = 2
		}
		if size := tagEnd(rest[n:]); size > 0 {
			return Name, n + size
		}
		return Plain, 1
	}
	if n := tagEnd(rest); n > 0 {
		if strings.HasPrefix(rest[n:], "=") {
			return Name, n
		}
		return Plain, n
	}
	return Plain, 1
}

// wholeLine reads a diff, in which a line is one thing.
func wholeLine(rest string) (Kind, int) {
	n := lineEnd(rest)
	if n == 0 {
		return Plain, 1
	}
	for _, head := range []string{"@@", "diff ", "index ", "--- ", "+++ ", "***"} {
		if strings.HasPrefix(rest, head) {
			return Heading, n
		}
	}
	switch rest[0] {
	case '+', '>':
		return Inserted, n
	case '-', '<':
		return Deleted, n
	}
	return Plain, n
}

// through returns the size of what begins and ends with two marks. Without the second
// mark, it is the rest of the text.
func (g *grammar) through(rest, begin, end string) int {
	for from := len(begin); ; {
		i := strings.Index(rest[from:], end)
		if i < 0 {
			return len(rest)
		}
		// A backslash before a quote keeps it from ending the string.
		inside := rest[from : from+i]
		escapes := len(inside) - len(strings.TrimRight(inside, `\`))
		if g.traits&raw != 0 || !strings.ContainsAny(end, "\"'`") || escapes%2 == 0 {
			return from + i + len(end)
		}
		from += i + 1
	}
}

// quotedEnd returns the size of a string that ends on its line, or 0.
func quotedEnd(rest string) int {
	for i := 1; i < len(rest) && rest[i] != '\n'; i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			return i + 1
		}
	}
	return 0
}

// isRune reports whether a text is one character or one escape.
func isRune(s string) bool { return utf8.RuneCountInString(s) == 1 || strings.HasPrefix(s, `\`) }

// isKey reports whether the word before rest is a key of a configuration file.
func isKey(rest string) bool {
	rest = strings.TrimLeft(rest, " \t")
	return strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "==")
}

// maxIndent is how far a line's first word may be from its beginning. Without a limit,
// every word of a long line would cause a scan back to its beginning.
const maxIndent = 80

// beginsLine reports whether only space, and what begins an item of a list or an object,
// comes before a place on its line.
func beginsLine(text string, at int) bool {
	near := text[max(0, at-maxIndent):at]
	newline := strings.LastIndexByte(near, '\n')
	if newline < 0 && len(near) == maxIndent {
		return false
	}
	return strings.Trim(near[newline+1:], " \t-{,") == ""
}

func lineEnd(s string) int {
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n
	}
	return len(s)
}

func wordEnd(s string) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || n > 0 && isDigit(s[n])) {
		n++
	}
	return n
}

func tagEnd(s string) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || isDigit(s[n]) || n > 0 && strings.IndexByte("-:.", s[n]) >= 0) {
		n++
	}
	return n
}

func numberEnd(s string) int {
	n := 1
	for n < len(s) && (isDigit(s[n]) || isLetter(s[n]) && s[n] < 0x80 || s[n] == '.' && n+1 < len(s) && isDigit(s[n+1])) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';' || c == '('
}

// isLetter counts every character outside ASCII as a letter.
func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c >= 0x80
}
