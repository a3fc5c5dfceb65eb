package session

import (
	"slices"
	"time"
)

// batch is a set of entries ready to be written. A session has one and reuses its memory,
// except for the ids, which the caller keeps.
type batch struct {
	ids   []string
	own   []string // memory for ids that no caller needs
	heads []headLine
	lines [][]byte
	ends  []int     // where in text each line ends
	runs  []int     // for each entry, where the run of consecutive parents and children up to it begins
	text  []byte    // the lines, one after the other
	leaf  string    // after these entries
	size  int64     // what they add to the session, blobs included
	now   time.Time // the time of the last one
	byID  map[string]int
}

// How much memory a session keeps for its next batch. Grafts are large and come one after
// the other; otherwise a single huge line must not stay in memory for good.
const (
	keptText  = 64 << 10
	keptGraft = 16 << 20
	keptLines = 64
)

// reset empties the batch and makes room for a number of entries.
func (b *batch) reset(entries int, leaf string, alone bool) {
	if cap(b.lines) > keptLines {
		b.heads, b.lines, b.ends, b.runs = nil, nil, nil, nil
	}
	b.leaf, b.size, b.byID, b.now = leaf, 0, nil, time.Time{}
	if alone {
		b.ids = b.own[:0]
	} else {
		b.ids = make([]string, 0, entries)
	}
	b.heads, b.lines, b.ends, b.runs, b.text = b.heads[:0], b.lines[:0], b.ends[:0], b.runs[:0], b.text[:0]
}

// cut splits the text into its lines, and drops the buffer if it is too large to keep for
// the next batch.
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

// add adds an entry whose line, of the given length, is at the end of the text.
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
	if b.byID != nil {
		b.byID[e.ID] = n
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

// index returns the position of an id in the batch, or -1.
func (b *batch) index(id string) int {
	if b.byID == nil && len(b.ids) < 16 {
		return slices.Index(b.ids, id)
	}
	if b.byID == nil {
		b.byID = make(map[string]int, cap(b.ids))
		for i, id := range b.ids {
			b.byID[id] = i
		}
	}
	if i, ok := b.byID[id]; ok {
		return i
	}
	return -1
}
