package index

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxSuggestions is how many queries are suggested instead of one that found
	// nothing.
	maxSuggestions = 3
	// maxTried is how many near words are looked for in the sessions.
	maxTried = 16
	// maxNeighbours is how many words with the same beginning are compared.
	maxNeighbours = 20_000
)

// suggest returns queries that the user may have meant: first those that take a word as the
// beginning of a longer one, if they find something, or else those that replace every unknown
// word by the nearest known one.
func (s *search) suggest(q *query) ([]string, error) {
	text := q.text
	if longer, err := s.longer(text); err != nil || len(longer) > 0 {
		return longer, err
	}
	type unknown struct {
		at   [2]int
		near []string
	}
	var words []unknown
	for _, l := range s.m.terms {
		for i, token := range l.tokens {
			if l.prefix && i == len(l.tokens)-1 || l.option != "" {
				continue
			}
			df, err := s.m.df(token)
			if err != nil {
				return nil, err
			}
			forms, _, err := s.m.formsOf(token)
			if err != nil {
				return nil, err
			}
			if df > 0 || len(forms) > 0 {
				continue
			}
			near, err := s.nearest(token)
			if err != nil {
				return nil, err
			}
			if len(near) == 0 {
				return nil, nil // the others alone would find nothing either
			}
			words = append(words, unknown{l.spans[i], near})
		}
	}
	if len(words) == 0 {
		return nil, nil
	}
	slices.SortFunc(words, func(a, b unknown) int { return b.at[0] - a.at[0] })
	var queries []string
	for n := range words[0].near {
		if n > 0 && len(words) > 1 {
			break // only the first of all combinations
		}
		query := text
		for _, w := range words { // from the last to the first, so that the places of the others stay right
			query = query[:w.at[0]] + w.near[n] + query[w.at[1]:]
		}
		queries = append(queries, query)
	}
	return queries, nil
}

// nearest returns the words of sessions that the user may have meant by a word. The index also has
// words of sessions that are gone.
func (s *search) nearest(word string) (words []string, err error) {
	near, err := s.m.nearest(word)
	for _, other := range near {
		if len(words) == maxSuggestions || err != nil {
			break
		}
		found, findErr := s.finds(other)
		if err = errors.Join(err, findErr); found || s.partly {
			words = append(words, other)
		}
	}
	return words, err
}

// finds reports whether a query finds anything. A query that is too long finds nothing.
func (s *search) finds(query string) (bool, error) {
	q, err := parseQuery(query, time.Now(), s.o.Elsewhere)
	if err != nil {
		return false, nil
	}
	again := *s
	found, _, err := again.rank(q.expr, false)
	s.partly = s.partly || again.partly
	return len(found) > 0, err
}

// minBegun is the minimum length of a word that is tried as a beginning.
const minBegun = 3

// longer returns the query with one of the words as the beginning of a longer one, if that
// finds something.
func (s *search) longer(text string) ([]string, error) {
	for _, l := range s.m.terms {
		end := l.spans[len(l.spans)-1][1]
		if l.prefix || l.option != "" || end < len(text) && text[end] != ' ' || len(l.tokens[len(l.tokens)-1]) < minBegun {
			continue
		}
		begun := text[:end] + "*" + text[end:]
		if found, err := s.finds(begun); err != nil || found {
			return []string{begun}, err
		}
	}
	return nil, nil
}

// nearest returns the terms that the user may have meant by a word, the likeliest first: they
// differ in one letter, or in two of a long word with the same beginning.
func (m *matcher) nearest(word string) ([]string, error) {
	if len(word) < 3 || len(word) > maxStemmed {
		return nil, nil
	}
	most := 1
	if len(word) > 4 {
		most = 2
	}
	variants, err := json.Marshal(variantsOf(word))
	if err != nil {
		return nil, err
	}
	_, size := utf8.DecodeRuneInString(word)
	start := word[:size+1]
	if !utf8.ValidString(start) {
		start = word[:size]
	}
	rows, err := m.db.QueryContext(m.ctx, `SELECT term, df FROM terms WHERE term IN (SELECT atom FROM json_each(?1))
		UNION SELECT term, df FROM (SELECT term, df FROM terms WHERE term >= ?2 AND term < ?3 LIMIT ?4) few
			WHERE length(term) BETWEEN ?5 AND ?6`,
		string(variants), start, afterPrefix(start), maxNeighbours, utf8.RuneCountInString(word)-most, utf8.RuneCountInString(word)+most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	type candidate struct {
		term     string
		df       float64
		distance int
	}
	var found []candidate
	for rows.Next() {
		var c candidate
		if err := rows.Scan(&c.term, &c.df); err != nil {
			return nil, err
		}
		if c.distance = distance(word, c.term); c.distance <= most && c.distance > 0 && !strings.HasPrefix(c.term, "_") {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.df, a.df), cmp.Compare(a.term, b.term))
	})
	var terms []string
	for _, c := range found[:min(len(found), maxTried)] {
		terms = append(terms, c.term)
	}
	return terms, rows.Err()
}

// Nearest returns the known names that the user may have meant, the likeliest first: names
// that begin with what they typed, and names that differ from it by a slip or two. Case does
// not matter.
func Nearest(given string, known []string) []string {
	given = strings.ToLower(given)
	most := 1
	if utf8.RuneCountInString(given) > 4 {
		most = 2
	}
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	for _, name := range known {
		lower := strings.ToLower(name)
		d := 0
		if len(given) < 2 || !strings.HasPrefix(lower, given) {
			d = distance(given, lower)
		}
		if d <= most && lower != "" && given != "" {
			found = append(found, candidate{name, d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	for _, c := range found {
		if !slices.Contains(names, c.name) && len(names) < maxSuggestions {
			names = append(names, c.name)
		}
	}
	return names
}

// variantsOf returns the words from which a slip of one letter makes this one.
func variantsOf(word string) []string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	runes := []rune(word)
	var all []string
	add := func(parts ...[]rune) { all = append(all, string(slices.Concat(parts...))) }
	for i := range len(runes) + 1 {
		for _, c := range letters {
			add(runes[:i], []rune{c}, runes[i:])
			if i < len(runes) {
				add(runes[:i], []rune{c}, runes[i+1:])
			}
		}
		if i < len(runes) {
			add(runes[:i], runes[i+1:])
		}
		if i+1 < len(runes) {
			add(runes[:i], []rune{runes[i+1], runes[i]}, runes[i+2:])
		}
	}
	return all
}

// distance is how many letters have to be added, left out, replaced, or exchanged with their
// neighbour to turn one word into the other.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
