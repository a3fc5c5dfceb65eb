package clean

import "math/bits"

// longSecret is the length above which a secret has a sum: below it, computing a digest
// costs no more than a few times as much.
const longSecret = 256

// sumModulus is a prime of 61 bits.
const sumModulus = 1<<61 - 1

// sums gives a number for any part of a text in constant time. Equal parts have equal
// numbers; others nearly never do. The number of a text is that of all its bytes as the
// digits of a number, in a base that is known only with the list.
type sums struct {
	upTo   []uint64 // of the text up to each place
	powers []uint64 // of the base
}

func newSums(base uint64, text []byte) *sums {
	base %= sumModulus
	s := &sums{upTo: make([]uint64, len(text)+1), powers: make([]uint64, len(text)+1)}
	s.powers[0] = 1
	for i, c := range text {
		s.upTo[i+1] = (times(s.upTo[i], base) + uint64(c) + 1) % sumModulus
		s.powers[i+1] = times(s.powers[i], base)
	}
	return s
}

// of returns the number of a part, which is never 0.
func (s *sums) of(start, end int) uint64 {
	return max(1, (s.upTo[end]+sumModulus-times(s.upTo[start], s.powers[end-start]))%sumModulus)
}

func times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return (low&sumModulus + (low>>61 | high<<3)) % sumModulus
}
