package sqlite

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/coppice-dev/coppice/index/room"
)

// # Writing FTS5's segments
//
// FTS5 keeps its index as segments, as an LSM tree does: each has the tokens of some
// documents, sorted, and with each token its documents and its places in them. An INSERT
// hands FTS5 one document; FTS5 takes it apart again, token by token, and writes a segment of
// all documents when the transaction ends. In our build of SQLite that costs 0.8 µs for a
// token, several times as much as all the rest.
//
// So we build a batch's segment here, and put its pages where FTS5 looks for them, in the
// transaction that writes everything else. The rest is FTS5's own work: searching, deleting,
// merging segments. The format is that of the file, which FTS5 must be able to read forever;
// ext/fts5/fts5_index.c describes it at its beginning. The result is byte for byte what
// fts5FlushOneHash writes for the same documents, and a test compares the two.
//
// A segment is a list of pages, numbered from 1. This is one of them; numbers are
// varints except for the first two:
//
//	+---------------+---------------+-----------------------------+------------------+
//	| where the     | where the     | terms, each with            | where each term  |
//	| first id is   | footer begins | its documents               | begins           |
//	| 2 bytes       | 2 bytes       | body                        | footer           |
//	+---------------+---------------+-----------------------------+------------------+
//
//	term       how many bytes it shares with the one before, how many follow, these.
//	           The first of a page shares none, and does not say so.
//	document   how much greater its id is than that of the one before; 2 × the size of
//	           its positions; these. Where a page begins in the middle of a list, the
//	           first id is written in full, and the first two bytes say where.
//	position   2 + how many tokens after the one before; 1 and a number mean
//	           the beginning of that column.
//	footer     how far the first term is from the beginning of the page, and each
//	           other from the one before. Empty if no term begins on the page.
//
// A list longer than a page continues on the next, and may cover many. Each
// page on which a term begins has a row in fts_idx: the shortest string that is
// greater than all terms before the page and not greater than its first. If enough
// pages without a term follow it, they have a skip list: their first ids, by which
// FTS5 finds the page of a document without reading those before.

const (
	ftsPageSize   = 4050 // FTS5's default; a page of SQLite has room for it
	ftsPageHeader = 4
	ftsMainTerm   = '0' // the first byte of terms outside the prefix indexes
	// minSkipped is how many pages without a term are worth a skip list.
	minSkipped = 4

	segmentShift = 37 // of a segment's number, in the number of a page
	skipListBit  = 1 << 36
)

// occurrence is the place of a token: in which document of the batch, in which column,
// and after how many other tokens there.
type occurrence struct {
	doc   uint32
	place uint32 // the column is in the upper two bits
}

const columnShift = 30

// columnsOf returns the tokens of each column of the full-text table.
func columnsOf(t *room.Text) [3][]uint32 { return [3][]uint32{t.Body, t.Whole, t.Facets} }

// occurrencesIn sorts the tokens of documents by their numbers. Those with number n are
// occurrences[ends[n-1]:ends[n]], in the order of the documents.
func occurrencesIn(docs []room.Text, words int) (occurrences []occurrence, ends []uint32) {
	ends = make([]uint32, words+1)
	for i := range docs {
		for _, tokens := range columnsOf(&docs[i]) {
			for _, t := range tokens {
				ends[t+1]++
			}
		}
	}
	for i := 1; i < len(ends); i++ {
		ends[i] += ends[i-1]
	}
	occurrences = make([]occurrence, ends[words])
	for i := range docs {
		for column, tokens := range columnsOf(&docs[i]) {
			for n, t := range tokens {
				occurrences[ends[t]] = occurrence{uint32(i), uint32(column)<<columnShift | uint32(n)}
				ends[t]++
			}
		}
	}
	return occurrences, ends[:words]
}

// segment is what a batch's documents become.
type segment struct {
	pages  []segmentPage // with the skip lists
	splits []segmentSplit
	last   int64 // the number of the last page
}

// segmentPage is a page, or the skip list of those that follow it.
type segmentPage struct {
	number int64 // of a skip list with skipListBit
	data   []byte
}

// segmentSplit is a row of fts_idx.
type segmentSplit struct {
	term []byte
	page int64 // times two, plus one if it has a skip list
}

// segmentWriter builds a segment. It holds the page that it fills and the term whose
// documents it writes.
type segmentWriter struct {
	segment

	page     int64  // its number
	body     []byte // with the header
	footer   []byte
	termAt   int  // where on the page the last term begins
	hasTerm  bool // a term begins on the page
	hasDelta bool // the next id follows another one on this page, or a term, so its difference suffices

	term      []byte // the last one, with ftsMainTerm
	termPage  int64  // where it begins
	positions []byte // of a document

	split segmentSplit // of the last page on which a term begins
	// skips is the skip list of the pages without a term since then, of which there are
	// skipped; skipID is the last id in it. A page without an id has a 0 there.
	skips   []byte
	skipped int
	skipID  int64
}

// buildSegment builds a segment of documents, which are in the order of their ids and have
// tokens.
func buildSegment(docs []room.Text, words []string) *segment {
	w := &segmentWriter{page: 1, split: segmentSplit{term: []byte{}, page: 1 << 1}, body: make([]byte, ftsPageHeader, ftsPageSize+64)}
	occurrences, ends := occurrencesIn(docs, len(words))
	order := make([]uint32, len(words))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(words[a], words[b]) })
	for _, t := range order {
		from := uint32(0)
		if t > 0 {
			from = ends[t-1]
		}
		if from < ends[t] {
			w.list(words[t], docs, occurrences[from:ends[t]])
		}
	}
	if len(w.body) > ftsPageHeader {
		w.endPage()
	}
	w.endSplit()
	w.last = w.page - 1
	return &w.segment
}

// list writes a term and where it occurs.
func (w *segmentWriter) list(term string, docs []room.Text, all []occurrence) {
	w.startTerm(term)
	for prev := int64(0); len(all) > 0; {
		n := 1
		for n < len(all) && all[n].doc == all[0].doc {
			n++
		}
		id := docs[all[0].doc].ID
		w.startDoc(id, id-prev)
		w.writePositions(all[:n])
		prev, all = id, all[n:]
	}
}

// room is how many bytes the page still has.
func (w *segmentWriter) left() int { return ftsPageSize - len(w.body) - len(w.footer) }

func (w *segmentWriter) startTerm(term string) {
	shared := 0 // with the term before
	for shared < len(term) && shared+1 < len(w.term) && w.term[shared+1] == term[shared] {
		shared++
	}
	if len(w.term) > 0 {
		shared++ // what all begin with
	}
	size := len(term) + 1
	if w.left() <= size+2 && len(w.body) > ftsPageHeader {
		w.endPage()
	}
	w.footer = appendVarint(w.footer, uint64(len(w.body)-w.termAt))
	w.termAt = len(w.body)
	w.term = append(append(w.term[:0], ftsMainTerm), term...)
	if w.hasTerm {
		w.body = appendVarint(w.body, uint64(shared))
	} else {
		if w.page > 1 {
			w.endSplit()
			w.split = segmentSplit{slices.Clone(w.term[:shared+1]), w.page << 1}
		}
		shared = 0
	}
	w.body = appendVarint(w.body, uint64(size-shared))
	w.body = append(w.body, w.term[shared:]...)
	w.hasTerm, w.hasDelta, w.termPage = true, true, w.page
}

// startDoc writes the id of a document: its difference from the one before, or in full where
// a page begins.
func (w *segmentWriter) startDoc(id, delta int64) {
	if w.hasDelta {
		w.body = appendVarint(w.body, uint64(delta))
		return
	}
	binary.BigEndian.PutUint16(w.body, uint16(len(w.body)))
	w.body = appendVarint(w.body, uint64(id))
	w.hasDelta = true
	if len(w.skips) == 0 {
		w.skips = appendVarint(append(w.skips, 0), uint64(w.page))
		w.skipID = 0
	}
	w.skips = appendVarint(w.skips, uint64(id-w.skipID))
	w.skipID = id
}

// writePositions writes where a term is in a document.
func (w *segmentWriter) writePositions(all []occurrence) {
	if at := all[0].place; len(all) == 1 && at < 126 && w.left() >= 2 { // once, in the body, as nearly always
		w.body = append(w.body, 1<<1, byte(at+2))
		return
	}
	w.positions = w.positions[:0]
	column, prev := uint32(0), uint32(0)
	for _, o := range all {
		if c := o.place >> columnShift; c != column {
			w.positions = append(w.positions, 1, byte(c))
			column, prev = c, 0
		}
		at := o.place & (1<<columnShift - 1)
		if by := at - prev + 2; by < 0x80 { // as nearly always
			w.positions = append(w.positions, byte(by))
		} else {
			w.positions = appendVarint(w.positions, uint64(by))
		}
		prev = at
	}
	size := uint64(len(w.positions)) * 2
	if varintSize(size)+len(w.positions) <= w.left() {
		w.body = append(appendVarint(w.body, size), w.positions...)
		return
	}
	w.spread(append(appendVarint(nil, size), w.positions...))
}

// spread writes numbers on as many pages as they need, without splitting a number.
func (w *segmentWriter) spread(numbers []byte) {
	for len(numbers) > 0 {
		n := len(numbers)
		if left := w.left(); n > left {
			n = varintsIn(numbers, left)
		}
		w.body = append(w.body, numbers[:n]...)
		numbers = numbers[n:]
		if w.left() <= 0 {
			w.endPage()
		}
	}
}

// varintsIn returns the length of the numbers that fit, or of one if none does.
func varintsIn(numbers []byte, room int) int {
	fit := 0
	for i, b := range numbers {
		if b >= 0x80 {
			continue
		}
		if i+1 > room {
			return cmp.Or(fit, i+1)
		}
		fit = i + 1
	}
	return fit
}

// endPage finishes the page and begins the next.
func (w *segmentWriter) endPage() {
	binary.BigEndian.PutUint16(w.body[2:], uint16(len(w.body)))
	if !w.hasTerm {
		if !w.hasDelta && len(w.skips) > 0 {
			w.skips = append(w.skips, 0)
		}
		w.skipped++
	}
	w.pages = append(w.pages, segmentPage{w.page, slices.Concat(w.body, w.footer)})
	w.body, w.footer = append(w.body[:0], 0, 0, 0, 0), w.footer[:0]
	w.termAt, w.hasTerm, w.hasDelta = 0, false, false
	w.page++
}

// endSplit completes the fts_idx row of the last page on which a term begins, and the skip
// list of the pages after it.
func (w *segmentWriter) endSplit() {
	if w.skipped >= minSkipped && len(w.skips) > 0 {
		w.split.page |= 1
		w.pages = append(w.pages, segmentPage{skipListBit | w.termPage, slices.Clone(w.skips)})
	}
	w.splits = append(w.splits, w.split)
	w.skips, w.skipped = w.skips[:0], 0
}
