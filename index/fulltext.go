package index

import "strconv"

// Facets are tokens that no text has, because of their underscore. A filter is a
// facet that a document must have, so SQLite looks for both at once.
func facet(letter byte, value int64) string {
	return "_" + string(letter) + strconv.FormatInt(value, 10)
}

// facetKey identifies a facet without spelling its token.
type facetKey struct {
	letter byte
	value  int64
}

// facets returns the vocabulary's numbers for the document's facets. known caches them.
func (d *docRow) facets(words *vocabulary, known map[facetKey]uint32) []uint32 {
	keys := [...]facetKey{
		{'s', d.session},
		{'k', kindNumber(d.kind)},
		{'r', d.role},
		{'t', d.tool},
		{'m', d.model},
		{'c', d.cwd},
		{'a', d.agent},
	}
	var list [len(keys)]uint32
	numbers := list[:0]
	for i, key := range keys {
		if i >= 2 && key.value == 0 {
			continue // it has none
		}
		n, ok := known[key]
		if !ok {
			n = words.number(facet(key.letter, key.value))
			known[key] = n
		}
		numbers = append(numbers, n)
	}
	return words.keepNumbers(numbers)
}

// segmentDocs returns the queued documents with their facets.
func (w *writer) segmentDocs(words *vocabulary) []segmentDoc {
	docs, known := make([]segmentDoc, len(w.docs)), make(map[facetKey]uint32)
	for i := range w.docs {
		d := &w.docs[i]
		docs[i] = segmentDoc{d.id, [3][]uint32{columnBody: d.body, columnWhole: d.whole, columnFacet: d.facets(words, known)}}
	}
	return docs
}

// insertSegment adds a segment of documents to the full-text table. It changes the list of
// segments behind FTS5's back, so FTS5 must not hold anything in memory that it would write
// over the list, or rely on: see forgetStructure.
func (w *writer) insertSegment(g *segment, docs []segmentDoc) error {
	if err := w.forgetStructure(); err != nil {
		return err
	}
	var data []byte
	if _, err := w.find([]any{&data}, `SELECT block FROM fts_data WHERE id = ?`, structureRow); err != nil {
		return err
	}
	s, err := decodeStructure(data)
	if err != nil {
		return err
	}
	number, origin, err := s.free()
	if err != nil {
		return err
	}
	for _, p := range g.pages {
		if err := w.insertPage(int64(number)<<segmentShift|p.number, p.data); err != nil {
			return err
		}
	}
	for _, p := range g.splits {
		if _, err := w.exec(`INSERT INTO fts_idx (segid, term, pgno) VALUES (?, ?, ?)`, int64(number), p.term, p.page); err != nil {
			return err
		}
	}
	// A deletion finds the segment by the origin. The sizes are not used.
	ids := []byte{'['}
	for i := range docs {
		ids = append(strconv.AppendInt(ids, docs[i].id, 10), ',')
	}
	ids[len(ids)-1] = ']'
	_, err = w.exec(`INSERT INTO fts_docsize (id, sz, origin) SELECT value, x'000000', ? FROM json_each(?)`, int64(origin), string(ids))
	if err != nil {
		return err
	}
	work := s.add(ftsSegment{number: number, first: 1, last: uint64(g.last), oldest: origin, newest: origin, docs: uint64(len(docs))})
	if err := w.insertPage(structureRow, s.encode()); err != nil || work == 0 {
		return err
	}
	_, err = w.exec(`INSERT INTO fts (fts, rank) VALUES ('merge', ?)`, work)
	return err
}

func (w *writer) insertPage(row int64, data []byte) error {
	_, err := w.exec(`REPLACE INTO fts_data (id, block) VALUES (?, ?)`, row, data)
	return err
}

// forgetStructure makes FTS5 write what it holds back, and read the list of segments again
// when it next needs it. FTS5 keeps the list until another connection writes, and does not
// expect that its own connection writes segments. Beginning a savepoint makes it write, and
// rolling back to one makes it drop the list.
func (w *writer) forgetStructure() error {
	for _, query := range []string{
		`SAVEPOINT structure`,
		`DELETE FROM fts WHERE rowid = -1`, // deletes nothing, but FTS5 now takes part in the transaction
		`ROLLBACK TO structure`,
		`RELEASE structure`,
	} {
		if _, err := w.tx.ExecContext(w.ctx, query); err != nil {
			return err
		}
	}
	return nil
}
