package redact

import (
	"slices"
	"sync"
)

// Scanner finds secrets. The zero value knows the rules and nothing else.
type Scanner struct {
	// Keep, if not nil, is asked about each string of a JSON value in which something was
	// found. If it returns true, the string stays as it is.
	Keep func(path string) bool
	// Spare, if not nil, is asked about each secret that a rule has found. If it returns true,
	// the secret stays as it is, except for what NewScanner was given.
	Spare func(Finding) bool
	// Seen, if not nil, is called with each secret that is found and stays neither by Keep nor
	// by Spare. It is the only way to get a secret out of this package.
	Seen func(kind, secret string)
	// SameLength makes each replacement as long as the secret was, so that nothing else
	// moves: a replacement that is too short is padded with asterisks, and one that is too
	// long consists of asterisks only.
	SameLength bool
	// OnlyKnown skips the rules: only the secrets that were given to NewScanner are found.
	OnlyKnown bool

	known *automaton
	kinds []string // of the known secrets, by number
	sames []uint64 // theirs, by number
	marks *markSet // nil means those of the rules
}

// Given is the kind of a secret that no rule found: a person named it.
const Given = "value"

// Known is a secret to be found wherever it is, whatever is around it.
type Known struct {
	Kind  string
	Value string
}

// minKnown is the minimum length of a known secret. A shorter one would be found in the
// middle of words.
const minKnown = 8

// NewScanner returns a scanner that also finds the given secrets, plain and as they
// look inside a JSON string. It ignores those of less than eight bytes.
func NewScanner(known ...Known) *Scanner {
	s := &Scanner{}
	var all []form
	for _, k := range known {
		if len(k.Value) < minKnown {
			continue
		}
		for _, text := range forms(k.Value) {
			if len(text) >= minKnown {
				all = append(all, form{text: text, number: len(s.kinds)})
			}
		}
		s.kinds, s.sames = append(s.kinds, k.Kind), append(s.sames, SameAs([]byte(k.Value)))
	}
	if len(all) > 0 {
		s.known = newAutomaton(all)
		s.marks = newMarkSet(slices.Concat(builtin().kinds, s.kinds))
	}
	return s
}

// forms returns the ways in which a value may appear in a text: plain, and escaped once, both
// as the view shows them.
func forms(value string) []string {
	escaped := appendQuoted(nil, []byte(value))
	all := []string{string(Uncoloured([]byte(value)))}
	if inner := string(Uncoloured(escaped[1 : len(escaped)-1])); inner != all[0] {
		all = append(all, inner)
	}
	return all
}

// Find returns the secrets in a text, in order. They do not overlap.
func (s *Scanner) Find(text []byte) []Finding {
	found := s.find("", text)
	s.report(text, found)
	return found
}

func (s *Scanner) report(text []byte, found []Finding) {
	if s.Seen == nil {
		return
	}
	for _, f := range found {
		s.Seen(f.Kind, string(Uncoloured(text[f.Start:f.End])))
	}
}

// Text replaces the secrets in a text and returns what it replaced. The places are
// those in the given text.
func (s *Scanner) Text(text string) (string, []Finding) {
	found := s.Find([]byte(text))
	if len(found) == 0 {
		return text, nil
	}
	return string(s.replace([]byte(text), found)), found
}

// Find returns the secrets in a text, in order. They do not overlap.
func Find(text []byte) []Finding { return new(Scanner).Find(text) }

// Text replaces the secrets in a text and returns what it replaced. The places are
// those in the given text.
func Text(text string) (string, []Finding) { return new(Scanner).Text(text) }

// A text is searched at most mostRounds times. Two or three rounds are enough unless
// secrets are run together on purpose: AccountKey= repeated has one at its end, and
// when that is gone, another one at its end. So after exactRounds, everything that a
// secret is attached to goes with it.
const (
	exactRounds = 4
	mostRounds  = 16
)

// find searches a text that is the value of a name, or of none. Replacing one secret
// can uncover another that was attached to it, so it searches until nothing more is
// found: redacting a redacted text changes nothing.
func (s *Scanner) find(name string, text []byte) []Finding {
	if s.OnlyKnown {
		return s.Known(text)
	}
	v := viewOf(text)
	return v.restore(s.findPlain(name, v.plain))
}

func (s *Scanner) findPlain(name string, text []byte) []Finding {
	found, _ := s.round(name, text)
	for round := 1; len(found) > 0 && round <= mostRounds; round++ {
		uncovered, _ := s.round(name, s.replace(text, found))
		all := s.merge(text, found, uncovered, round > exactRounds)
		if len(all) == len(found) {
			break
		}
		found = all
	}
	return found
}

// round searches a text once. It also returns how many bytes after anchors it examined.
func (s *Scanner) round(name string, text []byte) (found []Finding, work int) {
	rules := builtin()
	var l *textScan // most texts have no anchor
	var all [ranks][]candidate
	rules.anchors.scan(text, func(at int, found *needle) {
		if l == nil {
			l = newTextScan(text, s.markSet())
		}
		r := &rules.list[found.number]
		if c, ok := r.match(l, at, len(found.text)); ok && !l.overlapsMark(c.span) {
			all[r.rank] = append(all[r.rank], c)
		}
	})
	if c, ok := namedValue(name, text, s.markSet()); ok {
		all[rankNamed] = append(all[rankNamed], c)
	}
	if l != nil {
		work = l.work
	}
	found = resolveOverlaps(text, &all)
	if s.Spare != nil {
		found = slices.DeleteFunc(found, s.Spare)
	}
	return s.addKnown(text, found), work
}

// markSet returns the replacements that the scanner may make.
func (s *Scanner) markSet() *markSet {
	if s.marks == nil {
		return builtin().marks
	}
	return s.marks
}

// Known finds the secrets that NewScanner was given, in order, without using the
// rules.
func (s *Scanner) Known(text []byte) []Finding {
	v := viewOf(text)
	return v.restore(s.addKnown(v.plain, nil))
}

// addKnown adds the known secrets between what was found, but not inside replacements:
// a password may be "password".
func (s *Scanner) addKnown(text []byte, found []Finding) []Finding {
	if s.known == nil {
		return found
	}
	var all []Finding
	from := 0
	between := func(to int) {
		for _, h := range s.known.find(text[from:to]) {
			start, end := from+h.start, from+h.end
			all = append(all, Finding{Kind: s.kinds[h.number], Start: start, End: end, Same: s.sames[h.number], Preview: preview("", text[start:end])})
		}
	}
	marks := s.marks.in(text)
	skipMarks := func(to int) {
		for len(marks) > 0 && marks[0].start < to {
			between(marks[0].start)
			from, marks = marks[0].end, marks[1:]
		}
	}
	for _, f := range found {
		skipMarks(f.Start)
		between(f.Start)
		all, from = append(all, f), f.End
	}
	skipMarks(len(text))
	between(len(text))
	return all
}

// ruleSet is all rules, and how to find where they may apply.
type ruleSet struct {
	list    []rule
	kinds   []string // of all of them
	marks   *markSet
	anchors *needles
}

// builtin makes the rules on first use.
var builtin = sync.OnceValue(func() *ruleSet {
	set := &ruleSet{list: allRules(), kinds: []string{Given}}
	var all []needle
	for number, r := range set.list {
		set.kinds = append(set.kinds, r.kinds...)
		for _, anchor := range r.anchors {
			all = append(all, needle{text: anchor, fold: r.fold, number: number})
		}
	}
	set.anchors = newNeedles(all)
	set.marks = newMarkSet(set.kinds)
	return set
})
