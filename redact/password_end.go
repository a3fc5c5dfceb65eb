package redact

import (
	"bytes"
	"slices"
)

// A password without quotes may contain an ampersand or a semicolon, and both may also
// end it: in a URL the next parameter follows, in a shell the next command. The rest of
// a password can be enough to guess all of it, so what follows counts as part of the
// password unless it is clearly something else.
//
// What is looked at is bounded by maxPassword after the value and by maxMargin before
// its name.

// mayContinue reports whether a value may be the beginning of a password: see
// passwordEnd.
func (l *textScan) mayContinue(v value) bool {
	if v.quoted {
		return false
	}
	end := l.run(v.bare, v.start).end
	return end < len(l.text) && (l.text[end] == '&' || l.text[end] == ';')
}

// passwordEnd returns where a password ends: where its value does, or later.
func (l *textScan) passwordEnd(nameStart int, v value) int {
	if v.quoted {
		return v.end
	}
	text, end := l.text, l.run(v.bare, v.start).end
	if l.overlapsMark(span{v.start, end}) {
		return v.end
	}
	margin, wholeLine := l.marginOf(nameStart)
	isFile := wholeLine && margin != "export" && margin != "set" // as .env and properties files have it
	longer := false
	for end < len(text) && (text[end] == '&' || text[end] == ';') && end-v.start < maxPassword {
		word := bareNoAmp.run(text[end+1 : min(len(text), end+1+maxPassword)])
		l.work += word
		next := end + 1 + word
		if word == 0 || !l.continues(nameStart, span{end, next}, isFile) {
			break
		}
		end, longer = next, true
	}
	if !longer {
		return v.end
	}
	for text[end-1] == '.' || text[end-1] == ':' {
		end--
	}
	return max(l.beforeMark(span{v.start, end}), v.end)
}

// continues reports whether a password continues with an ampersand or a semicolon and what
// follows it. In a settings file the value continues to the end of its line.
func (l *textScan) continues(nameStart int, piece span, isFile bool) bool {
	text := l.text
	sign, said := text[piece.start], text[piece.start+1:piece.end]
	if isParameter(said) {
		return false
	}
	if sign == '&' {
		isEntity := piece.end < len(text) && text[piece.end] == ';' && slices.Contains(entities, string(said))
		inQuery := nameStart > 0 && (text[nameStart-1] == '?' || text[nameStart-1] == '&')
		return !isEntity && !inQuery
	}
	isPath := bytes.HasPrefix(said, []byte("./")) || said[0] == '/'
	if isFile && !isPath && l.endsLine(piece.end) {
		return true
	}
	return !isCommandName(said)
}

// entities are what an ampersand begins in HTML.
var entities = []string{"amp", "quot", "apos", "lt", "gt", "nbsp", "#34", "#38", "#39", "#x27"}

// isParameter reports whether a text is a name and a value, as in the rest of a URL, a
// cookie or a connection string. The padding of base64 is not a value.
func isParameter(text []byte) bool {
	name := wordDashDot.run(text)
	return name > 0 && name < len(text) && text[name] == '=' && !bytes.Equal(text[name:], []byte("=="))
}

// isCommandName reports whether a text may be a program that a shell runs next.
func isCommandName(text []byte) bool {
	if c := text[0]; c != '.' && c != '/' && (c < 'a' || c > 'z') {
		return false
	}
	return !slices.ContainsFunc(text, func(c byte) bool { return !pathBytes[c] && c != '.' || 'A' <= c && c <= 'Z' })
}

const maxMargin = 32

// marginOf returns what comes before a name on its line, if that is only space and
// perhaps a word such as export or the dash of a list.
func (l *textScan) marginOf(nameStart int) (word string, ok bool) {
	text, from := l.text, max(nameStart-maxMargin, 0)
	before := text[from:nameStart]
	l.work += len(before)
	switch at := bytes.LastIndexAny(before, "\r\n"); {
	case at >= 0:
		before = before[at+1:]
	case isEscape(text, nameStart):
		before = nil
	case from > 0:
		return "", false
	}
	word = string(bytes.Trim(before, " \t"))
	return word, word == "" || word == "-" || word == "export" || word == "set"
}

// endsLine reports whether a line ends at a place, but for space and a comment.
func (l *textScan) endsLine(at int) bool {
	text := l.text[at:min(len(l.text), at+maxMargin)]
	rest := bytes.TrimLeft(text, " \t")
	l.work += len(text) - len(rest)
	return len(rest) == 0 || rest[0] == '\n' || rest[0] == '\r' || rest[0] == '\\' || rest[0] == '#' && len(rest) < len(text)
}
