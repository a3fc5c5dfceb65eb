package postgres

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-dev/coppice/index/room"
)

// A document is a tsvector: the tokens of its body with their places, so that phrases are found,
// and all others without. A tsvector has limits, so of a long document something is missing:
//
//   - Phrases are found among its first 16,383 tokens, and where each of their tokens is among
//     the first 255 of its kind.
//   - If all this takes more than a megabyte, no phrases are found in it; and if its words alone
//     do, some of them are not.

// The limits of a tsvector.
const (
	maxPlace  = 1<<14 - 1
	maxPlaces = 255
	maxLexeme = 1<<11 - 2
	maxVector = 1<<20 - 1<<12
)

// eraShift is how many bits of a document's id distinguish those of an era, which lasts three
// days. index_found knows it, too.
const eraShift = 26

// nowhere is the place of a token that is not in the body.
const nowhere = math.MaxUint32

// vectors writes tsvectors.
type vectors struct {
	words   []string // quoted; those longer than a lexeme are ""
	tenant  string
	buf     []byte
	places  []uint64 // tokens with their places
	maximum int      // bytes of a vector
}

func newVectors(words []string, tenant string) *vectors {
	v := &vectors{words: make([]string, len(words)), tenant: tenant, maximum: maxVector}
	for i, word := range words {
		if word = clean(word); len(word) <= maxLexeme {
			v.words[i] = lexeme(word)
		}
	}
	return v
}

// lexeme quotes a word for a tsvector or a tsquery.
func lexeme(word string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(word, `\`, `\\`), "'", "''") + "'"
}

// vector returns a document as a tsvector.
func (v *vectors) vector(t room.Text) string {
	v.places = v.places[:0]
	for i, n := range t.Body {
		place := uint64(i + 1)
		if place > maxPlace {
			place = nowhere
		}
		v.places = append(v.places, uint64(n)<<32|place)
	}
	for _, list := range [][]uint32{t.Whole, t.Facets} {
		for _, n := range list {
			v.places = append(v.places, uint64(n)<<32|nowhere)
		}
	}
	slices.Sort(v.places)
	if !v.write(t, maxPlaces) {
		v.write(t, 0)
	}
	return string(v.buf)
}

// write writes a document with at most so many places of each token, and reports whether it
// is complete.
func (v *vectors) write(t room.Text, most int) bool {
	v.buf = append(v.buf[:0], lexeme("_@@"+v.tenant)+" "+lexeme("_@"+strconv.FormatInt(t.ID>>eraShift, 10)+"@"+v.tenant)...)
	size := 0
	// The facets are needed most, and have the greatest numbers.
	for end := len(v.places); end > 0; {
		n := v.places[end-1] >> 32
		start := end - 1
		for start > 0 && v.places[start-1]>>32 == n {
			start--
		}
		places := v.places[start:end]
		end = start
		word := v.words[n]
		if word == "" {
			continue
		}
		if uint32(places[len(places)-1]) == nowhere {
			for len(places) > 0 && uint32(places[len(places)-1]) == nowhere {
				places = places[:len(places)-1]
			}
		}
		places = places[:min(most, len(places))]
		if size += len(word) + 4 + 2*len(places); size > v.maximum {
			return false
		}
		v.buf = append(append(v.buf, ' '), word...)
		for i, p := range places {
			v.buf = append(v.buf, ":,"[min(i, 1)])
			v.buf = strconv.AppendUint(v.buf, uint64(uint32(p)), 10)
		}
	}
	return true
}

// textsAtOnce is how many bytes of tsvectors one statement adds.
const textsAtOnce = 4 << 20

// The words of new texts wait in a list, which the server sorts in when it is long enough. That is
// faster for many at once; but searches read the list, so it stays short otherwise.
const (
	manyTexts = 1_000
	longList  = `SET LOCAL gin_pending_list_limit = '16MB'`
)

// AddTexts implements room.Tx.
func (w *writer) AddTexts(ctx context.Context, texts []room.Text, words []string) func(error) error {
	built := make(chan []string, 1)
	go func() {
		v, all := newVectors(words, w.room.tenant), make([]string, len(texts))
		for i, t := range texts {
			all[i] = v.vector(t)
		}
		built <- all
	}()
	return func(err error) error {
		all := <-built // even after an error, so that no goroutine outlives the transaction
		if err != nil {
			return err
		}
		if len(all) >= manyTexts {
			if err := w.exec(ctx, longList); err != nil {
				return err
			}
		}
		for len(all) > 0 {
			n, size := 0, 0
			var ids []int64
			for ; n < len(all) && size < textsAtOnce; n++ {
				ids, size = append(ids, texts[n].ID), size+len(all[n])
			}
			if err := w.exec(ctx, `INSERT INTO coppice.index_texts SELECT $1, id, tsv::tsvector FROM unnest($2::bigint[], $3::text[]) AS t(id, tsv)`,
				w.room.tenant, ids, all[:n]); err != nil {
				return err
			}
			if all, texts = all[n:], texts[n:]; len(all) > 0 { // they take too much memory to wait together
				if err := w.conn.send(ctx, nil); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// DropTexts implements room.Tx. A word that is in no other text goes from the vocabulary, too.
// The facets, which begin with an underscore and not with two, are not in it.
func (w *writer) DropTexts(ctx context.Context, ids []int64) error {
	return w.exec(ctx, `WITH dropped AS (DELETE FROM coppice.index_texts WHERE tenant = $1 AND id = ANY ($2) RETURNING tsv),
		words AS (SELECT w.lexeme, count(*) AS n FROM dropped, unnest(dropped.tsv) w WHERE w.lexeme !~ '^_([^_]|$)' GROUP BY w.lexeme),
		gone AS (DELETE FROM coppice.index_terms t USING words w WHERE t.tenant = $1 AND t.term = w.lexeme AND t.df <= w.n)
		UPDATE coppice.index_terms t SET df = t.df - w.n FROM words w WHERE t.tenant = $1 AND t.term = w.lexeme AND t.df > w.n`,
		w.room.tenant, ids)
}

// exec runs a statement as it is.
func (w *writer) exec(ctx context.Context, statement string, args ...any) error {
	_, err := w.conn.write(ctx, w.room.base.SQL(statement), args)
	return err
}

// tsquery returns a full-text query in PostgreSQL's language.
func tsquery(match string) string {
	var b strings.Builder
	for match != "" {
		word := match[:wordLen(match)]
		match = strings.TrimLeft(match[len(word):], " ")
		switch {
		case word[0] == '"':
			phrase := strings.Fields(clean(strings.Trim(word, `"`)))
			for i, token := range phrase {
				phrase[i] = lexeme(token)
			}
			b.WriteString("(" + strings.Join(phrase, "<->") + ")")
		case word == "AND":
			b.WriteString("&")
		case word == "OR":
			b.WriteString("|")
		case word == "NOT":
			b.WriteString("&!")
		case word == "(" || word == ")":
			b.WriteString(word)
		} // the only column is the one whose tokens have places
	}
	return b.String()
}

// hasPhrase reports whether a full-text query has a phrase of several tokens.
func hasPhrase(match string) bool {
	for match != "" {
		word := match[:wordLen(match)]
		match = strings.TrimLeft(match[len(word):], " ")
		if word[0] == '"' && len(strings.Fields(word)) > 1 {
			return true
		}
	}
	return false
}

// wordLen returns the length of the token at the beginning of a query.
func wordLen(s string) int {
	n := 0
	switch {
	case s[0] == '"':
		n = strings.IndexByte(s[1:], '"') + 1
	case isLetter(s[0]):
		for n+1 < len(s) && isLetter(s[n+1]) {
			n++
		}
	}
	return n + 1
}

// clean makes text of what the server would not take for text.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// bounds are the parameters of index_found after the query.
func bounds(m room.Match) []any {
	to, most := m.To, any(nil)
	if to == 0 {
		to = math.MaxInt64
	}
	if m.Newest > 0 {
		most = int64(m.Newest)
	}
	return []any{m.From, to, most}
}
