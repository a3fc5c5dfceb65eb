package index

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

// The functions here look at eight bytes of a text together, as one number whose lowest byte
// is the first. They return the answer for each byte in its highest bit.

const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// load8 returns eight bytes of a text, beginning at i. The compiler loads them at once.
func load8(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// load4 returns the first four bytes of a text.
func load4(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// between finds the ASCII bytes in a range. Its answer for other bytes is undefined.
func between(x uint64, from, to byte) uint64 {
	x |= highBits // so that no byte borrows from the next
	return (x - uint64(from)*eachByte) &^ (x - (uint64(to)+1)*eachByte) & highBits
}

// uppers finds the upper case letters of ASCII.
func uppers(x uint64) uint64 { return between(x, 'A', 'Z') &^ x }

// plainBytes returns how many bytes at the start are lower-case ASCII letters or digits.
func plainBytes(x uint64) int {
	plain := (between(x, 'a', 'z') | between(x, '0', '9')) &^ x
	return bits.TrailingZeros64(plain^highBits) / 8
}

// isASCII reports whether a text is all ASCII.
func isASCII(s string) bool {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		if load8(s, i)&highBits != 0 {
			return false
		}
	}
	for ; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// lowerASCII returns a text of the same length with ASCII letters in lower case.
func lowerASCII(s string) string {
	i := 0
	for i+8 <= len(s) && uppers(load8(s, i)) == 0 {
		i += 8
	}
	for i < len(s) && byteClasses[s[i]] != upper {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:i])
	var eight [8]byte
	for ; i+8 <= len(s); i += 8 {
		x := load8(s, i)
		binary.LittleEndian.PutUint64(eight[:], x|uppers(x)>>2) // the bit that makes a letter lower case
		b.Write(eight[:])
	}
	for ; i < len(s); i++ {
		c := s[i]
		if byteClasses[c] == upper {
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}
