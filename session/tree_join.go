package session

import (
	"context"

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
// marker: the beginning of s1. Their parents say how s1 looks by itself. In the chain
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
// Each copy but the first is the child of an earlier copy. A line that is not was moved there by
// damage, and keeps its own parent.

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
		t.inBeginning, t.before, t.marker, t.lostMarker = true, int32(len(t.nodes)), noLine, ""
		t.copies, t.afterDamage = make(map[string]bool), false
		if p.marker != noLine {
			t.marker = p.shift + p.marker
		}
	}
	return nil
}

// addBeginning adds a line of the beginning of a session.
func (t *tree) addBeginning(line store.Line, h rawjson.Head) {
	head := t.headLine(line, h)
	isMarker, isLeaf := line.Pos == t.marker, head.kind == kindLeaf
	fits := !isLeaf && (isMarker || t.afterDamage || fitsInBeginning(h, t.copies))
	if fits {
		t.copies[head.id], t.afterDamage = true, false
	}
	if !h.HasParent && !fits {
		t.attachToLast(&head)
	}
	t.resolveLeaf()
	at, known := t.at(head.id)
	switch {
	case known && t.nodes[at].kind != kindGap:
		t.repeats = append(t.repeats, repeat{at, head.pos})
	case known && at < t.before:
		head.attached = true
		t.fillGap(at, head)
	case isLeaf:
		t.addEntry(head)
	case known: // its line was damaged, and written again
		t.inBeginning, head.attached = t.marker != noLine, true
		t.addEntry(head)
	case t.marker == noLine: // the first that is new
		t.inBeginning = false
		t.addFirst(head)
	case fits:
		t.addEntry(t.attachToLeaf(head))
	default:
		leaf := t.logLeaf
		t.addEntry(head)
		t.logLeaf = leaf
	}
}

// fitsInBeginning reports whether a line can be a copy, given the ids of the copies before it: it names
// one of these as its parent, or is the first and names none.
func fitsInBeginning(h rawjson.Head, copies map[string]bool) bool {
	return h.HasParent && (copies[string(h.Parent)] || len(h.Parent) == 0 && len(copies) == 0)
}

// addFirst adds the first entry that is new to a session without a marker. If its parent is not there,
// it comes later, or it is most likely the marker, which followed the leaf, if that is there.
func (t *tree) addFirst(h headLine) {
	if _, ok := t.at(h.parent); ok || h.isRoot || h.guessedParent || h.parent == h.id {
		t.addEntry(t.attachToLeaf(h))
		return
	}
	if t.logLeaf == "" {
		t.lostMarker, t.lostAfter = h.parent, none
	} else if at, ok := t.at(t.logLeaf); ok {
		t.lostMarker, t.lostAfter = h.parent, at
	}
	t.addEntry(h)
}

// attachToLeaf makes an entry the child of the leaf.
func (t *tree) attachToLeaf(h headLine) headLine {
	h.parent, h.isRoot, h.guessedParent, h.attached = t.logLeaf, t.logLeaf == "", false, true
	return h
}

// endBeginning is called after each line.
func (t *tree) endBeginning(line store.Line) {
	if t.inBeginning && t.marker == line.Pos {
		t.inBeginning = false
	}
}
