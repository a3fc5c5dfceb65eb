package session

import (
	"context"
	"fmt"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// How the logs of a chain become one tree. Session s1 continues s0. It begins with a copy of s0's
// instructions and a marker, so that it can be read by itself:
//
//	s0                     s1
//	a  system "be kind"    a  system "be kind", a copy: it has the id of what it is a copy of
//	b  user "one"          m  the marker, after a
//	c  model "two"         d  user "three", after m
//	                       e  model "four", after d
//
// Together they are one log, as if s1 had been written after s0, but for the lines up to the
// marker: what s1 begins with. Its parents say how s1 looks by itself. In the chain
//
//   - a does not count, because it is there;
//   - m comes after c, the leaf of s0.
//
//	a ─ b ─ c ─ m ─ d ─ e
//
// If s0 has lost the line of a, the copy takes its place. If s0 is missing, nothing is there
// before, so the copies are all that is left and count:
//
//	a ─ m ─ d ─ e
//
// If s1 has lost its marker, its beginning ends with the first entry that is new.
//
// Each copy but the first is the child of one before. A line that is not was moved there by damage,
// and keeps its own parent.

// enter is called before each line that is read from a log. At the first line of a later session of
// a chain, the tree of those before it is complete.
func (t *tree) enter(ctx context.Context, log store.Log, pos store.Pos) error {
	chain, ok := log.(*chainLog)
	if !ok {
		return nil
	}
	parts := chain.joined()
	for t.part+1 < len(parts) && parts[t.part+1].shift <= pos {
		t.part++
		p := parts[t.part]
		if err := t.complete(ctx, log, p.shift); err != nil {
			return err
		}
		t.begins, t.marker, t.copies, t.torn = true, noLine, make(map[string]bool), false
		if p.marker != noLine {
			t.marker = p.shift + p.marker
		}
	}
	return nil
}

// addBeginning adds a line of what a session begins with.
func (t *tree) addBeginning(line store.Line, h rawjson.Head) {
	head := t.headLine(line, h)
	isMarker, isLeaf := line.Pos == t.marker, head.kind == kindLeaf
	fits := !isLeaf && (isMarker || t.torn || fitsInBeginning(h, t.copies))
	if fits {
		t.copies[head.id], t.torn = true, false
	}
	if !h.HasParent && !fits {
		t.placeAfterLast(&head)
	}
	t.standing()
	at, known := t.at(head.id)
	switch {
	case known && t.nodes[at].kind != kindGap:
		t.repeats = append(t.repeats, repeat{at, head.pos})
	case known:
		head.hung = true
		t.fillGap(at, head)
	case isLeaf:
		t.addEntry(head)
	case t.marker == noLine: // the first that is new
		t.begins = false
		t.checkLostMarker(head)
		t.addEntry(t.hang(head))
	case fits:
		t.addEntry(t.hang(head))
	default:
		leaf := t.logLeaf
		t.addEntry(head)
		t.logLeaf = leaf
	}
}

// fitsInBeginning reports whether a line stands where copies do, given the ids of those before it: it
// names one of these as its parent, or is the first and names none.
func fitsInBeginning(h rawjson.Head, copies map[string]bool) bool {
	return h.HasParent && (copies[string(h.Parent)] || len(h.Parent) == 0 && len(copies) == 0)
}

// hang makes an entry the child of the leaf.
func (t *tree) hang(h headLine) headLine {
	h.parent, h.isRoot, h.placed, h.hung = t.logLeaf, t.logLeaf == "", false, true
	return h
}

// checkLostMarker reports that a session has lost its marker, if its first entry names it.
func (t *tree) checkLostMarker(first headLine) {
	if _, ok := t.at(first.parent); !ok && !first.isRoot {
		t.report(ProblemDangling, first.id, first.pos, fmt.Sprintf("its parent %q is missing, most likely the marker of the session", first.parent))
	}
}

// isHung reports whether the parent of an entry follows from the chain, and not from its line.
func (t *tree) isHung(id string) bool {
	at, ok := t.at(id)
	return ok && t.nodes[at].hung
}

// endBeginning is called after each line.
func (t *tree) endBeginning(line store.Line) {
	if t.begins && t.marker == line.Pos {
		t.begins = false
	}
}
