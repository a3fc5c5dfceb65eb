package redact

import (
	"bytes"
	"cmp"
	"slices"
)

// look is one look at a text: the text, and what the rules have learned about it.
//
// Text may be hostile, and one that stalls the scanner stalls whoever writes it
// down. So the time that a look takes must grow with the length of the text and no
// faster, although a text can have an anchor every three bytes, and what follows
// an anchor can be as long as the text. Three things see to that; each rule says
// which of them it relies on:
//
//   - What is looked at after one anchor is disjoint from what is looked at after
//     another, because the anchor has a byte that ends it.
//   - What is looked at has a fixed bound, of a few dozen bytes.
//   - What is looked at is the rest of a run or of a value that was looked at
//     before. Then run and tail remember what they saw.
type look struct {
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
	quoted  *tail // of the latest value in quotes
	marks   []span
	marked  bool // marks are known
	markSet *markSet
	// work counts the bytes that were looked at after anchors, so that a test can
	// tell that there are not too many.
	work int
}

func newLook(text []byte, marks *markSet) *look {
	l := &look{text: text, markSet: marks}
	l.read.after = -1
	return l
}

// span is a part of a text.
type span struct{ start, end int }

// run is the part of a text around a place that has bytes of one alphabet only.
type run struct {
	of *alphabet
	span
	tail     *tail // nil until it is needed
	valueEnd int   // see bareEnd; -1 until it is needed
}

// run returns the run of an alphabet at a place; it is empty, or ends there, if
// there is none.
//
// It walks over each run once: the places that rules ask for go forward with the
// anchors. They go back by less than the length of an anchor, so only the last few
// places of a run can be asked for after another run has been.
func (l *look) run(of *alphabet, at int) *run {
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
func (l *look) bodyTail(r *run) *tail {
	if r.tail == nil {
		r.tail = newTail(l.text, r.start, r.end, &l.work)
	}
	return r.tail
}

// plain returns how many bytes after a place are in an alphabet. It remembers
// nothing: it is for runs that no two anchors share.
func (l *look) plain(of *alphabet, at int) int {
	n := of.run(l.text[at:])
	l.work += n
	return n
}

// tailOf returns the tail that is a value in quotes. Values inside one another end
// at the same quote, and share what is known of them.
func (l *look) tailOf(v span) *tail {
	if l.quoted == nil || l.quoted.end != v.end || v.start < l.quoted.start {
		l.quoted = newTail(l.text, v.start, v.end, &l.work)
	}
	return l.quoted
}

// touchesMark reports whether a place has a part of a replacement in it.
func (l *look) touchesMark(place span) bool { return l.beforeMark(place) < place.end }

// beforeMark returns where the first replacement begins in a place, or the end of
// the place.
func (l *look) beforeMark(place span) int {
	if !l.marked {
		l.marks, l.marked = l.markSet.in(l.text), true
	}
	i, _ := slices.BinarySearchFunc(l.marks, place.start, func(m span, start int) int { return cmp.Compare(m.end, start+1) })
	if i == len(l.marks) {
		return place.end
	}
	return min(place.end, l.marks[i].start)
}

// markSet is the kinds that replacements may have.
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

// in returns where replacements stand in a text. Only a whole one is one, with a
// kind that there is: whatever else begins like one may be there to hide a secret.
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
