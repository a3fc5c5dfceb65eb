package redact

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// decode returns the value of a string, given the bytes between its quotes. If there is
// something to decode, the result is put into scratch.
func decode(body []byte, scratch *[]byte) []byte {
	at := bytes.IndexByte(body, '\\')
	if at < 0 {
		return body
	}
	out := append((*scratch)[:0], body[:at]...)
	for at < len(body) {
		if body[at] != '\\' {
			n := bytes.IndexByte(body[at:], '\\')
			if n < 0 {
				n = len(body) - at
			}
			out = append(out, body[at:at+n]...)
			at += n
			continue
		}
		r, n := unescape(body[at:])
		out = utf8.AppendRune(out, r)
		at += n
	}
	*scratch = out
	return out
}

// unescape returns the character that an escape stands for, and the length of the
// escape. Anything that is not an escape stands for a backslash.
func unescape(body []byte) (r rune, n int) {
	if len(body) < 2 {
		return '\\', 1
	}
	switch c := body[1]; c {
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'u':
		return unescapeUnicode(body)
	default:
		return rune(c), 2
	}
}

func unescapeUnicode(body []byte) (r rune, n int) {
	r, ok := hex4(body)
	if !ok {
		return 'u', 2
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if low, ok := hex4(body[6:]); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

// hex4 reads \uXXXX.
func hex4(body []byte) (rune, bool) {
	if len(body) == 0 || body[0] != '\\' {
		return 0, false
	}
	return unitAt(body[1:])
}

const unitLength = len("uXXXX")

// unitAt reads uXXXX.
func unitAt(text []byte) (rune, bool) {
	if len(text) < unitLength || text[0] != 'u' || !hexDigits.has(text[1:unitLength]) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[1:unitLength]), 16, 16)
	return rune(n), err == nil
}

// offsets maps places in a decoded string to places in the bytes between its quotes. It
// goes forward only, so that many places cost no more than one.
type offsets struct {
	body        []byte
	at, decoded int
}

// raw returns where a byte of the decoded string is. It must not be before the one
// that was asked for last.
func (o *offsets) raw(decoded int) int {
	for o.decoded < decoded && o.at < len(o.body) {
		if o.body[o.at] != '\\' {
			o.at++
			o.decoded++
			continue
		}
		r, n := unescape(o.body[o.at:])
		o.at += n
		o.decoded += utf8.RuneLen(r)
	}
	return o.at
}

// appendQuoted appends a text as a JSON string, with as few escapes as JSON
// allows.
func appendQuoted(out, text []byte) []byte {
	const hexDigit = "0123456789abcdef"
	out = append(out, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c == '\n':
			out = append(out, '\\', 'n')
		case c == '\r':
			out = append(out, '\\', 'r')
		case c == '\t':
			out = append(out, '\\', 't')
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', hexDigit[c>>4], hexDigit[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
