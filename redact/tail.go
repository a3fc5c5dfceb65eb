package redact

import (
	"bytes"
	"math/bits"
)

// tail answers questions about a part of a text, from any place in it to its end.
//
// The values in token=token=token=… are tails of one another, and so are the bodies of
// xoxb-xoxb-xoxb-…: examining each by itself would take quadratic time. But nearly
// everything that a rule asks holds either for all tails up to some length or for all
// from some length on. So it is enough to find one place for each question, once.
type tail struct {
	text []byte // all of it, up to the end of the part
	span
	work                                              *int // see textScan
	standIn, varied, digit, letter, odd, scheme, part lazyPlace
	// How often the class changes from a place on; see changesFrom.
	counted lazyPlace
	changes int
}

// lazyPlace is found when it is first needed.
type lazyPlace struct {
	at    int // -1 if there is none
	known bool
}

func newTail(text []byte, start, end int, work *int) *tail {
	return &tail{text: text[:end], span: span{start, end}, work: work}
}

// last returns the place that find returns for the part.
func (t *tail) last(p *lazyPlace, find func(part []byte) int) int {
	if !p.known {
		p.known, p.at = true, find(t.text[t.start:])
		if p.at >= 0 {
			p.at += t.start
		}
		*t.work += t.end - max(t.start, p.at)
	}
	return p.at
}

// hasStandIn is isStandIn for the text from a place on.
func (t *tail) hasStandIn(from int) bool { return t.last(&t.standIn, lastStandIn) >= from }

// isVaried is isVaried for the text from a place on.
func (t *tail) isVaried(from int) bool {
	if t.end-from < enoughDistinct*3/2 {
		return isVaried(t.text[from:])
	}
	return t.last(&t.varied, lastVaried) >= from
}

// mixed reports whether there are both letters and digits from a place on, as in nearly
// everything random, but not in words.
func (t *tail) mixed(from int) bool {
	return t.last(&t.digit, lastDigit) >= from && t.last(&t.letter, lastLetter) >= from
}

// isTokenLike reports whether the text from a place on consists of bytes that tokens have.
func (t *tail) isTokenLike(from int) bool { return t.last(&t.odd, lastOdd) < from }

// hasScheme reports whether the text from a place on contains a URL.
func (t *tail) hasScheme(from int) bool {
	return t.last(&t.scheme, func(part []byte) int { return bytes.LastIndex(part, []byte("://")) }) >= from
}

// isSlug reports whether the text from a place on is made of words and numbers: every
// part between dashes, dots and the like is one or the other. The place may be inside a
// part, so the first part is examined separately. No two values of a run share it,
// because there is an equals sign or a colon between their beginnings.
func (t *tail) isSlug(from int) bool {
	first := from + letterDigits.run(t.text[from:])
	*t.work += first - from
	return isWordOrNumber(t.text[from:first]) && t.last(&t.part, lastUnword) < first
}

// changesFrom returns how often the class of bytes changes from a place on. It
// continues from the place that it was last asked about. Those places move forward, so
// it walks over the part once.
func (t *tail) changesFrom(from int) int {
	if !t.counted.known {
		t.counted, t.changes = lazyPlace{t.end, true}, 0
	}
	*t.work += max(t.counted.at-from, from-t.counted.at)
	for ; t.counted.at > from; t.counted.at-- {
		t.changes += changeAt(t.text, t.counted.at)
	}
	for ; t.counted.at < from; t.counted.at++ {
		t.changes -= changeAt(t.text, t.counted.at+1)
	}
	return t.changes
}

// changeAt returns 1 if the byte at a place is of another class than the one
// before: if a text goes there from small letters to capitals, or from letters to
// digits or back.
func changeAt(text []byte, at int) int {
	if at >= len(text) {
		return 0
	}
	before, class := classOf(text[at-1]), classOf(text[at])
	if class == before || before == 'A' && class == 'a' {
		return 0
	}
	return 1
}

// isRandom reports whether the text from a place on looks random. Names such as
// testP256PrivateKey change their class rarely; in random text nearly every other byte
// does.
func (t *tail) isRandom(from int) bool {
	return t.isVaried(from) && !isUUID(t.text[from:]) && t.changesOften(from)
}

// changesOften reports whether the text from a place on is no words and numbers, but letters and
// digits among each other.
func (t *tail) changesOften(from int) bool {
	return t.mixed(from) && !t.isSlug(from) && t.changesFrom(from)*5 >= t.end-from
}

// The functions below return the last place from which a text has some property, or -1.
// They go backwards and stop there.

// lastStandIn finds the last stand-in: a word, or eight bytes in their order.
func lastStandIn(text []byte) int {
	rising, same := 1, 1
	for i := len(text) - 1; i >= 0; i-- {
		c := lower(text[i])
		if i+1 < len(text) {
			next := lower(text[i+1])
			rising = countIf(next == c+1 || c == '9' && next == '0', rising)
			same = countIf(next == c && c != '/', same) // tokens in base64 have runs of slashes
		}
		if rising >= minSequence || same >= minSequence || standIns.beginAt(text[i:]) || isVerb(text[i:]) {
			return i
		}
	}
	return -1
}

// countIf counts one more if a sequence continues, and starts again if not.
func countIf(goesOn bool, n int) int {
	if goesOn {
		return n + 1
	}
	return 1
}

// lastVaried finds the last place from which on there are enough different bytes.
func lastVaried(text []byte) int {
	var seen [256]bool
	n := 0
	for i := len(text) - 1; i >= 0; i-- {
		if c := text[i]; !seen[c] {
			seen[c] = true
			if n++; n == enoughDistinct {
				return i
			}
		}
	}
	return -1
}

func lastDigit(text []byte) int { return bytes.LastIndexFunc(text, isDigit) }

func lastLetter(text []byte) int { return bytes.LastIndexFunc(text, isLetter) }

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

// lastOdd finds the last byte that tokens do not have.
func lastOdd(text []byte) int {
	for i := len(text) - 1; i >= 0; i-- {
		if !tokenBytes[text[i]] {
			return i
		}
	}
	return -1
}

// lastUnword finds the last part that is neither a word nor a number.
func lastUnword(text []byte) int {
	for end := len(text); end > 0; end-- {
		start := end
		for start > 0 && letterDigits[text[start-1]] {
			start--
		}
		if !isWordOrNumber(text[start:end]) {
			return start
		}
		end = start
	}
	return -1
}

// wordSet finds out which of at most 64 words begins a text, in any case. Two
// tables say for each byte which words have it first and second.
type wordSet struct {
	first, second [256]uint64
	words         []string
}

func newWordSet(words []string) *wordSet {
	s := &wordSet{words: words}
	for i, w := range words {
		bit := uint64(1) << i
		s.first[w[0]] |= bit
		s.first[upper(w[0])] |= bit
		for c := range s.second {
			if len(w) == 1 || lower(byte(c)) == w[1] {
				s.second[c] |= bit
			}
		}
	}
	return s
}

func (s *wordSet) beginAt(text []byte) bool {
	may := s.first[text[0]]
	if may != 0 && len(text) > 1 {
		may &= s.second[text[1]]
	}
	for ; may != 0; may &= may - 1 {
		if w := s.words[bits.TrailingZeros64(may)]; hasFold(text, w) {
			return true
		}
	}
	return false
}

// hasFold reports whether a text begins with a word that is in lower case.
func hasFold(text []byte, word string) bool {
	if len(text) < len(word) {
		return false
	}
	for i := range len(word) {
		if lower(text[i]) != word[i] {
			return false
		}
	}
	return true
}

// indexFold returns where a word that is in lower case is in a text, in any case, or -1. In a
// lower-case copy it may be elsewhere: bytes that are no UTF-8 become longer there.
func indexFold(text []byte, word string) int {
	for i := range text {
		if hasFold(text[i:], word) {
			return i
		}
	}
	return -1
}
