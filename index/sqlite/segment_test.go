package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/index/room"
)

// textOf has the columns of a document as FTS5 wants them.
type textOf struct {
	id   int64
	text [3]string
}

// corporaOf are documents that fill pages in every way that makes a difference.
func corporaOf() map[string][]textOf {
	r := rand.New(rand.NewPCG(7, 7))
	words := func(n, vocabulary int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "w%x ", r.IntN(vocabulary))
		}
		return b.String()
	}
	corpora := map[string][]textOf{
		"one":     {{id: 1, text: [3]string{"hello", "", "_k0"}}},
		"columns": {{id: 5, text: [3]string{"a b a", "a a", "_s1 a"}}, {id: 6, text: [3]string{"", "a", ""}}, {id: 1 << 48, text: [3]string{"a", "", ""}}},
		"scripts": {{id: 3, text: [3]string{"中文 文字 字 🚀 é z", "ab", "_k1"}}},
		"long":    {{id: 9, text: [3]string{words(30_000, 3), words(9_000, 2), ""}}, {id: 10, text: [3]string{words(9_000, 50_000), "", "_k1"}}},
	}
	// Positions of every length, so that pages end after every kind of byte.
	var steps []textOf
	for i := range 500 {
		steps = append(steps, textOf{int64(i*i + 1), [3]string{words(i%130+1, 2+i%7), words(i%3, 9), "_k0 _s1"}})
	}
	corpora["steps"] = steps
	// One word in every document, for lists of many pages, with and without others.
	var common, sparse []textOf
	for i := range 5_000 {
		common = append(common, textOf{int64(1000 + i*300), [3]string{"all " + words(1, 20_000), "", "_k0 _s" + fmt.Sprint(i/100)}})
		sparse = append(sparse, textOf{int64(i+1) << 40, [3]string{"all", "", ""}})
	}
	corpora["common"], corpora["sparse"] = common, sparse
	return corpora
}

// The same documents, in several transactions, and then some of them deleted: every
// row of the full-text table must be what FTS5 would have made of it. That includes
// the origins, by which a deletion finds the segment of a document.
func TestSegmentsAreThoseOfFTS5(t *testing.T) {
	t.Parallel()
	for name, docs := range corporaOf() {
		t.Run(name, func(t *testing.T) {
			theirs, ours := segmentDB(t), segmentDB(t)
			for _, some := range thirds(docs) {
				inTestTx(t, theirs, func(w *tx) error {
					for _, d := range some {
						if _, err := w.ExecContext(context.Background(), `INSERT INTO fts (rowid, body, whole, facet) VALUES (?, ?, ?, ?)`, d.id, d.text[0], d.text[1], d.text[2]); err != nil {
							return err
						}
					}
					return nil
				})
				inTestTx(t, ours, func(w *tx) error { return insertTexts(w, some) })
				compareTables(t, theirs, ours)
			}
			for _, db := range []*sql.DB{theirs, ours} {
				inTestTx(t, db, func(w *tx) error {
					for i := 0; i < len(docs); i += 1 + len(docs)/20 {
						if _, err := w.ExecContext(context.Background(), `DELETE FROM fts WHERE rowid = ?`, docs[i].id); err != nil {
							return err
						}
					}
					return nil
				})
			}
			compareTables(t, theirs, ours)
			if _, err := ours.Exec(`INSERT INTO fts (fts) VALUES ('integrity-check')`); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// thirds divides documents into three parts, as far as they go.
func thirds(docs []textOf) [][]textOf {
	return slices.Collect(slices.Chunk(docs, (len(docs)+2)/3))
}

// compareTables compares all that FTS5 keeps, except for the averages, which nobody
// asks for.
func compareTables(t *testing.T, theirs, ours *sql.DB) {
	t.Helper()
	for _, query := range []string{
		`SELECT id, block FROM fts_data WHERE id > 1 ORDER BY id`,
		`SELECT pgno, segid || ':' || hex(term) FROM fts_idx ORDER BY segid, term`,
		`SELECT id, origin FROM fts_docsize ORDER BY id`,
	} {
		want, got := allRows(t, theirs, query), allRows(t, ours, query)
		if !slices.EqualFunc(want, got, func(a, b dataRow) bool { return a.id == b.id && bytes.Equal(a.data, b.data) }) {
			t.Fatalf("%s:\n%d rows of FTS5, %d of ours\n%s", query, len(want), len(got), firstDifference(want, got))
		}
	}
}

// A connection that has searched, or deleted, must notice the segments that it writes
// itself.
func TestSegmentsAreFoundByTheirOwnConnection(t *testing.T) {
	t.Parallel()
	db := segmentDB(t)
	find := func(word string) (ids []int64) {
		t.Helper()
		for _, row := range allRows(t, db, `SELECT rowid, '' FROM fts WHERE fts MATCH '`+word+`' ORDER BY rowid`) {
			ids = append(ids, row.id)
		}
		return ids
	}
	var want []int64
	for n := range 100 {
		if ids := find("word"); !slices.Equal(ids, want) {
			t.Fatalf("before the %d. transaction: found %v, want %v", n+1, ids, want)
		}
		inTestTx(t, db, func(w *tx) error {
			first := int64(10*n + 1)
			if n%5 == 4 { // a deletion goes through FTS5, and it writes the structure, too
				if _, err := w.ExecContext(context.Background(), `DELETE FROM fts WHERE rowid = ?`, want[0]); err != nil {
					return err
				}
				want = want[1:]
			}
			want = append(want, first, first+1)
			return insertTexts(w, []textOf{{id: first, text: [3]string{"a word", "", "_k0"}}, {id: first + 1, text: [3]string{"word", "", "_k0"}}})
		})
	}
	if segments := structureOf(t, db).count(); segments > 4*maxOnLevel {
		t.Errorf("%d segments were never merged", segments)
	}
	if _, err := db.Exec(`INSERT INTO fts (fts) VALUES ('integrity-check')`); err != nil {
		t.Fatal(err)
	}
}

// insertTexts makes a segment of documents.
func insertTexts(w *tx, texts []textOf) error {
	var words []string
	numbers := make(map[string]uint32)
	docs := make([]room.Text, len(texts))
	for i, d := range texts {
		docs[i].ID = d.id
		for c, tokens := range []*[]uint32{&docs[i].Body, &docs[i].Whole, &docs[i].Facets} {
			for _, word := range strings.Fields(d.text[c]) {
				n, known := numbers[word]
				if !known {
					n = uint32(len(words))
					numbers[word], words = n, append(words, word)
				}
				*tokens = append(*tokens, n)
			}
		}
	}
	return w.AddTexts(context.Background(), docs, words)(nil)
}

// segmentDB returns a database that has the full-text table alone. It does not merge
// segments by itself, as FTS5's INSERT would; it would not merge the same ones.
func segmentDB(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1) // another one would be another database
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec(fullText + `INSERT INTO fts (fts, rank) VALUES ('automerge', 16)`); err != nil {
		t.Fatal(err)
	}
	return db
}

func inTestTx(t *testing.T, db *sql.DB, f func(w *tx) error) {
	t.Helper()
	inner, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Rollback()
	if err := f(&tx{Tx: inner, stmts: make(map[string]*sql.Stmt)}); err != nil {
		t.Fatal(err)
	}
	if err := inner.Commit(); err != nil {
		t.Fatal(err)
	}
}

type dataRow struct {
	id   int64
	data []byte
}

func allRows(t *testing.T, db *sql.DB, query string) (all []dataRow) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r dataRow
		if err := rows.Scan(&r.id, &r.data); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func firstDifference(want, got []dataRow) string {
	for i := range want {
		if i >= len(got) || want[i].id != got[i].id || !bytes.Equal(want[i].data, got[i].data) {
			return fmt.Sprintf("row %d: id %x\nwant %.200x\ngot  %.200x", i, want[i].id, want[i].data, append(got, dataRow{}, dataRow{})[i].data)
		}
	}
	return "ours has more"
}

func structureOf(t *testing.T, db *sql.DB) *ftsStructure {
	t.Helper()
	s, err := decodeStructure(allRows(t, db, fmt.Sprintf(`SELECT id, block FROM fts_data WHERE id = %d`, structureRow))[0].data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *ftsStructure) count() (n int) {
	for _, l := range s.levels {
		n += len(l.segments)
	}
	return n
}

func TestVarintsReadAsWritten(t *testing.T) {
	t.Parallel()
	for shift := range 64 {
		for _, v := range []uint64{1 << shift, 1<<shift - 1, 1<<shift | 1} {
			b := appendVarint([]byte{9}, v)[1:]
			if got, n := readVarint(b); got != v || n != len(b) || varintSize(v) != len(b) {
				t.Errorf("%x: %x reads as %x, %d, %d", v, b, got, n, varintSize(v))
			}
			if _, n := readVarint(b[:len(b)-1]); n != 0 {
				t.Errorf("%x: half a number was read", b)
			}
		}
	}
}
