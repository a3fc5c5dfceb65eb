package sqlite

import (
	"errors"
	"slices"
)

// FTS5 keeps the list of its segments in one record, the structure.
const (
	structureRow   = 10
	structureMagic = "\xff\x00\x00\x01"
	maxSegment     = 2000
)

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

// ftsSegment is a segment in the structure.
type ftsSegment struct {
	number, first, last uint64 // and its pages
	oldest, newest      uint64 // the transactions that its documents came with: origins
	graves, buried      uint64 // pages that list deleted documents, and how many there are
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

var errStructure = errors.New("the structure of the full-text table cannot be decoded")

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

// has reports whether there is a segment with a number.
func (s *ftsStructure) has(number uint64) bool {
	return slices.ContainsFunc(s.levels, func(l ftsLevel) bool {
		return slices.ContainsFunc(l.segments, func(g ftsSegment) bool { return g.number == number })
	})
}

// free returns a number and an origin for a new segment. A deletion looks for a document in
// the segments of its origin, so the origin must be greater than all others: if two segments
// shared it, both would lose the document.
func (s *ftsStructure) free() (number, origin uint64, err error) {
	for _, l := range s.levels {
		for _, g := range l.segments {
			origin = max(origin, g.newest)
		}
	}
	for number = 1; s.has(number); number++ {
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
