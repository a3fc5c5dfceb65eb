package session

import (
	"fmt"
	"slices"
)

// Cuts knows where a conversation may be cut: before which entries a compaction or a window
// may begin. It is updated entry by entry, so that asking costs nothing.
//
// A cut may come before any entry, with these exceptions (Pairs has the terms): not between
// a tool call and its result, whatever is between the two; not after a pending call; not
// between an interrupted call and the user's message that interrupted it; not inside one
// response of the model, which may be several entries; and not before a message that brings
// tool results.
//
// A cut either falls between two turns or splits one: see CutKind.
type Cuts struct {
	pairs Pairs
	// points are all cuts that no pair and no response rules out, ascending. Those after
	// the oldest pending call are not legal yet, but become so when its result comes.
	points  []Cut
	decided int // how many of the points have their final kind
}

// Cut is a place where a conversation may be cut.
type Cut struct {
	At   int // the index of the entry right after the cut
	Kind CutKind
}

// CutKind says whether a cut splits a turn.
type CutKind uint8

const (
	// CutTurn is a cut between two turns: the first message after it begins a
	// turn, or there is no message after it.
	CutTurn CutKind = iota
	// CutStep is a cut inside a turn: the message that began the turn is before it. After
	// a compaction there, the context still has that message: see Context.
	CutStep
)

func (k CutKind) String() string {
	if k == CutStep {
		return "step"
	}
	return "turn"
}

// Add adds the next entry of the path.
func (c *Cuts) Add(e Entry) {
	before := c.pairs.now
	added := c.pairs.Add(&e)
	if before.pending > 0 && before.interjected && !c.pairs.now.interjected {
		c.remove(c.pairs.refs[before.oldest].Entry+1, before.spokenAt)
	}
	if !isToolMessage(&e) {
		c.points = append(c.points, Cut{At: added.Index})
	}
	if e.Message != nil {
		kind := CutStep
		if e.BeginsTurn() {
			kind = CutTurn
		}
		for ; c.decided < len(c.points); c.decided++ {
			c.points[c.decided].Kind = kind
		}
	}
	if added.Continues >= 0 {
		c.dropAfter(added.Continues)
	}
	for _, ref := range added.Refs {
		if !ref.Call && ref.Pair != NoPair {
			c.dropAfter(c.pairs.refs[ref.Pair].Entry)
		}
	}
}

// remove removes the cuts before a range of entries. The first cut after the range is at a
// message of the user, so only a turn's worth of cuts has to be moved.
func (c *Cuts) remove(from, to int) {
	find := func(at int) int {
		n, _ := slices.BinarySearchFunc(c.points, at, func(p Cut, at int) int { return p.At - at })
		return n
	}
	i, j := find(from), find(to)
	c.points, c.decided = slices.Delete(c.points, i, j), c.decided-(j-i)
}

// dropAfter removes the cuts after an entry, because the latest entry belongs to it.
func (c *Cuts) dropAfter(at int) {
	n := len(c.points)
	for n > 0 && c.points[n-1].At > at {
		n--
	}
	c.points, c.decided = c.points[:n], min(c.decided, n)
}

// legal returns the cuts that are legal now.
func (c *Cuts) legal() []Cut {
	if !c.pairs.Pending() {
		return c.points
	}
	waits := c.pairs.refs[c.pairs.now.oldest].Entry
	n, _ := slices.BinarySearchFunc(c.points, waits+1, func(p Cut, at int) int { return p.At - at })
	return c.points[:n]
}

// Legal returns the indices of the entries before which a cut is legal, in ascending order.
func (c *Cuts) Legal() []int {
	var at []int
	for _, cut := range c.legal() {
		at = append(at, cut.At)
	}
	return at
}

// Pending reports whether a tool call waits for its result. Nothing may be cut after it, so
// that a compaction keeps it.
func (c *Cuts) Pending() bool { return c.pairs.Pending() }

func cutsOf(entries []Entry) *Cuts {
	c := &Cuts{}
	for i := range entries {
		c.Add(entries[i])
	}
	return c
}

// CutPoints returns where a conversation may be cut. See Cuts for the rules.
func CutPoints(entries []Entry) []Cut { return cutsOf(entries).legal() }

func (c *Cuts) check(entries []Entry, at int) error {
	if slices.ContainsFunc(c.legal(), func(cut Cut) bool { return cut.At == at }) {
		return nil
	}
	return &CutError{entries[at].ID, c.whyNot(entries, at)}
}

// whyNot explains why there is no cut before an entry.
func (c *Cuts) whyNot(entries []Entry, at int) string {
	for _, ref := range c.pairs.refs {
		if ref.Call && ref.Entry < at && ref.Pair != NoPair && c.pairs.refs[ref.Pair].Entry >= at {
			return fmt.Sprintf("it would separate tool call %s from its result in entry %s", ref.ID, entries[c.pairs.refs[ref.Pair].Entry].ID)
		}
	}
	for _, ref := range c.pairs.PendingCalls() {
		if ref.Entry < at {
			return fmt.Sprintf("tool call %s still waits for its result", ref.ID)
		}
	}
	if isToolMessage(&entries[at]) {
		return "a tool result cannot come first"
	}
	return "it continues the response of the entry before it"
}

// MoveCut changes a compaction that Graft refused with a *CutError so that Graft accepts it:
// it moves the cut to the nearest legal one that still keeps everything it kept before. path
// is what comes before the compaction. If there is no such cut, ok is false. Importers use it
// for compactions that our own programs would not have written.
func MoveCut(path []Entry, e Entry) (moved Entry, ok bool) {
	if e.Compaction == nil {
		return e, false
	}
	c := *e.Compaction
	if c.FirstKeptEntryID == e.ID {
		c.FirstKeptEntryID = ""
	}
	c.FirstKeptEntryID, ok = nearestCut(path, c.FirstKeptEntryID)
	c.State = nil // it described the other cut
	e.Compaction = &c
	return e, ok
}

// nearestCut returns the entry from which a compaction at the end of a path can keep it:
// firstKept if that is a legal cut, or else the nearest legal cut before it. An empty
// firstKept keeps nothing, and that stays so unless a tool call waits for its result. ok is
// false if firstKept is not on the path or there is no legal cut before it.
func nearestCut(path []Entry, firstKept string) (first string, ok bool) {
	c := cutsOf(path)
	at := len(path)
	if firstKept != "" {
		at = slices.IndexFunc(path, func(e Entry) bool { return e.ID == firstKept })
	} else if !c.Pending() {
		return "", true
	}
	for _, cut := range slices.Backward(c.legal()) {
		if cut.At <= at {
			return path[cut.At].ID, true
		}
	}
	return "", false
}
