package redact

import "bytes"

// Text from a terminal has colours in it: grep --color puts an escape sequence before and
// after what it found, which may be a secret, its name, or a part of either. And text that is
// JSON within JSON has marks that many programs escape: \u003cpassword\u003e. The rules look
// at the text as a person sees it, without these sequences and with these marks. What they
// find is then looked up in the text as it is.

// view is a text without its colours, and with its marks.
type view struct {
	plain []byte
	cuts  []cut // in order
}

// cut is a sequence that was left out, or all but one byte of an escaped mark, which comes
// before it.
type cut struct {
	at     int // in the plain text
	length int // of all sequences up to and including this one
	mark   bool
}

// Uncoloured returns a text without the escape sequences that colour it on a terminal.
// These may be escaped themselves, as in JSON and in source code: \u001b[31m. Marks that were
// escaped for HTML, such as \u003c, become themselves. A text that has none of either is
// returned as it is.
func Uncoloured(text []byte) []byte { return viewOf(text).plain }

const escapeByte = 0x1b

// escapedMark begins a mark that is escaped.
var escapedMark = []byte(`\u00`)

// viewOf looks at the brackets, because every colour has one, and at what begins an escaped
// mark: this is fast enough for the many texts that have neither.
func viewOf(text []byte) view {
	v := view{plain: text}
	done, left := 0, 0
	var plain []byte
	leave := func(sequence span, mark []byte) {
		plain = append(append(plain, text[done:sequence.start]...), mark...)
		left += sequence.end - sequence.start - len(mark)
		v.cuts = append(v.cuts, cut{len(plain), left, len(mark) > 0})
		done = sequence.end
	}
	bracket, escape := nextOf(text, 0, []byte("[")), nextOf(text, 0, escapedMark)
	for bracket < len(text) || escape < len(text) {
		if bracket < escape {
			if colour := colourAt(text, done, bracket); colour.end > 0 {
				leave(colour, nil)
			}
			bracket = nextOf(text, bracket+1, []byte("["))
			continue
		}
		if c := markAt(text, escape); c != 0 {
			start := escape
			for start > done && text[start-1] == '\\' {
				start--
			}
			leave(span{start, escape + len(`\u003c`)}, []byte{c})
		}
		escape = nextOf(text, escape+len(escapedMark), escapedMark)
	}
	if done > 0 {
		v.plain = append(plain, text[done:]...)
	}
	return v
}

// nextOf returns where something is at a place or after it, or the length of the text.
func nextOf(text []byte, from int, what []byte) int {
	if n := bytes.Index(text[from:], what); n >= 0 {
		return from + n
	}
	return len(text)
}

// markAt returns the mark whose escape is at a place, or 0: one that means something in HTML.
func markAt(text []byte, at int) byte {
	if r, ok := hex4(text[at:]); ok && r < 0x80 && bytes.IndexByte([]byte(`<>&'"=`), byte(r)) >= 0 {
		return byte(r)
	}
	return 0
}

// maxColour limits the numbers in a sequence and the backslashes before it. Terminals
// know no longer ones.
const maxColour = 48

// colourAt returns the sequence whose bracket is at a place, if there is one that begins
// at from or later. Only colours and what erases the rest of a line count: others move
// things.
func colourAt(text []byte, from, bracket int) span {
	start := bracket - escapeBefore(text[from:bracket])
	if start == bracket {
		return span{}
	}
	end := bracket + 1
	for end < len(text) && end-bracket < maxColour && (digits[text[end]] || text[end] == ';' || text[end] == ':') {
		end++
	}
	if end == len(text) || text[end] != 'm' && text[end] != 'K' {
		return span{}
	}
	return span{start, end + 1}
}

// escapeBefore returns the length of the escape that ends a text, or 0: the byte itself, or
// \u001b, \x1b or \033 with any number of backslashes.
func escapeBefore(text []byte) int {
	n := len(text)
	if n == 0 {
		return 0
	}
	switch text[n-1] {
	case escapeByte:
		return 1
	case 'b', 'B', '3':
	default:
		return 0
	}
	for _, name := range []string{"u001b", "x1b", "033"} {
		at := n - len(name)
		if at <= 0 || text[at-1] != '\\' || !hasFold(text[at:], name) {
			continue
		}
		for most := maxColour; most > 0 && at > 0 && text[at-1] == '\\'; most-- {
			at--
		}
		return n - at
	}
	return 0
}

// restore turns places in the plain text into those in the text as it is. A sequence
// within a finding becomes part of it, and so does all of a mark at its end; a colour before or
// after it does not. The findings are in order.
func (v *view) restore(found []Finding) []Finding {
	if len(v.cuts) == 0 {
		return found
	}
	next, shift := 0, 0
	upTo := func(at int) int { // what was cut before a byte of the plain text
		for next < len(v.cuts) && v.cuts[next].at <= at {
			shift = v.cuts[next].length
			next++
		}
		return shift
	}
	for i := range found {
		f := &found[i]
		last := f.End - 1
		f.Start += upTo(f.Start)
		f.End = last + upTo(last) + 1
		if next < len(v.cuts) && v.cuts[next].at == last+1 && v.cuts[next].mark {
			f.End += v.cuts[next].length - shift
		}
	}
	return found
}
