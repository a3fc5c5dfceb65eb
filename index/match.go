package index

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/index/room"
)

// How many words stand in for a prefix: the most frequent ones that begin with it. Within a
// phrase every word costs more.
const (
	maxExpansions       = 32
	maxPhraseExpansions = 16
	maxScanned          = 5_000 // words looked at to find them
)

// matcher turns a query into FTS5's language, and knows the weight of each term.
type matcher struct {
	ctx      context.Context
	db       room.Tables
	docs     float64 // in the index
	average  float64 // length of a document
	terms    []*leaf
	optional bool // we are in an OR
	forms    bool // other forms of a word match too
	varied   bool // some word has other forms
	bounded  bool // more words have the prefix than were taken
}

// leaf is a wanted term with what ranking needs.
type leaf struct {
	*term
	match    string // in SQLite's language
	hashes   []uint32
	forms    []string // other forms of the word that match, too
	whole    uint32
	weight   float64
	optional bool           // a document may match without it
	has      map[int64]bool // if optional: the documents that have it
}

func newMatcher(ctx context.Context, db room.Tables) (*matcher, error) {
	m := &matcher{ctx: ctx, db: db}
	var docs, tokens float64
	err := db.QueryRowContext(ctx, `SELECT (SELECT value FROM counters WHERE name = 'docs'),
		(SELECT value FROM counters WHERE name = 'tokens')`).Scan(&docs, &tokens)
	m.docs, m.average = max(docs, 1), tokens/max(docs, 1)
	return m, err
}

// quote returns a string for a MATCH. Our tokens contain no quotation marks.
func quote(s string) string { return `"` + s + `"` }

// piece is a part of a query in SQLite's language.
type piece struct {
	match string
	df    float64 // roughly how many documents have it
}

// node returns the MATCH expression of a part of a query; "" if there is none.
func (m *matcher) node(n node, wanted bool) (piece, error) {
	switch n := n.(type) {
	case *term:
		return m.term(n, wanted)
	case or:
		before := m.optional
		m.optional = true
		defer func() { m.optional = before }()
		return m.join(n, " OR ", wanted)
	case and:
		all, err := m.join(n.all, " AND ", wanted)
		if err != nil || len(n.not) == 0 {
			return all, err
		}
		not, err := m.join(n.not, " OR ", false)
		if all.match == "" {
			all.match, all.df = anything(), m.docs
		}
		all.match = "(" + all.match + " NOT " + not.match + ")"
		return all, err
	}
	return piece{}, nil
}

// anything matches all documents: each has a kind.
func anything() string {
	var all []string
	for _, kind := range kinds {
		all = append(all, quote(facet('k', kindNumber(kind))))
	}
	return "(" + strings.Join(all, " OR ") + ")"
}

func (m *matcher) join(nodes []node, op string, wanted bool) (piece, error) {
	var pieces []piece
	for _, n := range nodes {
		p, err := m.node(n, wanted)
		if err != nil {
			return piece{}, err
		}
		pieces = append(pieces, p)
	}
	if len(pieces) == 0 {
		return piece{}, nil
	}
	// SQLite looks for the first part of an AND and then checks the others, so the rarest
	// must come first.
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(a.df, b.df) })
	joined := piece{df: pieces[0].df}
	var matches []string
	for i, p := range pieces {
		matches = append(matches, p.match)
		if i > 0 && op == " OR " {
			joined.df += p.df
		}
	}
	joined.match = "(" + strings.Join(matches, op) + ")"
	return joined, nil
}

// term returns the MATCH expression of a term, and keeps it for ranking if it is
// wanted.
func (m *matcher) term(t *term, wanted bool) (piece, error) {
	match, df, err := m.alternatives(t)
	if err != nil || !wanted {
		return piece{match, df}, err
	}
	l := &leaf{term: t, weight: weight(df, m.docs), optional: m.optional, whole: hashTerm(t.whole)}
	if t.bare {
		if match, df, err = m.vary(l, match, df); err != nil {
			return piece{}, err
		}
	}
	l.match = match
	for _, token := range t.tokens {
		l.hashes = append(l.hashes, hashTerm(token))
	}
	m.terms = append(m.terms, l)
	return piece{match, df}, nil
}

// vary adds the other forms of a word, if they are allowed.
func (m *matcher) vary(l *leaf, match string, df float64) (string, float64, error) {
	forms, more, err := m.formsOf(l.tokens[0])
	m.varied = m.varied || len(forms) > 0
	if err != nil || !m.forms || len(forms) == 0 {
		return match, df, err
	}
	l.forms = forms
	for _, form := range forms {
		match += " OR " + quote(form)
	}
	return "(" + match + ")", df + more, nil
}

// inBody is before a phrase in a MATCH expression.
const inBody = "body : "

// alternatives returns the MATCH expression of a term, and roughly how many documents have
// it.
func (m *matcher) alternatives(t *term) (match string, df float64, err error) {
	if t.option != "" {
		return m.options(t)
	}
	last := t.tokens[len(t.tokens)-1:]
	if t.prefix {
		if last, df, err = m.expand(last[0], len(t.tokens) > 1); err != nil {
			return "", 0, err
		}
	} else if df, err = m.df(last[0]); err != nil {
		return "", 0, err
	}
	for _, token := range t.tokens[:len(t.tokens)-1] {
		n, err := m.df(token)
		if err != nil {
			return "", 0, err
		}
		df = min(df, n)
	}
	var any []string
	for _, token := range last {
		if len(t.tokens) == 1 {
			any = append(any, quote(token))
			continue
		}
		phrase := append(slices.Clone(t.tokens[:len(t.tokens)-1]), token)
		any = append(any, inBody+quote(strings.Join(phrase, " ")))
	}
	if t.whole != "" {
		wholes := []string{t.whole}
		if t.prefix {
			if wholes, _, err = m.expand(t.whole, false); err != nil {
				return "", 0, err
			}
		}
		for _, whole := range wholes {
			any = append(any, quote(whole))
		}
	}
	return "(" + strings.Join(any, " OR ") + ")", df, nil
}

// options returns the MATCH expression of an option of a command.
func (m *matcher) options(t *term) (match string, df float64, err error) {
	options := []string{t.option}
	if t.prefix {
		options, df, err = m.expand(t.option, false)
	} else {
		df, err = m.df(t.option)
	}
	for i := range options {
		options[i] = quote(options[i])
	}
	return "(" + strings.Join(options, " OR ") + ")", df, err
}

// df returns roughly how many documents have a token.
func (m *matcher) df(token string) (float64, error) {
	var df float64
	err := m.db.QueryRowContext(m.ctx, `SELECT coalesce((SELECT df FROM terms WHERE term = ?), 0)`, token).Scan(&df)
	return df, err
}

// expand returns the tokens that begin with a prefix, or the prefix itself if
// there is none. SQLite's own prefix search merges the documents of all of them,
// which for a short prefix takes seconds.
func (m *matcher) expand(prefix string, inPhrase bool) (tokens []string, df float64, err error) {
	limit := maxExpansions
	if inPhrase {
		limit = maxPhraseExpansions
	}
	rows, err := m.db.QueryContext(m.ctx, `SELECT term, df FROM
		(SELECT term, df FROM terms WHERE term >= ? AND term < ? LIMIT ?) t ORDER BY df DESC LIMIT ?`,
		prefix, afterPrefix(prefix), maxScanned, limit+1)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var token string
		var n float64
		if err := rows.Scan(&token, &n); err != nil {
			return nil, 0, err
		}
		if len(tokens) == limit {
			m.bounded = true
			break
		}
		tokens, df = append(tokens, token), df+n
	}
	if len(tokens) == 0 {
		tokens = []string{prefix}
	}
	return tokens, df, rows.Err()
}

// score is BM25 over the wanted terms.
func (m *matcher) score(id int64, length float64, tf []byte) float64 {
	var sum float64
	for _, l := range m.terms {
		if l.optional && !l.has[id] {
			continue
		}
		sum += bm25(l.weight, float64(l.count(tf)), length, m.average)
	}
	return sum
}

// count returns how often a term occurs in a document that has it. A phrase
// occurs at most as often as the rarest of its words.
func (l *leaf) count(tf []byte) int {
	least := 1 << 30
	for _, hash := range l.hashes {
		least = min(least, countIn(tf, hash))
	}
	if l.term.whole != "" {
		least = max(least, countIn(tf, l.whole))
	}
	return least
}
