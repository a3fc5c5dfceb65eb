package code

import (
	"regexp/syntax"
	"strings"
	"unicode"
)

// firstSet has the ASCII characters with which a match of a pattern can begin. A
// pattern that can match the empty string can begin with any.
type firstSet [4]uint32

var anyFirst = firstSet{1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1}

// has reports whether a match may begin with a character. The two libraries for
// regular expressions disagree on which characters outside of ASCII are letters,
// digits and spaces, so the set says nothing about those.
func (f *firstSet) has(r rune) bool {
	if r >= unicode.MaxASCII || r < ' ' && r != '\n' && r != '\t' {
		return true
	}
	return f[r/32]&(1<<(r%32)) != 0
}

func (f *firstSet) add(from, to rune) {
	for r := max(from, 0); r <= min(to, unicode.MaxASCII); r++ {
		f[r/32] |= 1 << (r % 32)
	}
}

// firstOf works out with which characters a match can begin. The patterns are of
// another, larger dialect; one that Go does not parse, or may read differently, can
// begin with any.
func firstOf(pattern string) firstSet {
	for _, differs := range []string{"-[", "[:", "[]", "[^]", "&&"} { // inside of brackets
		if strings.Contains(pattern, differs) {
			return anyFirst
		}
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return anyFirst
	}
	var f firstSet
	if f.begin(re) {
		return anyFirst
	}
	return f
}

// begin adds the characters with which a match of an expression can begin, and
// reports whether it can match nothing, so that what follows counts too.
func (f *firstSet) begin(re *syntax.Regexp) (empty bool) {
	switch re.Op {
	case syntax.OpNoMatch:
		return false
	case syntax.OpLiteral:
		r := re.Rune[0]
		f.add(r, r)
		if re.Flags&syntax.FoldCase != 0 {
			for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
				f.add(other, other)
			}
		}
		return false
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			f.add(re.Rune[i], re.Rune[i+1])
		}
		return false
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		*f = anyFirst
		return false
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if !f.begin(sub) {
				return false
			}
		}
		return true
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			empty = f.begin(sub) || empty
		}
		return empty
	case syntax.OpCapture, syntax.OpPlus:
		return f.begin(re.Sub[0])
	case syntax.OpRepeat:
		return f.begin(re.Sub[0]) || re.Min == 0
	case syntax.OpStar, syntax.OpQuest:
		f.begin(re.Sub[0])
	}
	return true // what has no width, and what may match nothing
}
