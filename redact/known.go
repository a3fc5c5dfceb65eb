package redact

import (
	"cmp"
	"slices"
	"strings"
)

// automaton finds any of many strings. Thousands of them may begin alike, for example
// all tokens of one kind in a store.
//
// It is an Aho-Corasick automaton that runs through a text from its end to its
// beginning. So at each place its state gives the longest string that begins there, and
// choosing the earliest and longest match needs no backtracking: the time is linear in
// the text, however many strings there are and however much they have in common.
//
// States are numbered by depth. The children of a state are neighbours, in the order of their
// bytes, and those of the next state follow.
type automaton struct {
	label    []byte  // of the step that leads to a state
	children []int32 // the first one of each state; those of the next end them
	fail     []int32 // the longest other state that the state ends with
	longest  []int32 // the longest string that the state ends with, or -1
	forms    []form
	ends     [256]bool // the bytes that strings end with
}

// form is a string to be found. Its number is the caller's; of two equal ones, the
// lower number counts.
type form struct {
	text   string
	number int
}

// hit is a string that was found.
type hit struct {
	span
	number int
}

// newAutomaton takes strings that are not empty.
func newAutomaton(forms []form) *automaton {
	for i := range forms {
		forms[i].text = backward(forms[i].text)
	}
	slices.SortFunc(forms, func(a, b form) int {
		return cmp.Or(strings.Compare(a.text, b.text), cmp.Compare(a.number, b.number))
	})
	forms = slices.CompactFunc(forms, func(a, b form) bool { return a.text == b.text })
	a := &automaton{forms: forms, label: []byte{0}}
	a.build()
	a.link()
	for _, f := range forms {
		a.ends[f.text[0]] = true
	}
	return a
}

func backward(text string) string {
	out := []byte(text)
	slices.Reverse(out)
	return string(out)
}

// build makes the states. Each covers a part of the sorted list, and its children cover
// parts of that part.
func (a *automaton) build() {
	parts := []span{{0, len(a.forms)}}
	depth, last := 0, 0 // last is the last state of the depth
	for state := 0; state < len(parts); state++ {
		if state > last {
			depth, last = depth+1, len(parts)-1
		}
		a.children = append(a.children, int32(len(parts)))
		part, own := parts[state], int32(-1)
		if part.start < part.end && len(a.forms[part.start].text) == depth {
			own = int32(part.start)
			part.start++
		}
		a.longest = append(a.longest, own)
		for part.start < part.end {
			c, end := a.forms[part.start].text[depth], part.start+1
			for end < part.end && a.forms[end].text[depth] == c {
				end++
			}
			a.label = append(a.label, c)
			parts = append(parts, span{part.start, end})
			part.start = end
		}
	}
	a.children = append(a.children, int32(len(parts)))
}

// link finds the fallback of each state: one step from the fallback of its parent. Both
// have lower numbers, so they are known already.
func (a *automaton) link() {
	a.fail = make([]int32, len(a.label))
	for state := range int32(len(a.label)) {
		for child := a.children[state]; child < a.children[state+1]; child++ {
			if state > 0 {
				a.fail[child] = a.step(a.fail[state], a.label[child])
			}
			if a.longest[child] < 0 {
				a.longest[child] = a.longest[a.fail[child]]
			}
		}
	}
}

// step returns the state after one more byte. It falls back at most as often as it has
// stepped forward, which makes the whole scan linear.
func (a *automaton) step(state int32, c byte) int32 {
	for {
		from, to := a.children[state], a.children[state+1]
		if i, ok := slices.BinarySearch(a.label[from:to], c); ok {
			return from + int32(i)
		}
		if state == 0 {
			return 0
		}
		state = a.fail[state]
	}
}

// find returns the strings in a text, in order. They do not overlap: the one that
// begins first counts, and of those that begin at the same place, the longest.
func (a *automaton) find(text []byte) []hit {
	var hits []hit
	state := int32(0)
	for i := len(text) - 1; i >= 0; i-- {
		if state == 0 && !a.ends[text[i]] {
			continue
		}
		state = a.step(state, text[i])
		if n := a.longest[state]; n >= 0 {
			hits = append(hits, hit{span{i, i + len(a.forms[n].text)}, a.forms[n].number})
		}
	}
	slices.Reverse(hits)
	end := 0
	return slices.DeleteFunc(hits, func(h hit) bool {
		if h.start < end {
			return true
		}
		end = h.end
		return false
	})
}
