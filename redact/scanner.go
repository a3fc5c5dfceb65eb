package redact

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
)

// Scanner finds secrets. The zero value knows the rules and nothing else.
type Scanner struct {
	// Keep, if it is not nil, is asked about each string of a JSON value in which
	// something was found; if it returns true, the string stays as it is.
	Keep func(path string) bool
	// Seen, if it is not nil, is told each secret that is found and not kept. It
	// is the only way to learn one from this package.
	Seen func(kind, secret string)
	// SameLength makes what stands in the place of a secret as long as it was, so
	// that the places of everything else stay what they were: a replacement that
	// is too short is filled up with asterisks, and one that is too long is nothing
	// but asterisks.
	SameLength bool
	// OnlyKnown leaves the rules out: only the secrets that NewScanner was told of
	// are found.
	OnlyKnown bool

	known *needles
	kinds []string // of the known secrets, by number
}

// Known is a secret that is to be found wherever it stands, whatever stands
// around it.
type Known struct {
	Kind  string
	Value string
}

// minKnown is the least length of a known secret: a shorter one would be found in
// the middle of words.
const minKnown = 8

// NewScanner returns a scanner that also finds the given secrets, as they are and
// as they look inside a JSON string. Those of less than eight bytes are not looked
// for.
func NewScanner(known ...Known) *Scanner {
	s := &Scanner{}
	var all []needle
	for _, k := range known {
		if len(k.Value) < minKnown {
			continue
		}
		for _, form := range forms(k.Value) {
			all = append(all, needle{text: form, number: len(s.kinds)})
		}
		s.kinds = append(s.kinds, k.Kind)
	}
	if len(all) > 0 {
		s.known = newNeedles(all)
	}
	return s
}

// forms returns the ways in which a value may stand in a text: as it is, and
// escaped once.
func forms(value string) []string {
	escaped := appendQuoted(nil, []byte(value))
	if inner := string(escaped[1 : len(escaped)-1]); inner != value {
		return []string{value, inner}
	}
	return []string{value}
}

// Find returns the secrets in a text, in order. They do not overlap.
func (s *Scanner) Find(text []byte) []Finding {
	found := s.find("", text)
	s.tell(text, found)
	return found
}

func (s *Scanner) tell(text []byte, found []Finding) {
	if s.Seen == nil {
		return
	}
	for _, f := range found {
		s.Seen(f.Kind, string(text[f.Start:f.End]))
	}
}

// Text replaces the secrets in a text, and returns what it replaced. The places
// are those in the text that was given.
func (s *Scanner) Text(text string) (string, []Finding) {
	found := s.Find([]byte(text))
	if len(found) == 0 {
		return text, nil
	}
	return string(s.replace([]byte(text), found)), found
}

// Find returns the secrets in a text, in order. They do not overlap.
func Find(text []byte) []Finding { return new(Scanner).Find(text) }

// Text replaces the secrets in a text, and returns what it replaced. The places
// are those in the text that was given.
func Text(text string) (string, []Finding) { return new(Scanner).Text(text) }

// candidate is a finding that others may overlap.
type candidate struct {
	Finding
	rank int // where two overlap, the lower one counts
}

// The ranks: what names its kind exactly wins over what only has a telling name
// before it.
const (
	rankExact = iota
	rankPlaced
	rankNamed
	rankKnown
)

// mostRounds bounds how often a text is looked at again. Two or three rounds are
// enough unless somebody glues secrets together for sport.
const mostRounds = 16

// find looks at a text that is the value of a name, or of none. Replacing one
// secret can uncover another that was glued to it, so it looks until there is
// nothing more to find: what was redacted once has nothing left to be redacted.
func (s *Scanner) find(name string, text []byte) []Finding {
	if s.OnlyKnown {
		return s.Known(text)
	}
	found := settle(s.candidates(name, text))
	for round := 0; len(found) > 0 && round < mostRounds; round++ {
		uncovered := settle(s.candidates(name, s.replace(text, found)))
		if len(uncovered) == 0 {
			break
		}
		found = s.merge(found, uncovered)
	}
	return found
}

// merge adds findings whose places are those in a text in which found has been
// replaced.
func (s *Scanner) merge(found, uncovered []Finding) []Finding {
	all := slices.Clone(found)
	for _, u := range uncovered {
		shift := 0
		for _, f := range found {
			if u.Start < f.Start+shift {
				break
			}
			n := f.End - f.Start
			shift += len(s.replacement(f.Kind, n)) - n
		}
		u.Start, u.End = u.Start-shift, u.End-shift
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b Finding) int { return cmp.Compare(a.Start, b.Start) })
	return all
}

// candidates returns all that the rules find in a text, and what is known.
func (s *Scanner) candidates(name string, text []byte) []candidate {
	rules := builtin()
	var all []candidate
	rules.anchors.scan(text, func(at int, found *needle) {
		r := &rules.list[found.number]
		if c, ok := r.match(text, at, len(found.text)); ok && !touchesMark(text, c.Start, c.End) {
			c.rank = r.rank
			all = append(all, c)
		}
	})
	if c, ok := namedValue(name, text); ok {
		all = append(all, c)
	}
	return append(all, s.knownIn(text)...)
}

// Known returns where the secrets stand that the scanner was told of, in order;
// the rules are not asked.
func (s *Scanner) Known(text []byte) []Finding { return settle(s.knownIn(text)) }

func (s *Scanner) knownIn(text []byte) []candidate {
	if s.known == nil {
		return nil
	}
	var all []candidate
	s.known.scan(text, func(at int, found *needle) {
		secret := text[at : at+len(found.text)]
		all = append(all, candidate{
			Finding{Kind: s.kinds[found.number], Start: at, End: at + len(secret), Preview: preview("", secret)},
			rankKnown,
		})
	})
	return all
}

// touchesMark reports whether a place has a part of a replacement in it.
func touchesMark(text []byte, start, end int) bool {
	const longest = 64 // more than a mark and a kind have
	from := max(0, start-longest)
	if at := bytes.LastIndex(text[from:start], []byte(mark)); at >= 0 && bytes.IndexByte(text[from+at:start], ']') < 0 {
		return true
	}
	return bytes.Contains(text[start:end], []byte(mark))
}

// settle decides where candidates overlap.
func settle(all []candidate) []Finding {
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	var taken []Finding
	for _, c := range all {
		at, _ := slices.BinarySearchFunc(taken, c.Start, func(f Finding, start int) int { return cmp.Compare(f.Start, start) })
		free := (at == 0 || taken[at-1].End <= c.Start) && (at == len(taken) || c.End <= taken[at].Start)
		if free {
			taken = slices.Insert(taken, at, c.Finding)
		}
	}
	return taken
}

// ruleSet is all rules, and how to find where they may apply.
type ruleSet struct {
	list    []rule
	anchors *needles
}

// builtin makes the rules when they are first needed.
var builtin = sync.OnceValue(func() *ruleSet {
	set := &ruleSet{list: allRules()}
	var all []needle
	for number, r := range set.list {
		for _, anchor := range r.anchors {
			all = append(all, needle{text: anchor, fold: r.fold, number: number})
		}
	}
	set.anchors = newNeedles(all)
	return set
})
