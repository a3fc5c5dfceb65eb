package session

import (
	"slices"
	"time"
)

// batch is a set of entries ready to be written. A session has one and uses its
// memory again and again, but for the ids, which are the caller's.
type batch struct {
	ids   []string
	own   []string // the memory of ids that nobody is given
	heads []headLine
	lines [][]byte
	ends  []int     // where in text each line ends
	runs  []int     // where the entries begin that follow one another up to each
	text  []byte    // the lines, one after the other
	leaf  string    // after them
	size  int64     // what they add to the session, with their blobs
	now   time.Time // when the last of them was completed
	at    map[string]int
}

// How much memory a session holds on to for its next batch. Grafts are large and
// come in rows; elsewhere one huge line must not be carried along for good.
const (
	keptText  = 64 << 10
	keptGraft = 16 << 20
	keptLines = 64
)

// reset empties the batch for so many entries.
func (b *batch) reset(entries int, leaf string, alone bool) {
	if cap(b.lines) > keptLines {
		b.heads, b.lines, b.ends, b.runs = nil, nil, nil, nil
	}
	b.leaf, b.size, b.at, b.now = leaf, 0, nil, time.Time{}
	if alone {
		b.ids = b.own[:0]
	} else {
		b.ids = make([]string, 0, entries)
	}
	b.heads, b.lines, b.ends, b.runs, b.text = b.heads[:0], b.lines[:0], b.ends[:0], b.runs[:0], b.text[:0]
}

// cut cuts the text into its lines, and lets go of it if it is too large to be
// kept for the next batch.
func (b *batch) cut(keep int) {
	begin := 0
	for _, end := range b.ends {
		b.lines = append(b.lines, b.text[begin:end:end])
		begin = end
	}
	if cap(b.text) > keep {
		b.text = nil
	}
}

// add takes in an entry whose line, of a length, is the end of the text.
func (b *batch) add(e *Entry, length int64) {
	h := headLine{id: e.ID, isRoot: e.ParentID == nil, kind: e.Type.kind()}
	if e.Message != nil {
		h.speaker = speakerOf(e.Message.Role)
	}
	b.leaf = e.ID
	if e.ParentID != nil {
		h.parent = *e.ParentID
	}
	if h.kind == kindLeaf {
		b.leaf = h.parent
	}
	n := len(b.ids)
	if b.at != nil {
		b.at[e.ID] = n
	}
	if n > 0 && b.ids[n-1] == h.parent {
		b.runs = append(b.runs, b.runs[n-1])
	} else {
		b.runs = append(b.runs, n)
	}
	b.ids = append(b.ids, e.ID)
	b.heads = append(b.heads, h)
	b.ends = append(b.ends, len(b.text))
	b.size += length + 1 + e.external()
}

// index returns where in the batch the entry of an id is, or -1.
func (b *batch) index(id string) int {
	if b.at == nil && len(b.ids) < 16 {
		return slices.Index(b.ids, id)
	}
	if b.at == nil {
		b.at = make(map[string]int, cap(b.ids))
		for i, id := range b.ids {
			b.at[id] = i
		}
	}
	if i, ok := b.at[id]; ok {
		return i
	}
	return -1
}
