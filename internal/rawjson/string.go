package rawjson

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// String decodes a string literal, quotes included, as encoding/json does: lone
// surrogates and invalid UTF-8 become U+FFFD. ok is false when b is not exactly
// one valid string literal. It allocates the string.
func String(b []byte) (s string, ok bool) {
	var short [256]byte // so that a short string costs one allocation, not two
	body, ok := StringBytes(b, short[:0])
	return string(body), ok
}

// StringBytes is [String] without a copy when there is nothing to decode: s is
// then a slice of b. Otherwise the decoded bytes are appended to dst, and s is
// what was appended, without what dst held before.
func StringBytes(b, dst []byte) (s []byte, ok bool) {
	if len(b) < 2 || b[0] != '"' || skipString(b, 1) != len(b) {
		return nil, false
	}
	body := b[1 : len(b)-1 : len(b)-1]
	if plain(body) {
		return body, true
	}
	return unquote(dst, body)[len(dst):], true
}

// plain reports whether the inside of a valid string literal is its own value.
func plain(body []byte) bool {
	return bytes.IndexByte(body, '\\') < 0 && utf8.Valid(body)
}

// unquote appends the value of the inside of a valid string literal.
func unquote(dst, body []byte) []byte {
	dst = slices.Grow(dst, len(body))
	valid := utf8.Valid(body)
	for {
		run := bytes.IndexByte(body, '\\')
		if run < 0 {
			return appendText(dst, body, valid)
		}
		dst = appendText(dst, body[:run], valid)
		dst, body = appendEscape(dst, body[run+1:])
	}
}

// appendText appends text with every byte that is not part of valid UTF-8
// replaced by U+FFFD.
func appendText(dst, text []byte, valid bool) []byte {
	if valid {
		return append(dst, text...)
	}
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		dst = utf8.AppendRune(dst, r)
		text = text[size:]
	}
	return dst
}

// appendEscape appends the value of the escape that body begins with, its
// backslash already removed, and returns what follows it.
func appendEscape(dst, body []byte) (grown, rest []byte) {
	switch c := body[0]; c {
	case 'b':
		dst = append(dst, '\b')
	case 'f':
		dst = append(dst, '\f')
	case 'n':
		dst = append(dst, '\n')
	case 'r':
		dst = append(dst, '\r')
	case 't':
		dst = append(dst, '\t')
	case 'u':
		r, size := decodeHex(body[1:])
		return utf8.AppendRune(dst, r), body[1+size:]
	default: // a quote, a backslash or a slash stands for itself
		dst = append(dst, c)
	}
	return dst, body[1:]
}

// decodeHex returns the rune that the four digits at the start of body stand
// for, together with the \uXXXX after them if the two make a surrogate pair, and
// how many bytes those are.
func decodeHex(body []byte) (r rune, size int) {
	r = hex4(body)
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(body) >= 10 && body[4] == '\\' && body[5] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(body[6:])); pair != utf8.RuneError {
			return pair, 10
		}
	}
	return utf8.RuneError, 4
}

func hex4(b []byte) rune {
	return unhex(b[0])<<12 | unhex(b[1])<<8 | unhex(b[2])<<4 | unhex(b[3])
}
