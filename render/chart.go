package render

import (
	"context"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

const (
	// FoldIfLong folds the runs of a long tree and leaves a short one alone.
	FoldIfLong = -1
	longTree   = 200
	longRun    = 4
)

// maxIndent is how many branches of branches are drawn side by side. Deeper ones are
// not indented further: no terminal has room for them, and the lines that lead to an
// entry would be longer than what it says.
const maxIndent = 60

// BranchOff and BranchOn are what is before the first line of a branch, and before the others.
const BranchOff, BranchOn = "├─", "│ "

// Chart is a drawing of a tree, line by line. The path to the leaf is the trunk and runs straight
// down, however often the conversation branched: only what branches off is indented. Runs of more
// than some entries are folded. What people said, what started subagents, labels, compactions and
// the ends of branches are never folded away.
type Chart struct {
	sketch *Sketch
	leaf   int32
	asked  int // how to fold, as it was asked for
	fold   int // runs longer than this are folded; 0: never
	rev    int
	edits  int // of the sketch, up to which it is drawn

	lines  []int32  // entries; a negative one is how many are folded away
	depths []uint8  // of the branches they are on
	live   []uint64 // the entries on the path to the leaf, in bits
}

// ChartLine is a line of a chart.
type ChartLine struct {
	Entry  int32  // the first one, if they are folded
	Folded int    // how many are folded away; 0 means that it is an entry
	Lanes  string // what is before it
	Live   bool   // it is on the path to the leaf
}

// NewChart returns a chart of a sketch, which Update draws. Runs of more than fold entries are
// folded; 0 folds nothing.
func NewChart(k *Sketch, fold int) *Chart { return &Chart{sketch: k, asked: fold, rev: -1} }

// IsOf reports whether the chart is folded as asked for.
func (d *Chart) IsOf(k *Sketch, fold int) bool { return d.sketch == k && d.asked == fold }

// Update draws the sketch as it is now, with a trunk that ends at leaf. If the
// trunk grew and nothing else changed, that costs as much as what is new.
func (d *Chart) Update(ctx context.Context, c Conversation, leaf int32) error {
	k := d.sketch
	fold := d.asked
	if fold < 0 {
		if fold = 0; k.count > longTree {
			fold = longRun
		}
	}
	if fold > 0 {
		if err := k.findStarts(ctx, c); err != nil {
			return err
		}
	}
	if d.rev == k.rev && d.fold == fold && (d.leaf == leaf && d.edits == k.edits || d.extend(leaf)) {
		return nil
	}
	d.leaf, d.fold, d.rev, d.edits = leaf, fold, k.rev, k.edits
	d.lines, d.depths, d.live = d.lines[:0], d.depths[:0], make([]uint64, len(k.up)/64+1)
	for at := leaf; at != none; at = k.up[at] {
		d.live[at/64] |= 1 << (at % 64)
	}
	for _, root := range k.roots {
		d.draw(root)
	}
	return nil
}

// extend draws a trunk again that went on at its end, from the last mark on. It reports false if
// something else is new.
func (d *Chart) extend(leaf int32) bool {
	k, n := d.sketch, len(d.lines)
	if n == 0 || d.leaf == none || leaf == none || d.lines[n-1] != d.leaf || d.depths[n-1] != 0 || k.head[leaf] != none {
		return false
	}
	known := d.leaf // the end of what is still there
	if !k.traits[known].isShown() {
		known = k.up[known]
		n--
	}
	grown, at := 0, leaf
	for ; at > known; at = k.up[at] {
		grown++
	}
	if at != known || n == 0 || d.lines[n-1] != known || d.edits+len(d.lines)-n+grown != k.edits {
		return false
	}
	for d.fold > 0 && n > 1 && d.depths[n-2] == 0 && (d.lines[n-2] < 0 || !d.isMark(d.lines[n-2])) {
		n--
	}
	from := d.lines[n-1]
	d.lines, d.depths = d.lines[:n-1], d.depths[:n-1]
	for len(d.live) < len(k.up)/64+1 {
		d.live = append(d.live, 0)
	}
	for at := leaf; at >= known && at != none; at = k.up[at] {
		d.live[at/64] |= 1 << (at % 64)
	}
	d.leaf, d.edits = leaf, k.edits
	d.draw(from)
	return true
}

func (d *Chart) isLive(i int32) bool { return d.live[i/64]&(1<<(i%64)) != 0 }

// preferredChild returns the child with which the conversation continues: the live one, or else
// the one that was worked on last.
func (d *Chart) preferredChild(i int32) int32 {
	k := d.sketch
	if d.isLive(i) {
		for c := k.head[i]; c != none; c = k.next[c] {
			if d.isLive(c) {
				return c
			}
		}
	}
	return k.head[i]
}

// isMark reports whether an entry is worth seeing in a run that is folded.
func (d *Chart) isMark(i int32) bool {
	k := d.sketch
	return k.traits[i]&(isPrompt|isStart) != 0 || k.isFork(i) || i == d.leaf ||
		k.shape.Type(i) == session.TypeCompaction || k.labels[i] != ""
}

func (d *Chart) line(i int32, depth uint8) {
	d.lines, d.depths = append(d.lines, i), append(d.depths, depth)
}

// draw draws an entry of the trunk and how the conversation continues from it, with the branches
// that leave it there. It does not recurse: a branch may have branches as often as there are
// entries.
func (d *Chart) draw(from int32) {
	type stem struct {
		at    int32
		depth uint8
	}
	stems := []stem{{at: from}}
	for len(stems) > 0 {
		s := stems[len(stems)-1]
		stems = stems[:len(stems)-1]
		at := s.at
		for at != none {
			if d.fold > 0 {
				at = d.run(at, s.depth)
			}
			d.line(at, s.depth)
			onward := d.preferredChild(at)
			if onward == none || d.sketch.next[d.sketch.head[at]] == none {
				at = onward
				continue
			}
			stems = append(stems, stem{onward, s.depth})
			for _, other := range slices.Backward(d.sketch.Children(at)) { // the first is drawn first
				if other != onward {
					stems = append(stems, stem{other, min(s.depth+1, maxIndent)})
				}
			}
			break
		}
	}
}

// run draws the entries from one on up to a mark, which it returns. Both ends of a run that is
// folded are drawn.
func (d *Chart) run(from int32, depth uint8) (mark int32) {
	length := 0
	for mark = from; !d.isMark(mark); mark = d.sketch.head[mark] {
		length++
	}
	folded := 0
	if length > d.fold+1 { // folding one line away saves nothing
		folded = length - d.fold
	}
	at := from
	for i := 0; i < length; i++ {
		if i == (d.fold+1)/2 && folded > 0 {
			d.line(int32(-folded), depth)
			for range folded {
				at = d.sketch.head[at]
			}
			i += folded - 1
			continue
		}
		d.line(at, depth)
		at = d.sketch.head[at]
	}
	return mark
}

// Len returns how many lines there are.
func (d *Chart) Len() int { return len(d.lines) }

// Leaf returns the end of the trunk, or -1.
func (d *Chart) Leaf() int32 { return d.leaf }

// Line returns a line.
func (d *Chart) Line(i int) ChartLine {
	l, depth := ChartLine{Entry: d.lines[i]}, int(d.depths[i])
	if l.Entry < 0 {
		l.Folded, l.Entry = int(-l.Entry), d.sketch.head[d.lines[i-1]]
	}
	l.Live = d.isLive(l.Entry)
	if p := d.sketch.up[l.Entry]; depth > 0 && l.Folded == 0 && d.preferredChild(p) != l.Entry {
		l.Lanes = strings.Repeat(BranchOn, depth-1) + BranchOff
	} else {
		l.Lanes = strings.Repeat(BranchOn, depth)
	}
	return l
}

// Index returns the line of an entry, or that with which it is folded away.
func (d *Chart) Index(i int32) int {
	if at := slices.Index(d.lines, i); at >= 0 || d.fold == 0 {
		return at
	}
	for !d.isMark(i) {
		i = d.sketch.head[i]
	}
	at := slices.Index(d.lines, i)
	for at > 0 && d.lines[at] >= 0 {
		at--
	}
	return at
}

// findStarts finds the entries that started subagents.
func (k *Sketch) findStarts(ctx context.Context, c Conversation) error {
	if len(c.Subagents) != k.subagents {
		k.searched = 0
	}
	if k.subagents = len(c.Subagents); k.subagents == 0 {
		return nil
	}
	var calls []int32
	for i := int32(k.searched); i < int32(k.shape.Len()); i++ {
		if role, known := k.shape.Role(i); k.shape.Type(i) == session.TypeMessage && (role == session.RoleAssistant || !known) {
			calls = append(calls, i)
		}
	}
	for some := range slices.Chunk(calls, ReadAtOnce) {
		if err := ctx.Err(); err != nil {
			k.searched = 0
			return err
		}
		err := peekEach(k.shape, some, func(i int32, e *session.Entry) {
			if len(c.SubagentsOf(e)) > 0 && k.traits[i]&isStart == 0 {
				k.traits[i] |= isStart
				k.rev++
			}
		})
		if err != nil {
			k.searched = 0
			return err
		}
	}
	k.searched = k.shape.Len()
	return nil
}
