package index

import (
	"strings"

	"github.com/kljensen/snowball/english"
)

// A word is also found in its other forms: templates finds template. No text is indexed twice
// for that: the table of terms has the stem of each, and a query looks up the terms with the
// same stem. Texts with the exact word come first: see search.run.

const (
	// maxForms is how many other forms of a word are searched; the most frequent are taken.
	maxForms = 12
	// Shorter tokens have no forms, and longer ones are not words.
	minStemmed, maxStemmed = 3, 30
)

// stemOf returns the stem of a token, or "" if that is the token itself, or the
// token is not an English word. It also suits other languages with a plural s.
func stemOf(token string) string {
	if !mayHaveForms(token) {
		return ""
	}
	if stem := english.Stem(token, true); stem != token {
		return stem
	}
	return ""
}

func mayHaveForms(token string) bool {
	return len(token) >= minStemmed && len(token) <= maxStemmed &&
		!strings.ContainsFunc(token, func(r rune) bool { return r < 'a' || r > 'z' })
}

// formsOf returns the other forms of a token in the index, the most frequent first, and
// roughly how many documents have them.
func (m *matcher) formsOf(token string) (forms []string, df float64, err error) {
	if !mayHaveForms(token) {
		return nil, 0, nil
	}
	stem := stemOf(token)
	if stem == "" {
		stem = token
	}
	rows, err := m.db.QueryContext(m.ctx, `SELECT term, df FROM (SELECT term, df FROM terms WHERE stem = ?1 AND stem <> ''
		UNION ALL SELECT term, df FROM terms WHERE term = ?1) t WHERE term <> ?2 ORDER BY df DESC, term LIMIT ?3`, stem, token, maxForms)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var form string
		var n float64
		if err := rows.Scan(&form, &n); err != nil {
			return nil, 0, err
		}
		forms, df = append(forms, form), df+n
	}
	return forms, df, rows.Err()
}
