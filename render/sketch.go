package render

import (
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// none is the number of no entry.
const none int32 = -1

// Sketch is the tree of a conversation as people see it, by the numbers of session.Shape; -1 is no
// entry. Entries that are only about the session (its name, tags, labels, origin) are left out;
// their children become children of the entry before. The last draft of an answer that was never
// completed, and what is queued, are messages.
//
// A sketch has some bytes for each entry and no pointers, so that a conversation of a million
// entries can stay in memory, and it grows with the conversation. The zero value is empty: see
// Update.
type Sketch struct {
	shape *session.Shape // nil if an update failed
	all   bool           // nothing is left out

	traits []trait // of each entry
	// up is the entry before; if that one is left out, the one before it, and so on.
	up []int32
	// head is the child that was worked on last. The others follow it in next, in any order.
	head, next []int32
	roots      []int32
	count      int // of the entries that are not left out

	waiting []int32 // what is queued
	last    int32   // the entry at which, or after which, something was done last
	labels  map[int32]string
	rev     int // changes if not only new entries came
	edits   int // how often an entry came or, being a draft, went

	searched, subagents int // how far the log was searched for calls that started subagents
}

// trait has the properties of an entry, in bits.
type trait uint8

const (
	isAside    trait = 1 << iota // it is about the session
	isDraft                      // it is a piece of an answer
	isAnswered                   // the answer went on after that piece
	isQueued                     // it has something queued
	isDone                       // what it has queued does not wait any more
	isLinked                     // it is among the children of its parent
	isPrompt                     // a person said it
	isStart                      // it started a subagent
)

// isShown reports whether an entry is not left out.
func (t trait) isShown() bool { return t&isAside == 0 || t.isUnsaid() }

// isUnsaid reports whether an entry is shown as a message.
func (t trait) isUnsaid() bool {
	return t&(isDraft|isAnswered) == isDraft || t&(isQueued|isDone) == isQueued
}

// NewSketch returns the tree of a conversation as it is now. With all, nothing is left out, and
// drafts are what they are.
func NewSketch(c Conversation, all bool) (*Sketch, error) {
	k := &Sketch{all: all}
	return k, k.Update(c)
}

// Update brings the sketch up to date with its session, of which it reads only the entries that may
// be about the session. It costs as much as what was appended since, unless the tree changed
// elsewhere.
func (k *Sketch) Update(c Conversation) error {
	shape, err := c.Shape()
	if err != nil {
		return err
	}
	older := k.shape
	k.shape = nil
	if older == nil || k.all || !shape.Grew(older) {
		return k.build(c, shape)
	}
	if shape.Len() > older.Len() {
		if ok, err := k.addFrom(shape, older.Len()); err != nil {
			return err
		} else if !ok {
			return k.build(c, shape)
		}
	}
	if shape.Relabelled(older) {
		if err := k.readLabels(c, shape); err != nil {
			return err
		}
	}
	k.shape = shape
	return nil
}

func (k *Sketch) build(c Conversation, shape *session.Shape) error {
	*k = Sketch{all: k.all, rev: k.rev, last: none}
	k.extend(shape.Len())
	if _, err := k.classify(shape, 0); err != nil {
		return err
	}
	for i := range int32(shape.Len()) {
		k.up[i], k.head[i], k.next[i] = k.shownAbove(shape, i), none, none
		if !k.traits[i].isShown() {
			continue
		}
		if k.count++; k.up[i] == none {
			k.roots = append(k.roots, i)
		}
	}
	for i := int32(shape.Len()) - 1; i >= 0; i-- { // what was worked on last comes first
		at := k.At(i)
		if k.last == none {
			k.last = at
		}
		for ; at != none && k.traits[at]&isLinked == 0; at = k.up[at] {
			k.traits[at] |= isLinked
			if p := k.up[at]; p == none {
				continue
			} else if h := k.head[p]; h == none {
				k.head[p] = at
			} else {
				k.next[at], k.next[h] = k.next[h], at
			}
		}
	}
	if err := k.readLabels(c, shape); err != nil {
		return err
	}
	k.shape = shape
	return nil
}

// extend makes room for n entries, and for some that will be appended later.
func (k *Sketch) extend(n int) {
	if n > cap(k.traits) {
		spare := n + n/16
		k.traits = append(make([]trait, 0, spare), k.traits...)
		k.up, k.head = append(make([]int32, 0, spare), k.up...), append(make([]int32, 0, spare), k.head...)
		k.next = append(make([]int32, 0, spare), k.next...)
	}
	k.traits, k.up, k.head, k.next = k.traits[:n], k.up[:n], k.head[:n], k.next[:n]
}

// shownAbove returns the entry before i that is not left out. Those with lower numbers know theirs.
func (k *Sketch) shownAbove(shape *session.Shape, i int32) int32 {
	p := shape.Parent(i)
	for p != none && !k.traits[p].isShown() {
		if p < i {
			p = k.up[p] // which may be a draft that went
		} else {
			p = shape.Parent(p)
		}
	}
	return p
}

// addFrom adds the entries from a number on. It reports false if the tree must be built again,
// because other entries are not where they were.
func (k *Sketch) addFrom(shape *session.Shape, from int) (ok bool, _ error) {
	k.extend(shape.Len())
	gone, err := k.classify(shape, int32(from))
	if err != nil {
		return false, err
	}
	for _, i := range gone { // a draft that was the end of the conversation
		p := k.up[i]
		if k.head[i] != none || p == none || k.head[p] != i || k.next[i] != none {
			return false, nil
		}
		k.head[p] = none
		k.count--
		k.edits++
		if k.last == i {
			k.last = p
		}
	}
	for i := int32(from); i < int32(shape.Len()); i++ {
		k.add(shape, i)
	}
	return true, nil
}

func (k *Sketch) add(shape *session.Shape, i int32) {
	p := k.shownAbove(shape, i)
	k.up[i], k.head[i], k.next[i] = p, none, none
	if k.traits[i].isShown() {
		k.traits[i] |= isLinked
		k.count++
		k.edits++
		if p == none {
			k.roots = append(k.roots, i)
		} else {
			k.next[i], k.head[p] = k.head[p], i
		}
	}
	if p != none {
		k.markRecent(p)
	}
	if at := k.At(i); at != none {
		k.last = at
	}
}

// markRecent notes that something was done at an entry. What leads to the last such entry is fresh
// already: nearly always that is all of it.
func (k *Sketch) markRecent(at int32) {
	for ; at != none && at != k.last; at = k.up[at] {
		p := k.up[at]
		if p == none || k.head[p] == at {
			continue
		}
		before := k.head[p]
		for k.next[before] != at {
			before = k.next[before]
		}
		k.next[before] = k.next[at]
		k.next[at], k.head[p] = k.head[p], at
	}
}

func (k *Sketch) readLabels(c Conversation, shape *session.Shape) error {
	labels, err := c.Labels()
	if err != nil {
		return err
	}
	k.labels = make(map[int32]string, len(labels))
	for id, label := range labels {
		if i := shape.Index(id); i != none {
			k.labels[i] = label
		}
	}
	k.rev++
	return nil
}

// Shape returns the tree in which the numbers are those of the sketch.
func (k *Sketch) Shape() *session.Shape { return k.shape }

// At returns an entry itself or, if it is left out, the one before it.
func (k *Sketch) At(i int32) int32 {
	for i != none && !k.traits[i].isShown() {
		i = k.up[i]
	}
	return i
}

// unread returns an entry that was not read: its id, that of its parent, and its type.
func (k *Sketch) unread(i int32) session.Entry {
	e := session.Entry{ID: k.shape.ID(i), Type: k.shape.Type(i)}
	if k.traits[i].isUnsaid() {
		e.Type = session.TypeMessage // it is read as one
	}
	if p := k.shape.Parent(i); p != none {
		id := k.shape.ID(p)
		e.ParentID = &id
	}
	return e
}

// Label returns the label of an entry, or "".
func (k *Sketch) Label(i int32) string { return k.labels[i] }

// Children returns the entries after one, in the order of the log; those after -1 are the roots.
func (k *Sketch) Children(i int32) (children []int32) {
	if i == none {
		return slices.Clone(k.roots)
	}
	for c := k.head[i]; c != none; c = k.next[c] {
		children = append(children, c)
	}
	slices.Sort(children)
	return children
}

// Parts reports whether an entry has children that are not in next.
func (k *Sketch) Parts(i int32, next []int32) bool {
	c := k.head[i]
	for c != none && slices.Contains(next, c) {
		c = k.next[c]
	}
	return c != none
}

// IsUnsaid reports whether an entry is a draft or has something queued, and is read as a message.
func (k *Sketch) IsUnsaid(i int32) bool { return k.traits[i].isUnsaid() }

// Messages counts the messages among some entries: also those that are drafts or queued.
func (k *Sketch) Messages(entries []int32) int {
	n := 0
	for _, i := range entries {
		if k.shape.Type(i) == session.TypeMessage || k.traits[i].isUnsaid() {
			n++
		}
	}
	return n
}

// isFork reports whether more than one entry follows one, or none.
func (k *Sketch) isFork(i int32) bool { return k.head[i] == none || k.next[k.head[i]] != none }

// Tip returns the end of the branch at or below an entry that was worked on last, and how many
// entries there are up to it.
func (k *Sketch) Tip(i int32) (tip int32, length int) {
	for length = 1; k.head[i] != none; length++ {
		i = k.head[i]
	}
	return i, length
}

// Trail is the path from the root to an entry.
type Trail struct {
	Entries []int32
	rev     int
}

// Follow makes the trail the path to an entry. That costs as much as what is new on it.
func (k *Sketch) Follow(t *Trail, leaf int32) {
	if t.rev != k.rev {
		t.Entries = t.Entries[:0]
	}
	t.rev = k.rev
	for n := len(t.Entries); n > 0 && !k.traits[t.Entries[n-1]].isShown(); n-- {
		t.Entries = t.Entries[:n-1] // a draft of what has been said now
	}
	known := none
	if n := len(t.Entries); n > 0 {
		known = t.Entries[n-1]
	}
	length := 0
	at := leaf
	for ; at > known; at = k.up[at] {
		length++
	}
	if at != known { // it parts from the path earlier
		t.Entries = t.Entries[:0]
		for ; at != none; at = k.up[at] {
			length++
		}
	}
	from := len(t.Entries)
	t.Entries = slices.Grow(t.Entries, length)[:from+length]
	for i, at := len(t.Entries)-1, leaf; i >= from; i, at = i-1, k.up[at] {
		t.Entries[i] = at
	}
}
