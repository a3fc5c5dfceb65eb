package index

import (
	"cmp"
	"context"
	_ "embed"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/index/room"
)

// topicDocs is how many of the newest texts topics are taken from.
const topicDocs = 400

// Topic is a word that is used more than elsewhere.
type Topic struct {
	Word  string
	Texts int     // how many of the inspected texts have it
	Score float64 // greater is more distinctive
}

// Topics returns the words that characterise what was said, the most distinctive first: those
// that many of the newest texts have, and few of all others.
func (ix *Index) Topics(ctx context.Context, o StatsOptions, limit int) ([]Topic, error) {
	var topics []Topic
	err := ix.read(ctx, "topics", func(db room.Tables) error {
		hits, places, err := newestSaid(ctx, db, o)
		if err != nil {
			return err
		}
		s := &search{ctx: ctx, ix: ix, db: db}
		if s.m, err = newMatcher(ctx, db); err != nil {
			return err
		}
		var texts []string
		s.readTexts(hits, places, func(_ int, text string) { texts = append(texts, text) })
		topics, err = s.m.topics(texts, limit)
		return err
	})
	return topics, err
}

// newestSaid returns the newest texts that a person or a model said, each once: a
// fork repeats those of its origin.
func newestSaid(ctx context.Context, db room.Tables, o StatsOptions) (hits []Hit, places []location, err error) {
	where, args, err := o.where(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT o.name, e.id, e.pos, a.part, e.time, a.len FROM (
			SELECT m.session, m.entry, m.part, m.len, m.id FROM docs m JOIN names r ON r.id = m.role
			WHERE `+where+` AND m.kind = ?1 AND r.name IN ('user', 'assistant') ORDER BY m.id DESC LIMIT ?2) a
		CROSS JOIN sessions o ON o.id = a.session CROSS JOIN entries e ON e.session = a.session AND e.n = a.entry
		WHERE o.name IS NOT NULL ORDER BY a.id DESC`, append([]any{kindNumber(KindText), topicDocs}, args...)...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	seen := make(map[original]bool)
	for rows.Next() {
		var entry any
		h, where, once := Hit{Kind: KindText}, location{}, original{}
		if err := rows.Scan(&h.Name, &entry, &where.pos, &where.part, &once.time, &once.length); err != nil {
			return nil, nil, err
		}
		h.Entry = idOf(entry)
		if once.entry, once.part = h.Entry, where.part; seen[once] {
			continue
		}
		seen[once] = true
		hits, places = append(hits, h), append(places, where)
	}
	return hits, places, rows.Err()
}

// Words that more than a third of all texts have are about nothing in particular, if there
// are enough texts.
const (
	everywhere = 1.0 / 3
	enoughDocs = 100
)

// topics weighs the words of texts.
func (m *matcher) topics(texts []string, limit int) ([]Topic, error) {
	counts := countTopical(texts)
	var topics []Topic
	for word, n := range counts {
		if n < 2 && len(texts) > 10 {
			continue // said once: every word is rare then
		}
		df, err := m.df(word)
		if err != nil {
			return nil, err
		}
		if df = max(df, float64(n)); m.docs >= enoughDocs && df > everywhere*m.docs {
			continue
		}
		topics = append(topics, Topic{Word: word, Texts: n, Score: float64(n) * weight(df, m.docs)})
	}
	slices.SortFunc(topics, func(a, b Topic) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Word, b.Word))
	})
	return topics[:min(len(topics), max(limit, 0))], nil
}

// countTopical counts the texts that have each word that may be a topic.
func countTopical(texts []string) map[string]int {
	stop := stopWords()
	counts := make(map[string]int)
	for _, text := range texts {
		seen := make(map[string]bool)
		scan(text, func(t token) {
			if !t.whole && !seen[t.text] && !stop[t.text] && isTopical(t.text) {
				seen[t.text] = true
				counts[t.text]++
			}
		})
	}
	return counts
}

//go:embed stopwords.txt
var stopWordList string

// stopWords are the words that are about nothing, in some languages.
func stopWords() map[string]bool {
	words := make(map[string]bool)
	for line := range strings.Lines(stopWordList) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, word := range strings.Fields(line) {
			words[word] = true
		}
	}
	return words
}

// isTopical leaves out numbers and words that are too short to be a topic.
func isTopical(word string) bool {
	r, size := utf8.DecodeRuneInString(word)
	if classOf(r) == dense {
		return len(word) > size
	}
	return utf8.RuneCountInString(word) > 2 && !strings.ContainsAny(word, "0123456789")
}
