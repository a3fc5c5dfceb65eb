package index

import (
	"encoding/binary"
	"math"
)

// SQLite's own BM25 counts, for every word of a query, all documents that have it: a quarter
// of a second for a common word in a million documents. So we rank ourselves, with what a
// document's row has: its length, and the tokens that occur in it more than once. The others
// occur once, or the document would not have been found.

// The usual parameters of BM25.
const (
	bm25K = 1.2
	bm25B = 0.75
)

// hashTerm returns a hash of 24 bits for a token. Two tokens of one document
// rarely share them, and if they do, a hit is ranked a little too high.
func hashTerm(term string) uint32 {
	sum := uint32(2166136261) // FNV-1a
	for i := range len(term) {
		sum = (sum ^ uint32(term[i])) * 16777619
	}
	return (sum>>24 ^ sum) & 0xffffff
}

// countIn returns how often a token occurs in the document whose repeated tokens
// are given, if it occurs at all.
func countIn(tf []byte, hash uint32) int {
	lo, hi := 0, len(tf)/4
	for lo < hi {
		mid := (lo + hi) / 2
		r := binary.BigEndian.Uint32(tf[4*mid:])
		switch {
		case r>>8 == hash:
			return int(r & 0xff)
		case r>>8 < hash:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 1
}

// weight is how significant a term is that df of n documents have.
func weight(df, n float64) float64 {
	df = min(df, n)
	return math.Log(1 + (n-df+0.5)/(df+0.5))
}

// bm25 is the score of one term of a document: it occurs tf times among length tokens, and
// the average document has avg.
func bm25(weight, tf, length, avg float64) float64 {
	return weight * tf * (bm25K + 1) / (tf + bm25K*(1-bm25B+bm25B*length/max(avg, 1)))
}

const dayMillis = 24 * 60 * 60 * 1000

// recency is the factor for a text that is some days older than the newest match: the newest
// counts a quarter more than one of long before it.
func recency(days float64) float64 {
	return 1 + 0.25*math.Exp2(-days/30)
}
