package code

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/dlclark/regexp2/v2"
)

// grammar runs the rules of one of chroma's lexers as chroma does, but three to five
// times as fast: it does not try a rule that cannot match at the next character, which
// is true of most, and builds no more of a match than is used.
type grammar struct {
	lexer  *chroma.RegexLexer
	states map[string][]*rule
}

type rule struct {
	chroma.Rule
	first   firstSet
	compile func() *regexp2.Regexp // nil if the pattern is not one
}

// maxMatch limits the time of one match. Chroma has the same limit.
const maxMatch = 250 * time.Millisecond

// newGrammar returns nil if the lexer is not made of rules alone.
func newGrammar(lexer chroma.Lexer) *grammar {
	l, ok := lexer.(*chroma.RegexLexer)
	if !ok {
		return nil
	}
	raw, err := l.Rules()
	if err != nil {
		return nil
	}
	compiled := make(chroma.CompiledRules, len(raw))
	for state, rules := range raw {
		for _, r := range rules {
			compiled[state] = append(compiled[state], &chroma.CompiledRule{Rule: r})
		}
	}
	if !expand(compiled) {
		return nil
	}
	g := &grammar{lexer: l, states: make(map[string][]*rule, len(compiled))}
	known := make(map[*chroma.CompiledRule]*rule) // states share the rules that they include
	for state, rules := range compiled {
		for _, c := range rules {
			if known[c] == nil {
				known[c] = newRule(c.Rule, l.Config())
			}
			g.states[state] = append(g.states[state], known[c])
		}
	}
	return g
}

// expand puts the rules of other states where a state includes them.
func expand(rules chroma.CompiledRules) bool {
	for again := true; again; {
		again = false
	search:
		for state := range rules {
			for i, r := range rules[state] {
				m, ok := r.Mutator.(chroma.LexerMutator)
				if !ok {
					continue
				}
				rules[state] = append([]*chroma.CompiledRule(nil), rules[state]...) // it may share its memory with another state
				if m.MutateLexer(rules, state, i) != nil {
					return false
				}
				again = true
				break search
			}
		}
	}
	return true
}

func newRule(r chroma.Rule, c *chroma.Config) *rule {
	flags := ""
	if !c.NotMultiline {
		flags += "m"
	}
	if c.CaseInsensitive {
		flags += "i"
	}
	if c.DotAll {
		flags += "s"
	}
	pattern := "(?:" + r.Pattern + ")"
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	return &rule{Rule: r, first: firstOf(pattern), compile: sync.OnceValue(func() *regexp2.Regexp {
		re, err := regexp2.Compile(`\G` + pattern)
		if err != nil {
			return nil
		}
		re.MatchTimeout = maxMatch
		return re
	})}
}

// match returns the match at a place, or nil.
func (r *rule) match(text []rune, at int) *regexp2.Match {
	if !r.first.has(text[at]) {
		return nil
	}
	re := r.compile()
	if re == nil {
		return nil
	}
	m, err := re.FindRunesMatchStartingAt(text, at)
	if err != nil { // its time was over; perhaps because the machine stalled
		m, err = re.FindRunesMatchStartingAt(text, at)
	}
	if err != nil || m == nil || m.RuneIndex != at {
		return nil
	}
	return m
}

// tokens yields the tokens of a text. It panics where the lexer would.
func (g *grammar) tokens(text string, yield func(chroma.Token) bool) {
	if !utf8.ValidString(text) {
		return
	}
	runes := []rune(text)
	end := len(runes)
	if g.lexer.Config().EnsureNL && !strings.HasSuffix(text, "\n") {
		runes = append(runes, '\n')
	}
	const root = "root"
	s := &chroma.LexerState{Lexer: g.lexer, Registry: lexers.GlobalLexerRegistry, Text: runes, Stack: []string{root}, MutatorContext: make(map[any]any)}
	for s.Pos < end && len(s.Stack) > 0 {
		s.State = s.Stack[len(s.Stack)-1]
		r, m := g.next(s)
		switch {
		case m != nil:
			if !g.emit(s, r, m, yield) {
				return
			}
		case runes[s.Pos] == '\n' && s.State != root: // a line that makes no sense ends what it is in
			s.Stack = []string{root}
		default:
			s.Pos++
			if !yield(chroma.Token{Type: chroma.Error, Value: string(runes[s.Pos-1])}) {
				return
			}
		}
	}
	if s.Pos < end { // a rule left the last state
		yield(chroma.Token{Type: chroma.Error, Value: string(runes[s.Pos:end])})
	}
}

// next finds the first rule that matches.
func (g *grammar) next(s *chroma.LexerState) (*rule, *regexp2.Match) {
	for _, r := range g.states[s.State] {
		if m := r.match(s.Text, s.Pos); m != nil {
			return r, m
		}
	}
	return nil, nil
}

func (g *grammar) emit(s *chroma.LexerState, r *rule, m *regexp2.Match, yield func(chroma.Token) bool) bool {
	s.Pos += m.RuneLength
	if kind, ok := r.Type.(chroma.TokenType); ok { // it needs no groups
		if r.Mutator != nil && r.Mutator.Mutate(s) != nil {
			return false
		}
		return yield(chroma.Token{Type: kind, Value: m.String()})
	}
	groups := m.Groups()
	s.Groups = make([]string, len(groups))
	for i := range groups {
		s.Groups[i] = groups[i].String()
	}
	if r.Mutator != nil && r.Mutator.Mutate(s) != nil {
		return false
	}
	if r.Type == nil {
		return true
	}
	next := r.Type.Emit(s.Groups, s)
	for t := next(); t != chroma.EOF; t = next() {
		if t.Type != chroma.Ignore && !yield(t) {
			return false
		}
	}
	return true
}
