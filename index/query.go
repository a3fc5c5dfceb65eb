package index

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// QueryError says what is wrong with a query, and where.
type QueryError struct {
	Query  string
	Offset int // in bytes
	Reason string
}

func (e *QueryError) Error() string {
	return fmt.Sprintf("query %q: at character %d: %s", e.Query, utf8.RuneCountInString(e.Query[:e.Offset])+1, e.Reason)
}

// query is what a query asks for.
type query struct {
	text    string // canonical
	expr    node   // nil if there are only filters
	filters filters
	// notFilters are the names of words that look like filters but are searched as text.
	typed      []typedPath
	notFilters []string
}

// filters are what narrows a search.
type filters struct {
	kinds, roles, tools, models          []string
	notKinds, notRoles, notTools, notMod []string
	tags                                 []string
	cwd, session                         []string
	agents, projects, files              []string
	since, until                         time.Time
	branch                               Branch
}

// node is a part of a query: a *term, an and or an or.
type node interface{}

type (
	// and is everything in it, without anything in not.
	and struct{ all, not []node }
	// or is any of these.
	or []node
)

// term is a word or a phrase.
type term struct {
	tokens []string // side by side
	whole  string   // the tokens as one word, if they may be an identifier
	prefix bool     // the last token may be the start of a word
	option string   // if it is an option of a command: its token
	bare   bool     // other forms of the word match too
	spans  [][2]int // where the tokens are in the query
}

const (
	maxTerms = 64
	maxDepth = 32
)

// parser reads a query. It stops at the first mistake.
type parser struct {
	text  string // canonical
	at    int
	now   time.Time
	depth int
	terms int
	// notFilters are the names of words that look like filters but are searched as text.
	notFilters []string
	elsewhere  bool        // the query comes from another machine
	typed      []typedPath // in the order of the query
	filters
}

// mistake ends parsing.
type mistake struct{ err *QueryError }

func (p *parser) fail(at int, format string, args ...any) {
	panic(mistake{&QueryError{Query: p.text, Offset: at, Reason: fmt.Sprintf(format, args...)}})
}

func parseQuery(text string, now time.Time, elsewhere bool) (q *query, err error) {
	p := &parser{text: canonical(text), now: now, elsewhere: elsewhere}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case mistake:
			q, err = nil, r.err
		default:
			panic(r)
		}
	}()
	expr := p.or()
	if p.at < len(p.text) {
		p.fail(p.at, "this ) has no matching (")
	}
	return &query{text: p.text, expr: expr, filters: p.filters, notFilters: p.notFilters, typed: p.typed}, nil
}

// or = and { "OR" and }
func (p *parser) or() node {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		p.fail(p.at, "too many parentheses")
	}
	var any or
	alternatives := 0
	filtersAt := -1
	for {
		start := p.at
		n, filter := p.and()
		if filter >= 0 {
			filtersAt = filter
		}
		if !p.keyword("OR") {
			if alternatives > 0 && n == nil && p.onlySpace(start) {
				p.fail(start, "OR has nothing after it")
			}
			if n != nil {
				any = append(any, n)
			}
			break
		}
		if n == nil && p.onlySpaceBefore(start) {
			p.fail(p.at-len("OR"), "OR has nothing before it")
		}
		alternatives++
		if n != nil {
			any = append(any, n)
		}
	}
	if alternatives > 0 {
		p.refuseNegative(any)
	}
	if filtersAt >= 0 && (alternatives > 0 || p.depth > 1) {
		p.fail(filtersAt, "a filter holds for the whole query: it cannot be in an OR or in parentheses")
	}
	switch len(any) {
	case 0:
		return nil
	case 1:
		return any[0]
	}
	return any
}

// onlySpace reports whether there is nothing but space from start to here.
func (p *parser) onlySpace(start int) bool { return strings.TrimSpace(p.text[start:p.at]) == "" }

func (p *parser) onlySpaceBefore(start int) bool {
	return strings.TrimSpace(p.text[start:p.at-len("OR")]) == ""
}

// refuseNegative refuses alternatives that only exclude something.
func (p *parser) refuseNegative(alternatives []node) {
	for _, n := range alternatives {
		if a, ok := n.(and); ok && len(a.all) == 0 {
			p.fail(p.at, "a part of an OR must look for something, not only exclude")
		}
	}
}

// and = { [ "-" | "NOT" ] unit }, and where the last filter in it began, or -1.
func (p *parser) and() (n node, filter int) {
	var a and
	filter = -1
	for p.more() {
		if p.keyword("AND") {
			continue
		}
		start := p.at
		negative := p.negation()
		if p.filter(negative) {
			filter = start
			continue
		}
		unit := p.unit()
		switch {
		case unit == nil:
		case negative:
			a.not = append(a.not, unit)
		default:
			a.all = append(a.all, unit)
		}
	}
	switch {
	case len(a.all) == 1 && len(a.not) == 0:
		return a.all[0], filter
	case len(a.all) == 0 && len(a.not) == 0:
		return nil, filter
	case len(a.all) == 0 && p.depth > 1:
		p.fail(p.at, "parentheses must look for something, not only exclude")
	}
	return a, filter
}

// more skips space and reports whether the sequence continues.
func (p *parser) more() bool {
	p.at += len(p.text[p.at:]) - len(strings.TrimLeftFunc(p.text[p.at:], unicode.IsSpace))
	return p.at < len(p.text) && p.text[p.at] != ')' && !p.seesKeyword("OR")
}

func (p *parser) seesKeyword(word string) bool {
	rest, ok := strings.CutPrefix(p.text[p.at:], word)
	if !ok {
		return false
	}
	next, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || unicode.IsSpace(next) || next == '(' || next == '"' || next == ')'
}

func (p *parser) keyword(word string) bool {
	if !p.seesKeyword(word) {
		return false
	}
	p.at += len(word)
	return true
}

// negation reads a "-" right before something, or "NOT". Two dashes begin an option, which is
// searched for.
func (p *parser) negation() bool {
	start := p.at
	if p.keyword("NOT") {
		if !p.more() {
			p.fail(start, "NOT has nothing after it")
		}
		return true
	}
	if p.text[p.at] == '-' && p.at+1 < len(p.text) && p.text[p.at+1] != '-' {
		if next, _ := utf8.DecodeRuneInString(p.text[p.at+1:]); !unicode.IsSpace(next) && next != ')' {
			p.at++
			return true
		}
	}
	return false
}

// unit = "(" or ")" | phrase | word
func (p *parser) unit() node {
	start := p.at
	switch p.text[p.at] {
	case '(':
		p.at++
		n := p.or()
		if p.at >= len(p.text) {
			p.fail(start, "this ( has no matching )")
		}
		p.at++
		return n
	case '"':
		text := p.quoted()
		return p.term(start+1, text, p.star(), false)
	}
	text := p.word()
	if name := likeFilter(text); name != "" {
		p.notFilters = append(p.notFilters, name)
	}
	prefix := strings.HasSuffix(text, "*")
	return p.term(start, text, prefix, true)
}

// quoted reads up to the closing quotation mark.
func (p *parser) quoted() string {
	start := p.at
	end := strings.IndexByte(p.text[start+1:], '"')
	if end < 0 {
		p.fail(start, "the phrase has no end: a \" is missing")
	}
	p.at = start + 1 + end + 1
	return p.text[start+1 : p.at-1]
}

// star reads a "*" after a phrase.
func (p *parser) star() bool {
	if p.at < len(p.text) && p.text[p.at] == '*' {
		p.at++
		return true
	}
	return false
}

func (p *parser) word() string {
	rest := p.text[p.at:]
	end := strings.IndexFunc(rest, endsWord)
	if end < 0 {
		end = len(rest)
	}
	p.at += end
	return rest[:end]
}

// endsWord reports whether a character ends a word. A value can have such a character only in
// quotation marks, and cannot have a quotation mark at all.
func endsWord(r rune) bool { return unicode.IsSpace(r) || r == '(' || r == ')' || r == '"' }

// term turns a text into a term, or returns nil if it has nothing to search for.
func (p *parser) term(start int, text string, prefix, bare bool) node {
	t := newTerm(text, prefix)
	if t == nil {
		return nil
	}
	t.bare = bare && !prefix && len(t.tokens) == 1 && t.option == ""
	for i := range t.spans {
		t.spans[i][0] += start
		t.spans[i][1] += start
	}
	if p.terms += len(t.tokens); p.terms > maxTerms {
		p.fail(start, "the query is too long: it may have at most %d words", maxTerms)
	}
	return t
}

func newTerm(text string, prefix bool) *term {
	t := &term{prefix: prefix}
	var wholes []token
	parts, end := 0, 0
	first := -1
	s := scanner{text: strings.TrimRight(text, "*"), open: true, emit: func(k token) {
		switch {
		case k.whole && strings.HasPrefix(k.text, optionMark):
			if k.start == 0 {
				t.option = k.text
			}
			return
		case k.whole:
			wholes = append(wholes, k)
			return
		}
		if first < 0 {
			first = k.start
		}
		parts, end = parts+1, k.end
		t.tokens = append(t.tokens, k.text)
		t.spans = append(t.spans, [2]int{k.start, k.end})
	}}
	s.run()
	if parts == 0 {
		return nil
	}
	// A single character of a dense script is searched as the beginning of a token: every
	// character begins one.
	if r, size := utf8.DecodeRuneInString(t.tokens[parts-1]); parts == 1 && size == len(t.tokens[0]) && classOf(r) == dense {
		t.prefix = true
	}
	if i := slices.IndexFunc(wholes, func(k token) bool { return k.start == first && k.end == end }); i >= 0 {
		t.whole = wholes[i].text
	}
	return t
}
