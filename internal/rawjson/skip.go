package rawjson

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// The walkers below return the index just after the value. When the text is
// broken they return the complement of the index of the first byte that does not
// fit (len(b) when the text ends too early), which is always negative, or
// tooDeep. One int keeps the hot path in registers, and an error message can
// still say where.

// maxDepth is how deep values may nest: the limit of encoding/json.
const maxDepth = 10000

// tooDeep cannot be the complement of an index into a slice.
const tooDeep = math.MinInt

// Skip returns the index just after the JSON value that begins at or after i
// (white space before it is allowed), or -1 when there is no valid value there.
// What follows the value is not looked at: Skip of "01" is 1, because 0 is a
// value.
func Skip(b []byte, i int) int {
	if i < 0 {
		return -1
	}
	return max(skip(b, space(b, i), maxDepth), -1)
}

// Valid reports whether b is exactly one JSON value, with or without white space
// around it.
func Valid(b []byte) bool {
	i := skip(b, space(b, 0), maxDepth)
	return i >= 0 && space(b, i) == len(b)
}

// skip walks the value that starts at i. It may open depth more levels.
func skip(b []byte, i, depth int) int {
	if i >= len(b) {
		return ^len(b)
	}
	switch b[i] {
	case '"':
		return skipString(b, i+1)
	case '{':
		return skipObject(b, i+1, depth)
	case '[':
		return skipArray(b, i+1, depth)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return skipNumber(b, i)
	case 't':
		return skipWord(b, i, "true")
	case 'f':
		return skipWord(b, i, "false")
	case 'n':
		return skipWord(b, i, "null")
	}
	return ^i
}

// skipObject walks the rest of an object whose brace is just before i.
func skipObject(b []byte, i, depth int) int {
	if depth == 0 {
		return tooDeep
	}
	i = space(b, i)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i = skipKey(b, i); i < 0 {
			return i
		}
		if i = skip(b, i, depth-1); i < 0 {
			return i
		}
		var more bool
		if i, more = skipComma(b, i, '}'); !more {
			return i
		}
	}
}

// skipArray walks the rest of an array whose bracket is just before i.
func skipArray(b []byte, i, depth int) int {
	if depth == 0 {
		return tooDeep
	}
	i = space(b, i)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = skip(b, i, depth-1); i < 0 {
			return i
		}
		var more bool
		if i, more = skipComma(b, i, ']'); !more {
			return i
		}
	}
}

// skipKey walks a member's key and colon, and returns where its value starts.
func skipKey(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return ^i
	}
	if i = skipString(b, i+1); i < 0 {
		return i
	}
	return skipColon(b, i)
}

// skipColon walks the colon after a key, and returns where the value starts.
func skipColon(b []byte, i int) int {
	i = space(b, i)
	if i >= len(b) || b[i] != ':' {
		return ^i
	}
	return space(b, i+1)
}

// skipComma walks what may follow a member or element: a comma, and then more is
// true and the result is where the next one starts; or the closing byte, and
// then the result is what the walker of the container returns.
func skipComma(b []byte, i int, closing byte) (next int, more bool) {
	i = space(b, i)
	switch {
	case i >= len(b):
		return ^i, false
	case b[i] == ',':
		return space(b, i+1), true
	case b[i] == closing:
		return i + 1, false
	}
	return ^i, false
}

// space returns the index of the first byte at or after i that is not white
// space, or len(b). It is small enough to be inlined: most text has no space.
func space(b []byte, i int) int {
	if i < len(b) && b[i] > ' ' {
		return i
	}
	return skipSpace(b, i)
}

func skipSpace(b []byte, i int) int {
	for ; i < len(b); i++ {
		if c := b[i]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return i
		}
	}
	return len(b)
}

// skipWord walks one of the three literal names.
func skipWord(b []byte, i int, word string) int {
	if len(b)-i >= len(word) && string(b[i:i+len(word)]) == word {
		return i + len(word)
	}
	for j := 0; i < len(b) && b[i] == word[j]; j++ {
		i++
	}
	return ^i
}

// skipNumber walks a number that starts at i with a minus sign or a digit.
func skipNumber(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = skipDigits(b, i); i < 0 {
		return i
	}
	if i < len(b) && b[i] == '.' {
		if i = skipDigits(b, i+1); i < 0 {
			return i
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return skipDigits(b, i)
	}
	return i
}

// skipDigits walks one digit or more.
func skipDigits(b []byte, i int) int {
	start := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == start {
		return ^i
	}
	return i
}

// skipString walks the rest of a string whose opening quote is just before i.
func skipString(b []byte, i int) int {
	for len(b)-i >= 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		m := special(w) &^ w & highs
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) >> 3
		if b[i] == '"' {
			return i + 1
		}
		if i = skipEscape(b, i); i < 0 {
			return i
		}
	}
	return skipShortString(b, i)
}

// skipShortString is skipString for the last bytes of b.
func skipShortString(b []byte, i int) int {
	for i < len(b) && b[i] != '"' {
		if b[i] >= ' ' && b[i] != '\\' {
			i++
		} else if i = skipEscape(b, i); i < 0 {
			return i
		}
	}
	if i >= len(b) {
		return ^i
	}
	return i + 1
}

// The masks of eight-bytes-at-a-time search.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plainASCII returns the index of the first byte at or after i that is a quote,
// a backslash, a control character or not ASCII, or len(b).
func plainASCII(b []byte, i int) int {
	for ; len(b)-i >= 32; i += 32 { // long text: one branch for four words
		v := b[i : i+32]
		w, x := binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:])
		y, z := binary.LittleEndian.Uint64(v[16:]), binary.LittleEndian.Uint64(v[24:])
		if (special(w)|w|special(x)|x|special(y)|y|special(z)|z)&highs != 0 {
			break
		}
	}
	for ; len(b)-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		if m := (special(w) | w) & highs; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] < 0x80 && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// special sets the high bit of the lowest byte of w that is a quote, a backslash
// or a control character. Bytes above it may be marked wrongly, because
// subtraction borrows, and so may bytes over 0x7f, which the caller masks out.
func special(w uint64) uint64 {
	// Flipping bit 1 puts the quote, 0x22, next to the control characters and
	// leaves those among themselves: one comparison finds both.
	return ((w ^ ones*2) - ones*0x21) | ((w ^ ones*'\\') - ones)
}

// skipEscape walks an escape that should be at i.
func skipEscape(b []byte, i int) int {
	if b[i] != '\\' {
		return ^i
	}
	i++
	if i >= len(b) {
		return ^i
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		return skipHex4(b, i+1)
	}
	return ^i
}

func skipHex4(b []byte, i int) int {
	for end := i + 4; i < end; i++ {
		if i >= len(b) || unhex(b[i]) < 0 {
			return ^i
		}
	}
	return i
}

// unhex returns the value of a hexadecimal digit, or -1.
func unhex(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}
