package rawjson

import (
	"math/bits"
	"strconv"
	"time"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string, byte for byte as encoding/json of Go
// 1.26 writes it with SetEscapeHTML(false): U+2028 and U+2029 are escaped, and each byte of
// invalid UTF-8 becomes \ufffd.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for {
		run := plainRun(s)
		dst = append(dst, s[:run]...)
		if run == len(s) {
			return append(dst, '"')
		}
		var size int
		dst, size = appendEscaped(dst, s[run:])
		s = s[run+size:]
	}
}

// plainRun returns the length of the prefix of s that is written as it is.
func plainRun(s string) int {
	for i := 0; ; {
		i = asciiRun(s, i)
		if i >= len(s) || s[i] < utf8.RuneSelf {
			return i
		}
		for i < len(s) && s[i] >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == '\u2028' || r == '\u2029' || size == 1 {
				return i
			}
			i += size
		}
	}
}

// asciiRun returns the index of the first byte at or after i that is not ASCII
// or must be escaped, or len(s).
func asciiRun(s string, i int) int {
	for ; len(s)-i >= 32; i += 32 { // four words for one decision
		a, b, c, d := load8(s[i:]), load8(s[i+8:]), load8(s[i+16:]), load8(s[i+24:])
		if (special(a)|a|special(b)|b|special(c)|c|special(d)|d)&highs != 0 {
			break
		}
	}
	for ; len(s)-i >= 8; i += 8 {
		w := load8(s[i:])
		if m := (special(w) | w) & highs; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] < utf8.RuneSelf && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}

// load8 is binary.LittleEndian.Uint64 of a string; it compiles to one load.
func load8(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// appendEscaped appends the escape for what s begins with, and returns how many
// bytes of s it stands for.
func appendEscaped(dst []byte, s string) (grown []byte, size int) {
	switch c := s[0]; c {
	case '"', '\\':
		return append(dst, '\\', c), 1
	case '\b':
		return append(dst, '\\', 'b'), 1
	case '\f':
		return append(dst, '\\', 'f'), 1
	case '\n':
		return append(dst, '\\', 'n'), 1
	case '\r':
		return append(dst, '\\', 'r'), 1
	case '\t':
		return append(dst, '\\', 't'), 1
	default:
		if c < ' ' {
			return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf]), 1
		}
	}
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError {
		return append(dst, `\ufffd`...), size
	}
	return append(dst, '\\', 'u', '2', '0', '2', hexDigits[r&0xf]), size
}

// AppendInt appends n in decimal.
func AppendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// AppendTime appends t as a JSON string in RFC 3339 and UTC, with as many digits
// of the second as t needs, but at least three: "2024-01-01T12:00:00.000Z". The
// year of t in UTC should be between 0 and 9999; RFC 3339 has no others.
func AppendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	dst = append(dst, '"')
	dst = t.AppendFormat(dst, time.RFC3339) // the layouts with a fraction are slow
	dst = append(dst[:len(dst)-len("Z")], '.')
	dst = appendFraction(dst, t.Nanosecond())
	return append(dst, 'Z', '"')
}

// appendFraction appends the nine digits of nanoseconds, without the zeros at
// the end but for the first three.
func appendFraction(dst []byte, ns int) []byte {
	a, b, c := uint32(ns)/1e6, uint32(ns)/1e3%1e3, uint32(ns)%1e3 // which need not wait for one another
	start := len(dst)
	dst = append(dst,
		byte('0'+a/100), byte('0'+a/10%10), byte('0'+a%10),
		byte('0'+b/100), byte('0'+b/10%10), byte('0'+b%10),
		byte('0'+c/100), byte('0'+c/10%10), byte('0'+c%10))
	for len(dst) > start+3 && dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}
