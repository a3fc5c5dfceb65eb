package index

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// vocabulary numbers the tokens of a batch, so that each is looked up once and is a number
// from then on. Looking them up is a good part of all reading, so it has a hash table of its
// own, which takes a fraction of the time of a map: nearly all words are short enough to be a
// number themselves, which is in the slot, and nearly always the first slot is the right one.
type vocabulary struct {
	slots  []slot // a power of two; at most half of them are used
	words  []string
	stats  []wordStats     // of the tokens of text, which come before the facets
	tokens []uint32        // memory for the tokens of the latest documents
	text   strings.Builder // memory for the latest words

	// Of the current document:
	nth      uint32 // which document it is; the first is 1
	distinct []uint32
	repeated []uint32
}

// slot is a place in the hash table. The zero value is free.
type slot struct {
	key  uint64 // a short word itself, see shortKey; or the hash of a longer one
	size uint32 // of the word
	next uint32 // the number, plus one
}

// maxShort is the length of the words that fit into a key.
const maxShort = 8

// wordStats is how often a token occurs.
type wordStats struct {
	df    int64  // documents that have it
	nth   uint32 // the last of them
	count uint32 // how often it is in that one
	hash  uint32
}

func newVocabulary() *vocabulary { return &vocabulary{slots: make([]slot, 1<<10)} }

// vocabularySeed makes it impossible to prepare a text whose words all have the same hash.
var (
	vocabularySeed = maphash.MakeSeed()
	shortSeed      = maphash.Comparable(vocabularySeed, 1)
	shortFactor    = maphash.Comparable(vocabularySeed, 2) | 1
)

// shortKey returns a word of at most maxShort bytes as a number, its first byte the
// lowest. No two words have the same, because none has a zero byte at its end.
func shortKey(word string) uint64 {
	switch n := len(word); {
	case n == maxShort:
		return load8(word, 0)
	case n >= 4: // the first four bytes and the last four
		return uint64(load4(word)) | uint64(load4(word[n-4:]))<<(8*(n-4))
	case n > 0:
		return uint64(word[0]) | uint64(word[n/2])<<(8*(n/2)) | uint64(word[n-1])<<(8*(n-1))
	}
	return 0
}

// hash returns where the search for a word begins.
func (s slot) hash() uint32 {
	if s.size > maxShort {
		return uint32(s.key)
	}
	high, low := bits.Mul64(s.key^shortSeed, shortFactor^uint64(s.size))
	return uint32(high ^ low)
}

// number returns the number of a token.
func (v *vocabulary) number(word string) uint32 {
	if len(word) <= maxShort {
		return v.find(shortKey(word), word)
	}
	return v.find(maphash.String(vocabularySeed, word), word)
}

// find returns the number of a token whose key is known.
func (v *vocabulary) find(key uint64, word string) uint32 {
	want := slot{key: key, size: uint32(len(word))}
	mask := uint32(len(v.slots) - 1)
	for at := want.hash() & mask; ; at = (at + 1) & mask {
		s := &v.slots[at]
		if s.key == want.key && s.size == want.size && s.next != 0 && (s.size <= maxShort || v.words[s.next-1] == word) {
			return s.next - 1
		}
		if s.next == 0 {
			want.next = uint32(len(v.words)) + 1
			*s = want
			break
		}
	}
	v.words = append(v.words, v.keep(word))
	if 2*len(v.words) > len(v.slots) {
		v.grow()
	}
	return uint32(len(v.words) - 1)
}

// grow doubles the hash table.
func (v *vocabulary) grow() {
	old := v.slots
	v.slots = make([]slot, 2*len(old))
	mask := uint32(len(v.slots) - 1)
	for _, s := range old {
		if s.next == 0 {
			continue
		}
		at := s.hash() & mask
		for v.slots[at].next != 0 {
			at = (at + 1) & mask
		}
		v.slots[at] = s
	}
}

// keep copies a word, so that the text it is part of can be freed. Many words
// share one piece of memory.
func (v *vocabulary) keep(word string) string {
	const piece = 16 << 10
	if v.text.Cap()-v.text.Len() < len(word) {
		v.text.Reset()
		v.text.Grow(max(piece, len(word)))
	}
	at := v.text.Len()
	v.text.WriteString(word)
	return v.text.String()[at:]
}

// keepNumbers copies the tokens of a document. Those of many documents share one piece
// of memory.
func (v *vocabulary) keepNumbers(tokens []uint32) []uint32 {
	const piece = 8 << 10
	if cap(v.tokens)-len(v.tokens) < len(tokens) {
		v.tokens = make([]uint32, 0, max(piece, len(tokens)))
	}
	at := len(v.tokens)
	v.tokens = append(v.tokens, tokens...)
	return v.tokens[at:len(v.tokens):len(v.tokens)]
}

// count returns the number of a token, and counts it for the current document.
func (v *vocabulary) count(word string) uint32 { return v.counted(v.number(word), word) }

// countShort is count for a word whose shortKey is known.
func (v *vocabulary) countShort(key uint64, word string) uint32 {
	return v.counted(v.find(key, word), word)
}

func (v *vocabulary) counted(n uint32, word string) uint32 {
	if int(n) == len(v.stats) {
		v.stats = append(v.stats, wordStats{hash: hashTerm(word)})
	}
	s := &v.stats[n]
	if s.nth != v.nth {
		s.nth, s.count = v.nth, 0
		s.df++
		v.distinct = append(v.distinct, n)
	}
	s.count++
	return n
}

// begin begins another document.
func (v *vocabulary) begin() {
	v.nth++
	v.distinct = v.distinct[:0]
}

// maxCounted is how many of a document's repeated tokens are kept.
const maxCounted = 64

// counts returns the document's repeated tokens, sorted, four bytes each: the hash and
// how often, 255 at most.
func (v *vocabulary) counts() []byte {
	repeated := v.repeated[:0]
	for _, n := range v.distinct {
		if s := &v.stats[n]; s.count > 1 {
			repeated = append(repeated, min(s.count, 255)<<24|s.hash)
		}
	}
	v.repeated = repeated
	if len(repeated) > maxCounted {
		slices.Sort(repeated)
		repeated = repeated[len(repeated)-maxCounted:]
	}
	for i, r := range repeated {
		repeated[i] = r<<8 | r>>24
	}
	slices.Sort(repeated)
	buf := make([]byte, 0, 4*len(repeated))
	for _, r := range repeated {
		buf = binary.BigEndian.AppendUint32(buf, r)
	}
	return buf
}

// maxTermTable is how many tokens are counted before the counts are written.
const maxTermTable = 100_000

// termTable has, for the duration of a CatchUp, the tokens that the index has, and in how
// many more documents each occurs than the index says. A token is written when it first
// occurs, because a prefix must find it; its frequency may wait, and is lost if the process
// ends before.
type termTable struct{ df map[string]int64 }

func newTermTable() *termTable { return &termTable{df: make(map[string]int64)} }

// isBehind reports whether frequencies wait to be written.
func (t *termTable) isBehind() bool {
	for _, df := range t.df {
		if df > 0 {
			return true
		}
	}
	return false
}

// addTerms counts documents by the tokens that they have.
func (w *writer) addTerms(v *vocabulary) error {
	var fresh []int
	for i := range v.stats {
		term, df := v.words[i], v.stats[i].df
		if before, known := w.terms.df[term]; known {
			w.terms.df[term] = before + df
			continue
		}
		w.terms.df[term] = 0
		fresh = append(fresh, i)
	}
	// Writing in the order of the table takes a fraction of the time.
	slices.SortFunc(fresh, func(a, b int) int { return strings.Compare(v.words[a], v.words[b]) })
	for _, i := range fresh {
		if err := w.add(w.termRows, v.words[i], v.stats[i].df, stemOf(v.words[i])); err != nil {
			return err
		}
	}
	return nil
}

// flushTerms writes the counts.
func (w *writer) flushTerms() error {
	if err := w.writeBulk(w.termRows); err != nil { // one statement must not have a term twice
		return err
	}
	for _, term := range slices.Sorted(maps.Keys(w.terms.df)) { // in the order of the table
		if df := w.terms.df[term]; df > 0 {
			if err := w.add(w.termRows, term, df, ""); err != nil { // addTerms wrote the row, and its stem
				return err
			}
		}
	}
	clear(w.terms.df)
	return w.writeBulk(w.termRows)
}
