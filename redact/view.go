package redact

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Text from a terminal has colours in it: grep --color puts an escape sequence before and
// after what it found, which may be a secret, its name, or a part of either. And text that is
// JSON within JSON, at any depth, has escapes in it: https:\/\/user:pass@host, as PHP writes
// it, or \u003cpassword\u003e. The rules look at the text as a person reads it, without
// colours and with what these escapes stand for. What they find is then looked up in the text
// as it is.
//
// The escapes \n, \" and the like stay, because they are also in source code, but \n has one
// backslash however deep it is. The number of those before a quote says which quotes belong
// together.

// view is a text as a person reads it, and where it differs from the text as it is.
type view struct {
	plain []byte
	cuts  []cut // in order
}

// cut is a place where the two differ. Of a colour, nothing is in the plain text.
type cut struct{ plain, raw span }

// Uncoloured returns a text without the escape sequences that colour it on a terminal, and with
// the characters that \/ and \uXXXX stand for. All of these may be escaped themselves, as in
// JSON within JSON. A text that has none of them is returned as it is.
func Uncoloured(text []byte) []byte { return viewOf(text).plain }

// viewOf looks at brackets, because every colour has one, and at backslashes. This is fast
// enough for the many texts that have neither.
func viewOf(text []byte) view {
	v := view{plain: text}
	done := 0
	var plain []byte
	swap := func(raw span, meaning []byte) {
		plain = append(plain, text[done:raw.start]...)
		at := len(plain)
		plain = append(plain, meaning...)
		v.cuts = append(v.cuts, cut{plain: span{at, len(plain)}, raw: raw})
		done = raw.end
	}
	bracket, slash := nextOf(text, 0, '['), nextOf(text, 0, '\\')
	for bracket < len(text) || slash < len(text) {
		if bracket < slash {
			if colour := colourAt(text, done, bracket); colour.end > 0 {
				swap(colour, nil)
			}
			bracket = nextOf(text, bracket+1, '[')
			continue
		}
		meaning, end := escapeAt(text, slash)
		if meaning != nil {
			swap(span{slash, end}, meaning)
		}
		slash = nextOf(text, end, '\\')
	}
	if done > 0 {
		v.plain = append(plain, text[done:]...)
	}
	return v
}

// nextOf returns where a byte is at a place or after it, or the length of the text.
func nextOf(text []byte, from int, what byte) int {
	if n := bytes.IndexByte(text[from:], what); n >= 0 {
		return from + n
	}
	return len(text)
}

// escapeAt returns what the escape that begins at a place stands for, and where it ends. If
// that is nothing that the view changes, it returns nil and where to look for the next one.
func escapeAt(text []byte, at int) (meaning []byte, end int) {
	slashes, escaped, i := 0, false, at
	for ; i < len(text); slashes++ { // each level of JSON adds some
		if text[i] == '\\' {
			i++
		} else if r, ok := unitAt(text[i:]); ok && r == '\\' {
			i, escaped = i+unitLength, true
		} else {
			break
		}
	}
	r, ok := unitAt(text[i:])
	switch {
	case i < len(text) && text[i] == '/':
		return []byte{'/'}, i + 1
	case i < len(text) && slashes > 1 && (text[i] == 'n' || text[i] == 'r' || text[i] == 't'):
		return []byte{'\\', text[i]}, i + 1
	case ok && r < 0x80 && isQuote(byte(r)):
		return append(bytes.Repeat([]byte{'\\'}, slashesBefore(slashes)), byte(r)), i + unitLength
	case ok && !utf16.IsSurrogate(r) && (r >= ' ' || r == '\t' || r == '\n' || r == '\r'):
		return utf8.AppendRune(nil, r), i + unitLength
	case escaped:
		return bytes.Repeat([]byte{'\\'}, slashes), i
	}
	return nil, i
}

// slashesBefore returns how many backslashes remain before a quote that was escaped as \u0022
// with some backslashes: \" may have become \\\u0022, and \u0022 may have become \\u0022.
func slashesBefore(slashes int) int {
	for slashes%2 == 0 {
		slashes /= 2
	}
	return (slashes - 1) / 2
}

// restore turns places in the plain text into places in the original text. A colour within a
// finding becomes part of it; one before or after it does not. The findings are in order.
func (v *view) restore(found []Finding) []Finding {
	if len(v.cuts) == 0 {
		return found
	}
	next, shift := 0, 0
	place := func(at int) span { // of a byte of the plain text
		for next < len(v.cuts) && v.cuts[next].plain.end <= at {
			shift = v.cuts[next].raw.end - v.cuts[next].plain.end
			next++
		}
		if next < len(v.cuts) && v.cuts[next].plain.start <= at {
			return v.cuts[next].raw
		}
		return span{at + shift, at + shift + 1}
	}
	for i := range found {
		f := &found[i]
		f.Start, f.End = place(f.Start).start, place(f.End-1).end
	}
	return found
}
