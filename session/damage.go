package session

import (
	"bytes"
	"context"
	"sort"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// damage is a line in which an entry may have been lost.
type damage struct {
	pos    store.Pos
	before int32    // the entry before the lost one, or none
	ids    []string // what looks like ids in it
	taken  bool     // it became a gap itself, was the header, or was found for another entry: then only one of those ids can have been lost in it
}

// damageIndex finds the damaged line of a missing entry. A file may have as many damaged
// lines as missing entries, so a lookup must not examine all of them.
type damageIndex struct {
	byID  map[string][]int32 // the lines that have an id, ascending
	free  []int32            // by line and one more: see nearestFree
	known int                // this many lines are in
}

// damageOf returns the damaged line before a position in which an entry was probably lost:
// the one that contains its id, or else the nearest one that could have been anything and
// is still free. It returns nil if there is none.
func (t *tree) damageOf(id string, before store.Pos) *damage {
	x := &t.lost
	x.add(t.damage)
	end := sort.Search(len(t.damage), func(i int) bool { return t.damage[i].pos >= before })
	found := x.nearestFree(int32(end)) - 1
	if lines := x.byID[id]; len(lines) > 0 {
		n := sort.Search(len(lines), func(i int) bool { return int(lines[i]) >= end })
		if n > 0 {
			found = lines[n-1]
		}
	}
	if found < 0 {
		return nil
	}
	t.damage[found].taken = true
	x.assign(found)
	return &t.damage[found]
}

// add adds the lines that are new.
func (x *damageIndex) add(lines []damage) {
	if x.byID == nil {
		x.byID, x.free = make(map[string][]int32), []int32{0}
	}
	for ; x.known < len(lines); x.known++ {
		d, at := &lines[x.known], int32(x.known)
		x.free = append(x.free, at+1)
		if d.taken {
			x.assign(at)
		}
		for _, id := range d.ids {
			x.byID[id] = append(x.byID[id], at)
		}
	}
}

// assign gives a line to a missing entry, so that it is no longer free.
func (x *damageIndex) assign(line int32) { x.free[line+1] = min(x.free[line+1], line) }

// nearestFree returns the number of lines up to and including the last free one among the
// first n, or 0 if all are taken. In x.free, a free line points to itself and a taken one
// to a line before it; following the chain shortens it (as in union-find), so that many
// lookups stay cheap.
func (x *damageIndex) nearestFree(n int32) int32 {
	for x.free[n] != n {
		x.free[n] = x.free[x.free[n]]
		n = x.free[n]
	}
	return n
}

// IDsIn returns what looks like ids of entries in a damaged line. Several lines may have
// been joined in it. A missing entry was probably lost in the line that contains its id.
func IDsIn(line []byte) []string {
	const lead = `"id":"`
	var ids []string
	for len(ids) < 64 {
		at := bytes.Index(line, []byte(lead))
		if at < 0 {
			break
		}
		id, _, closed := bytes.Cut(line[at+len(lead):], []byte(`"`))
		if !closed {
			break
		}
		ids, line = append(ids, string(id)), line[at+len(lead)-1:] // the closing quote may begin another
	}
	return ids
}

// Rewritten returns the lines of a log with only their first bytes intact, or of a type that we do
// not know, whose entries another line has whole and of a type that we know. They are damaged lines:
// what is left of an entry, or a type with a wrong byte in it, must not hide that other line.
func Rewritten(ctx context.Context, log store.Log) (map[store.Pos]bool, error) {
	end, err := log.End(ctx)
	if err != nil {
		return nil, err
	}
	return rewritten(ctx, log, end, func([]byte) bool { return true })
}

// rewritten is Rewritten for the entries with some ids.
func rewritten(ctx context.Context, log store.Log, end store.Pos, isAsked func(id []byte) bool) (map[store.Pos]bool, error) {
	damaged := make(map[store.Pos]bool)
	lost := make(map[string][]store.Pos)
	for _, whole := range []bool{false, true} { // first which may be damaged, then which of these are whole elsewhere
		for line, err := range log.Forward(ctx, 0) {
			if err != nil {
				return nil, err
			}
			if line.Next > end {
				break
			}
			h, ok := rawjson.ScanHead(line.Data)
			if !ok || line.Cut || string(h.Type) == string(TypeSession) || !isAsked(h.ID) {
				continue
			}
			places := lost[string(h.ID)]
			if whole && len(places) == 0 || isWhole(line, h) != whole {
				continue
			}
			if !whole {
				lost[string(h.ID)] = append(places, line.Pos)
				continue
			}
			for _, pos := range places {
				damaged[pos] = true
			}
		}
		if len(lost) == 0 {
			break
		}
	}
	return damaged, nil
}

// isWhole reports whether an entry's line is whole and its type is known.
func isWhole(line store.Line, h rawjson.Head) bool {
	return kindOfType(h.Type) != kindOther && (h.Whole || rawjson.Valid(line.Data))
}
