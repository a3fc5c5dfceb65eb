package index

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

// # Writing FTS5's segments
//
// FTS5 keeps its index as segments, as an LSM tree does: each has the tokens of some
// documents, sorted, and with each token its documents and where in them it stands.
// An INSERT hands FTS5 one document; FTS5 takes it apart again, token by token, and
// makes a segment of what has come together when the transaction ends. In our build
// of SQLite that costs 0.8 µs for a token, several times as much as all the rest.
//
// So a batch's segment is made here, and its pages are put where FTS5 looks for them,
// in the transaction that writes everything else. All that comes later is FTS5's own:
// searching, deleting, merging segments. The format is that of the file, which FTS5
// must be able to read forever; ext/fts5/fts5_index.c describes it at its beginning.
// What is written here is what fts5FlushOneHash writes for the same documents, byte
// for byte, and a test compares the two.

// The columns of the full-text table.
const (
	columnBody = iota
	columnWhole
	columnFacet
)

const (
	ftsPageSize = 4050 // FTS5's default; a page of SQLite has room for it
	ftsMainTerm = '0'  // what terms begin with that belong to no index of prefixes
	// minSkipped is how many pages without a term make a list worth an index of its own.
	minSkipped = 4

	structureRow   = 10
	segmentShift   = 37 // of a segment's number, in the number of a page
	skipListBit    = 1 << 36
	maxSegment     = 2000
	structureMagic = "\xff\x00\x00\x01"
)

// occurrence is where a token stands: in which document of the batch, in which column
// and after how many others there.
type occurrence struct {
	doc   uint32
	place uint32 // the column is in the upper two bits
}

const columnShift = 30

// segmentDoc is a document of a segment.
type segmentDoc struct {
	id     int64
	tokens [3][]uint32 // of each column, as the vocabulary numbers them
}

// occurrencesIn sorts the tokens of documents by their numbers. Those with number n are
// occurrences[ends[n-1]:ends[n]], in the order of the documents.
func occurrencesIn(docs []segmentDoc, words int) (occurrences []occurrence, ends []uint32) {
	ends = make([]uint32, words+1)
	for i := range docs {
		for _, tokens := range docs[i].tokens {
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
		for column, tokens := range docs[i].tokens {
			for n, t := range tokens {
				occurrences[ends[t]] = occurrence{uint32(i), uint32(column)<<columnShift | uint32(n)}
				ends[t]++
			}
		}
	}
	return occurrences, ends[:words]
}

// segmentWriter writes the pages of a segment.
type segmentWriter struct {
	segment int64
	page    func(row int64, data []byte) error
	// split is called with each page that has a term, and what all terms from that page
	// on have at least.
	split func(term []byte, page int64) error

	n         int64  // of the page
	buf       []byte // the page
	footer    []byte // where its terms are
	lastTerm  int    // where the last one is
	hasTerm   bool
	hasRowid  bool // before its first term, or after any
	term      []byte
	splitTerm []byte
	splitPage int64
	termPage  int64 // where the term at hand begins

	skips    []byte // the first documents of the pages that have no term
	skipPrev int64
	empty    int // pages without a term since the last that has one

	positions []byte
	err       error
}

func newSegmentWriter(segment int64, page func(row int64, data []byte) error, split func(term []byte, page int64) error) *segmentWriter {
	return &segmentWriter{segment: segment, page: page, split: split, n: 1, splitPage: 1, splitTerm: []byte{}, buf: make([]byte, 4, ftsPageSize+64)}
}

// write writes all terms and returns how many pages there are.
func (w *segmentWriter) write(docs []segmentDoc, words []string) (pages int64, err error) {
	occurrences, ends := occurrencesIn(docs, len(words))
	order := make([]uint32, 0, len(words))
	for i := range words {
		order = append(order, uint32(i))
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
	if len(w.buf) > 4 {
		w.flush()
	}
	if w.n > 1 {
		w.endSplit()
	}
	return w.n - 1, w.err
}

// list writes a term and where it occurs.
func (w *segmentWriter) list(term string, docs []segmentDoc, all []occurrence) {
	w.startTerm(term)
	for prev := int64(0); len(all) > 0; {
		n := 1
		for n < len(all) && all[n].doc == all[0].doc {
			n++
		}
		id := docs[all[0].doc].id
		w.startDoc(id, id-prev)
		w.places(all[:n])
		prev, all = id, all[n:]
	}
}

func (w *segmentWriter) startTerm(term string) {
	shared := 0 // with the term before
	for shared < len(term) && shared+1 < len(w.term) && w.term[shared+1] == term[shared] {
		shared++
	}
	if len(w.term) > 0 {
		shared++ // what all begin with
	}
	size := len(term) + 1
	if len(w.buf)+len(w.footer)+size+2 >= ftsPageSize && len(w.buf) > 4 {
		w.flush()
	}
	w.footer = appendVarint(w.footer, uint64(len(w.buf)-w.lastTerm))
	w.lastTerm = len(w.buf)
	w.term = append(append(w.term[:0], ftsMainTerm), term...)
	if w.hasTerm {
		w.buf = appendVarint(w.buf, uint64(shared))
	} else {
		if w.n > 1 {
			w.endSplit()
			w.splitTerm, w.splitPage = append(w.splitTerm[:0], w.term[:shared+1]...), w.n
		}
		shared = 0
	}
	w.buf = appendVarint(w.buf, uint64(size-shared))
	w.buf = append(w.buf, w.term[shared:]...)
	w.hasTerm, w.hasRowid, w.termPage = true, true, w.n
}

// startDoc writes the id of a document: by how much it is greater than the one
// before, or as it is where a page begins.
func (w *segmentWriter) startDoc(id, delta int64) {
	if w.hasRowid {
		w.buf = appendVarint(w.buf, uint64(delta))
		return
	}
	binary.BigEndian.PutUint16(w.buf, uint16(len(w.buf)))
	w.buf = appendVarint(w.buf, uint64(id))
	w.hasRowid = true
	if len(w.skips) == 0 {
		w.skips = appendVarint(append(w.skips, 0), uint64(w.n))
		w.skipPrev = 0
	}
	w.skips = appendVarint(w.skips, uint64(id-w.skipPrev))
	w.skipPrev = id
}

// places writes where in a document a term stands.
func (w *segmentWriter) places(all []occurrence) {
	w.positions = w.positions[:0]
	column, prev := uint32(0), uint32(0)
	for _, o := range all {
		if c := o.place >> columnShift; c != column {
			w.positions = append(w.positions, 1, byte(c))
			column, prev = c, 0
		}
		at := o.place & (1<<columnShift - 1)
		w.positions = appendVarint(w.positions, uint64(at-prev+2))
		prev = at
	}
	size := varintSize(uint64(len(w.positions)) * 2)
	if len(w.buf)+len(w.footer)+size+len(w.positions) <= ftsPageSize {
		w.buf = append(appendVarint(w.buf, uint64(len(w.positions))*2), w.positions...)
		return
	}
	w.spread(append(appendVarint(nil, uint64(len(w.positions))*2), w.positions...))
}

// spread writes numbers on as many pages as they need, each number on one.
func (w *segmentWriter) spread(numbers []byte) {
	for len(numbers) > 0 {
		n := len(numbers)
		if room := ftsPageSize - len(w.buf) - len(w.footer); n > room {
			n = varintsIn(numbers, room)
		}
		w.buf = append(w.buf, numbers[:n]...)
		numbers = numbers[n:]
		if len(w.buf)+len(w.footer) >= ftsPageSize {
			w.flush()
		}
	}
}

// varintsIn returns the length of the numbers that there is room for, or of one.
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

// flush writes the page.
func (w *segmentWriter) flush() {
	binary.BigEndian.PutUint16(w.buf[2:], uint16(len(w.buf)))
	if w.hasTerm {
		w.buf = append(w.buf, w.footer...)
	} else {
		if !w.hasRowid && len(w.skips) > 0 {
			w.skips = append(w.skips, 0)
		}
		w.empty++
	}
	if w.err == nil {
		w.err = w.page(w.segment<<segmentShift|w.n, w.buf)
	}
	w.buf, w.footer = append(w.buf[:0], 0, 0, 0, 0), w.footer[:0]
	w.lastTerm, w.hasTerm, w.hasRowid = 0, false, false
	w.n++
}

// endSplit writes what leads to the last page that began with a term, and to the
// pages without one that followed.
func (w *segmentWriter) endSplit() {
	skips := int64(0)
	if w.empty >= minSkipped && len(w.skips) > 0 {
		skips = 1
		if w.err == nil {
			w.err = w.page(w.segment<<segmentShift|skipListBit|w.termPage, w.skips)
		}
	}
	if w.err == nil {
		w.err = w.split(w.splitTerm, w.splitPage<<1|skips)
	}
	w.skips, w.empty = w.skips[:0], 0
}

// appendVarint writes a number as SQLite does: the upper bits first, and in the ninth
// byte all eight.
func appendVarint(b []byte, v uint64) []byte {
	switch {
	case v < 1<<7:
		return append(b, byte(v))
	case v < 1<<14:
		return append(b, byte(v>>7)|0x80, byte(v)&0x7f)
	case v >= 1<<56:
		v, last := v>>8, byte(v)
		for shift := 49; shift >= 0; shift -= 7 {
			b = append(b, byte(v>>shift)|0x80)
		}
		return append(b, last)
	}
	shift := 14
	for v >= 1<<(shift+7) {
		shift += 7
	}
	for ; shift > 0; shift -= 7 {
		b = append(b, byte(v>>shift)|0x80)
	}
	return append(b, byte(v)&0x7f)
}

func varintSize(v uint64) int {
	n := 1
	for ; v >= 1<<7 && n < 9; v >>= 7 {
		n++
	}
	return n
}

// readVarint is the reverse of appendVarint. Without a number it returns 0 bytes.
func readVarint(b []byte) (v uint64, n int) {
	for n < len(b) && n < 8 {
		v = v<<7 | uint64(b[n]&0x7f)
		n++
		if b[n-1] < 0x80 {
			return v, n
		}
	}
	if n < 8 || len(b) < 9 {
		return 0, 0
	}
	return v<<8 | uint64(b[8]), 9
}

// ftsSegment is a segment as the structure has it.
type ftsSegment struct {
	number, first, last uint64 // and its pages
	oldest, newest      uint64 // the transactions that its documents came with: origins
	graves, buried      uint64 // pages that say which documents are deleted, and how many are
	docs                uint64
}

// ftsLevel holds segments of about the same size. The first ones may be in the
// process of being merged.
type ftsLevel struct {
	merging  uint64
	segments []ftsSegment
}

// ftsStructure is the record that says which segments there are.
type ftsStructure struct {
	cookie  [4]byte // of FTS5's settings
	written uint64  // pages
	levels  []ftsLevel
}

var errStructure = errors.New("the structure of the full-text table cannot be understood")

func decodeStructure(data []byte) (*ftsStructure, error) {
	if len(data) < 8 || string(data[4:8]) != structureMagic {
		return nil, errStructure
	}
	s := &ftsStructure{cookie: [4]byte(data[:4])}
	r := varintReader{data: data[8:]}
	levels, total := r.next(), r.next()
	s.written = r.next()
	if levels > maxSegment || total > maxSegment { // FTS5 adds a level when it merges a segment that was deleted from
		return nil, errStructure
	}
	for range levels {
		l := ftsLevel{merging: r.next()}
		for n := min(r.next(), maxSegment+1); n > 0; n-- {
			l.segments = append(l.segments, ftsSegment{r.next(), r.next(), r.next(), r.next(), r.next(), r.next(), r.next(), r.next()})
			total--
		}
		s.levels = append(s.levels, l)
	}
	if r.short || total != 0 {
		return nil, errStructure
	}
	return s, nil
}

func (s *ftsStructure) encode() []byte {
	total := 0
	for _, l := range s.levels {
		total += len(l.segments)
	}
	b := append(append([]byte{}, s.cookie[:]...), structureMagic...)
	for _, n := range []uint64{uint64(len(s.levels)), uint64(total), s.written} {
		b = appendVarint(b, n)
	}
	for _, l := range s.levels {
		b = appendVarint(appendVarint(b, l.merging), uint64(len(l.segments)))
		for _, g := range l.segments {
			for _, n := range []uint64{g.number, g.first, g.last, g.oldest, g.newest, g.graves, g.buried, g.docs} {
				b = appendVarint(b, n)
			}
		}
	}
	return b
}

// free returns a number for a new segment, and its origin.
func (s *ftsStructure) free() (number, origin uint64, err error) {
	used := make(map[uint64]bool)
	for _, l := range s.levels {
		for _, g := range l.segments {
			used[g.number] = true
			origin = max(origin, g.newest)
		}
	}
	for number = 1; used[number]; number++ {
	}
	if number > maxSegment {
		return 0, 0, errStructure
	}
	return number, origin + 1, nil
}

// FTS5 merges segments as it writes: in proportion to the pages written, and at once
// where there are too many. This follows fts5IndexAutomerge and fts5IndexCrisismerge.
const (
	mergeUnit  = 64 // pages
	minMerged  = 8  // segments of a level; FTS5's setting "usermerge"
	maxOnLevel = 16
)

// add adds a segment to the lowest level. It returns how many pages of merging are due.
func (s *ftsStructure) add(g ftsSegment) (work int64) {
	if len(s.levels) == 0 {
		s.levels = append(s.levels, ftsLevel{})
	}
	s.levels[0].segments = append(s.levels[0].segments, g)
	units := (s.written+g.last)/mergeUnit - s.written/mergeUnit
	s.written += g.last
	work = int64(units * mergeUnit * uint64(len(s.levels)))
	able := false
	for _, l := range s.levels {
		able = able || l.merging > 0 || len(l.segments) >= minMerged
		if len(l.segments) < maxOnLevel {
			continue
		}
		pages := int64(0)
		for _, g := range l.segments {
			pages += int64(g.last - g.first + 1)
		}
		work = max(work, pages)
	}
	if !able {
		return 0
	}
	return work
}

// varintReader reads numbers. After the end all are 0, and short is true.
type varintReader struct {
	data  []byte
	short bool
}

func (r *varintReader) next() uint64 {
	v, n := readVarint(r.data)
	r.short = r.short || n == 0
	r.data = r.data[n:]
	return v
}
