package redact

import (
	"bytes"
	"cmp"
	"slices"
)

// textScan is one pass over a text: the text, and what the rules have learned about it.
//
// Text may be hostile, and a text that stalls the scanner stalls the program that
// records it. So the time must be linear in the length of the text, although a text can
// have an anchor every three bytes, and what follows an anchor can be as long as the
// text. Three things ensure that; each rule says which of them it relies on:
//
//   - The bytes examined after one anchor are disjoint from those after another, because the
//     anchor contains a byte that ends them.
//   - The number of bytes examined has a fixed limit of a few dozen.
//   - The bytes examined are the rest of a run or a value that was examined before. Then run
//     and tail remember what they saw.
type textScan struct {
	text []byte
	runs []run // the latest of each alphabet
	key  keyWalk
	jwt  jwtHeads
	// The latest name of a secret, and the value after it.
	name struct{ start, end int }
	read struct {
		after  int // the end of the name
		flag   bool
		result value
		ok     bool
	}
	quoted *tail // of the latest value in quotes
	// Where the latest command line and the latest key without its first line end.
	commandEnd, bodyEnd int
	otpEnd              int // of the latest address of a one-time password

	marks   []span
	marked  bool // marks are known
	markSet *markSet
	// work counts the bytes examined after anchors, so that a test can check that there are
	// not too many.
	work int
}

func newTextScan(text []byte, marks *markSet) *textScan {
	l := &textScan{text: text, markSet: marks}
	l.read.after = -1
	return l
}

// span is a part of a text.
type span struct{ start, end int }

// run is the part of a text around a place that consists of bytes of one alphabet.
type run struct {
	of *alphabet
	span
	tail     *tail // nil until it is needed
	valueEnd int   // see bareEnd; -1 until it is needed
}

// run returns the run of an alphabet at a place. If there is none, it is empty or ends there.
//
// It walks over each run once, because the places that rules ask for move forward with
// the anchors. They go back by less than the length of an anchor, so once a rule has
// asked for another run, rules can only ask for the last few places of this one.
func (l *textScan) run(of *alphabet, at int) *run {
	i := slices.IndexFunc(l.runs, func(r run) bool { return r.of == of })
	if i < 0 {
		i = len(l.runs)
		l.runs = append(l.runs, run{of: of, span: span{-1, -1}})
	}
	r := &l.runs[i]
	if r.start <= at && at <= r.end {
		return r
	}
	start, end := at, at+of.run(l.text[at:])
	for start > 0 && of[l.text[start-1]] {
		start--
	}
	l.work += end - start
	r.span, r.tail, r.valueEnd = span{start, end}, nil, -1
	return r
}

// bodyTail returns the tail of a run.
func (l *textScan) bodyTail(r *run) *tail {
	if r.tail == nil {
		r.tail = newTail(l.text, r.start, r.end, &l.work)
	}
	return r.tail
}

// plain returns how many bytes after a place are in an alphabet. It remembers nothing,
// so it is only for runs that no two anchors share.
func (l *textScan) plain(of *alphabet, at int) int {
	n := of.run(l.text[at:])
	l.work += n
	return n
}

// tailOf returns the tail that is a value in quotes. Nested values end at the same
// quote and share what is known about them.
func (l *textScan) tailOf(v span) *tail {
	if l.quoted == nil || l.quoted.end != v.end || v.start < l.quoted.start {
		l.quoted = newTail(l.text, v.start, v.end, &l.work)
	}
	return l.quoted
}

// overlapsMark reports whether a place contains a part of a replacement.
func (l *textScan) overlapsMark(place span) bool { return l.beforeMark(place) < place.end }

// beforeMark returns where the first replacement begins in a place, or the end of
// the place.
func (l *textScan) beforeMark(place span) int {
	if !l.marked {
		l.marks, l.marked = l.markSet.in(l.text), true
	}
	i, _ := slices.BinarySearchFunc(l.marks, place.start, func(m span, start int) int { return cmp.Compare(m.end, start+1) })
	if i == len(l.marks) {
		return place.end
	}
	return min(place.end, l.marks[i].start)
}

// markSet is the set of kinds that replacements may have.
type markSet struct {
	kinds   map[string]bool
	longest int
}

func newMarkSet(kinds []string) *markSet {
	s := &markSet{kinds: make(map[string]bool)}
	for _, kind := range kinds {
		s.kinds[kind] = true
		s.longest = max(s.longest, len(kind))
	}
	return s
}

// in returns where replacements are in a text. Only a whole one with an existing kind
// counts: anything else that begins like one may be there to hide a secret.
func (s *markSet) in(text []byte) []span {
	var all []span
	for from := 0; ; {
		n := bytes.Index(text[from:], []byte(mark))
		if n < 0 {
			return all
		}
		start := from + n
		from = start + len(mark)
		rest := text[from:min(len(text), from+s.longest+1)]
		if n := bytes.IndexByte(rest, ']'); n >= 0 && s.kinds[string(rest[:n])] {
			from += n + 1
			all = append(all, span{start, from})
		}
	}
}
