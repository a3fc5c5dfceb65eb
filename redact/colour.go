package redact

import "bytes"

// Text from a terminal has colours in it: grep --color puts an escape sequence before and
// after what it found, which may be a secret, its name, or a part of either. The rules
// look at the text as a person sees it, without these sequences. What they find is then
// looked up in the text as it is.

// view is a text without its colours.
type view struct {
	plain []byte
	cuts  []cut // in order
}

// cut is a sequence that was left out.
type cut struct {
	at     int // in the plain text
	length int // of all sequences up to and including this one
}

// Uncoloured returns a text without the escape sequences that colour it on a terminal.
// These may be escaped themselves, as in JSON and in source code: \u001b[31m. A text that
// has none is returned as it is.
func Uncoloured(text []byte) []byte { return viewOf(text).plain }

// mayBeColoured reports whether a text may have a sequence. It is fast, because nearly no
// text has one.
func mayBeColoured(text []byte) bool {
	return bytes.IndexByte(text, escapeByte) >= 0 ||
		bytes.Contains(text, []byte("1b[")) || bytes.Contains(text, []byte("1B[")) || bytes.Contains(text, []byte("033["))
}

const escapeByte = 0x1b

func viewOf(text []byte) view {
	v := view{plain: text}
	if !mayBeColoured(text) {
		return v
	}
	done, left := 0, 0
	var plain []byte
	for i := 0; i < len(text); {
		n := colourAt(text[i:])
		if n == 0 {
			i++
			continue
		}
		plain = append(plain, text[done:i]...)
		left += n
		v.cuts = append(v.cuts, cut{len(plain), left})
		i += n
		done = i
	}
	if done > 0 {
		v.plain = append(plain, text[done:]...)
	}
	return v
}

// maxColour limits the length of a sequence. Terminals know no longer ones.
const maxColour = 48

// colourAt returns the length of the sequence that begins a text, or 0. Only colours
// and what erases the rest of a line count: others move things.
func colourAt(text []byte) int {
	i := 0
	switch text[0] {
	case escapeByte:
		i = 1
	case '\\':
		if i = escapedEscape(text[:min(len(text), maxColour)]); i == 0 {
			return 0
		}
	default:
		return 0
	}
	if i >= len(text) || text[i] != '[' {
		return 0
	}
	i++
	for i < len(text) && i < maxColour && (digits[text[i]] || text[i] == ';' || text[i] == ':') {
		i++
	}
	if i < len(text) && (text[i] == 'm' || text[i] == 'K') {
		return i + 1
	}
	return 0
}

// escapedEscape returns the length of \u001b, \x1b or \033, after any number of
// backslashes, or 0.
func escapedEscape(text []byte) int {
	i := 0
	for i < len(text) && text[i] == '\\' {
		i++
	}
	for _, name := range []string{"u001b", "x1b", "033"} {
		if hasFold(text[i:], name) {
			return i + len(name)
		}
	}
	return 0
}

// restore turns places in the plain text into those in the text as it is. A sequence
// within a finding becomes part of it; one before or after it does not. The findings are
// in order.
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
	}
	return found
}
