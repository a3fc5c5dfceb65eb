package redact

import (
	"math/bits"
	"slices"
	"strings"
)

// needles finds any of many short strings in one pass.
//
// Each needle is in one of 64 groups. Three tables say, for each byte, which groups
// have it as the first, second or third byte of a needle. Where the three tables agree
// on a group, one of its needles may begin, and they are compared. Needles that begin
// alike share a group, so the tables seldom agree for nothing: at one of a hundred bytes.
// Everywhere else a byte costs three loads.
type needles struct {
	first, second, third [256]uint64
	groups               [groups][]needle
}

const (
	groups    = 64
	minNeedle = 3
)

// needle is a string to be found. Its number is the caller's.
type needle struct {
	text   string // in lower case if fold
	fold   bool   // upper and lower case are the same
	number int
}

// newNeedles takes the needles that have at least minNeedle bytes.
func newNeedles(all []needle) *needles {
	all = slices.DeleteFunc(slices.Clone(all), func(one needle) bool { return len(one.text) < minNeedle })
	slices.SortStableFunc(all, func(a, b needle) int { return strings.Compare(a.text, b.text) })
	begins := 0 // how many pairs of bytes needles begin with
	isNew := func(i int) bool { return i == 0 || all[i].text[:2] != all[i-1].text[:2] }
	for i := range all {
		if isNew(i) {
			begins++
		}
	}
	n := &needles{}
	seen := -1
	for i, one := range all {
		if isNew(i) {
			seen++
		}
		group := seen * groups / max(begins, groups)
		n.groups[group] = append(n.groups[group], one)
		for at, table := range []*[256]uint64{&n.first, &n.second, &n.third} {
			c := one.text[at]
			table[c] |= 1 << group
			if one.fold {
				table[upper(c)] |= 1 << group
			}
		}
	}
	return n
}

// scan calls hit for each place at which a needle begins.
func (n *needles) scan(text []byte, hit func(at int, found *needle)) {
	if len(text) < minNeedle {
		return
	}
	a, b := text[0], text[1]
	for i, c := range text[2:] {
		if n.first[a]&n.second[b]&n.third[c] != 0 {
			n.check(text, i, hit)
		}
		a, b = b, c
	}
}

// check compares the needles that may begin at a place.
func (n *needles) check(text []byte, at int, hit func(at int, found *needle)) {
	may := n.first[text[at]] & n.second[text[at+1]] & n.third[text[at+2]]
	for ; may != 0; may &= may - 1 {
		group := bits.TrailingZeros64(may)
		for i := range n.groups[group] {
			if one := &n.groups[group][i]; one.isAt(text, at) {
				hit(at, one)
			}
		}
	}
}

// isAt compares from the end: the tables have already seen the beginning.
func (n *needle) isAt(text []byte, at int) bool {
	if len(text)-at < len(n.text) {
		return false
	}
	for i := len(n.text) - 1; i >= 0; i-- {
		c := text[at+i]
		if c != n.text[i] && !(n.fold && lower(c) == n.text[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}
