package session

// The size of a context comes from counts in the log: a provider reports the size of all that
// it was sent for a response, and a message may have a count of its own. A report holds only
// for a context that begins with the same entries.

// span is a part of a context: the entries from one index up to another.
type span struct{ from, to int }

func addSpan(spans []span, from, to int) []span {
	if from >= to {
		return spans
	}
	return append(spans, span{from, to})
}

// changes finds the parts of a context whose responses were requested with other
// entries before them than there are now:
//
//   - A compaction comes before everything it keeps. What was said earlier was said
//     without it.
//   - An edit changes a message, so the reports of earlier responses no longer fit: they
//     counted the message as it had been.
//   - A revert takes back what was in force between its target and itself. If it is
//     reverted in turn, its target was out of force only between the two.
//
// Late results do so too: see arrangeResults. They are moved to their calls, before what
// was said without them.
//
// For example, each model's answer (m) has a report of the size of what was sent for it:
//
//	path                              the report of that answer
//	u1 m1                             m1: u1
//	u2 m2                             m2: u1 m1 u2
//	E, an edit that clears u1
//	u3 m3                             m3: (u1) m1 u2 m2 u3
//
// The context is (u1) m1 u2 m2 u3 m3. The reports of m1 and m2 counted u1 as it was, so the
// span from u1 to E is unlike; the size is taken from m3. If R reverts E after m3, the
// context begins with u1 again: E was in force from E to R, so that span is unlike, and the
// reports of m1 and m2 hold once more.
type changes struct {
	unlike   []span
	places   map[string]int     // where in the context an edited message is
	acts     map[string]*effect // of compactions, edits, merges and reverts
	prompted bool               // the message that began a split turn is there, and none from the cut on
}

// effect is whether a change is in force, up to where the path was followed.
type effect struct {
	since   int    // where that began, in the context
	reverts int    // how many reverts of it are in force: it counts if there are none
	holds   bool   // it is in force at the leaf
	target  string // of a revert
}

// note takes the next entry of the path into account, before it is added.
func (ch *changes) note(c *Context, sel *selection, e *Entry, edits map[string]*Entry) {
	if e.Message != nil { // first: an effect costs an allocation, and most entries have none
		ch.noteMessage(c, e, edits[e.ID] != nil)
		return
	}
	at := len(c.Entries)
	act := effect{since: at, holds: !sel.reverted[e.ID]}
	switch {
	case e.ContextEdit != nil:
		if target := e.ContextEdit.TargetID; c.Edited[target] == e.ID {
			ch.unlike = addSpan(ch.unlike, ch.places[target], at)
		}
	case e.Revert != nil:
		act.target = e.Revert.TargetID
		ch.revert(act.target, 1, at, 0)
	case e.Merge != nil:
		for _, picked := range sel.picked[e.ID] {
			if edits[picked.ID] != nil {
				ch.setPlace(picked.ID, at)
			}
		}
	case e.Compaction != nil:
		if sel.compaction != nil && e.ID == sel.compaction.ID {
			ch.unlike = addSpan(ch.unlike, 0, at)
		}
	default:
		return
	}
	if ch.acts == nil {
		ch.acts = make(map[string]*effect)
	}
	ch.acts[e.ID] = &act
}

// noteMessage takes a message into account. The first after a cut decides whether the cut
// splits a turn, and so whether the message that began the turn is sent, too: the request for
// this message did not have it.
func (ch *changes) noteMessage(c *Context, e *Entry, edited bool) {
	at := len(c.Entries)
	switch {
	case edited:
		ch.setPlace(e.ID, c.beginOf(e, at))
	case ch.prompted:
		ch.unlike = addSpan(ch.unlike, 0, at+1)
	}
	ch.prompted = false
}

// setPlace remembers a place. An entry without one is before all entries.
func (ch *changes) setPlace(id string, at int) {
	if ch.places == nil {
		ch.places = make(map[string]int)
	}
	ch.places[id] = at
}

// maxReverts is how far reverts of reverts are followed.
const maxReverts = 64

// revert counts one revert of a change more, or one less. Where the change was in
// force and is not now, or the other way round, something else was sent.
func (ch *changes) revert(id string, by, at, depth int) {
	act := ch.acts[id]
	if act == nil || depth > maxReverts { // it is before all entries, or the chain of reverts is too long to follow
		ch.unlike = addSpan(ch.unlike, 0, at)
		return
	}
	was := act.reverts == 0
	act.reverts += by
	is := act.reverts == 0
	if was == is {
		return
	}
	switch {
	case act.target != "" && is:
		ch.revert(act.target, 1, at, depth+1)
	case act.target != "":
		ch.revert(act.target, -1, at, depth+1)
	case was != act.holds:
		ch.unlike = addSpan(ch.unlike, act.since, at)
	}
	act.since = at
}

// noReport is the index of the last report if none holds.
const noReport = -1

// readReport takes the size from the last response whose provider reported how large
// the context was, and still is up to there. It returns the index of the response, or
// noReport. A response that a merge has picked from another branch was asked for
// elsewhere.
func (c *Context) readReport(unlike []span) int {
	depth := depths(unlike, len(c.Entries))
	for i := len(c.Entries) - 1; i >= 0; i-- {
		m := c.Entries[i].Message
		if m == nil || m.Usage == nil || m.Usage.Context() == 0 || c.origin[i] == notOnPath {
			continue
		}
		if depth != nil {
			if begin := c.beginOf(&c.Entries[i], i); depth[begin] > 0 {
				i = begin // nor does what else the response has
				continue
			}
		}
		c.Tokens = m.Usage.Context()
		return i
	}
	return noReport
}

// depths returns in how many spans each of n entries is; nil if there are none.
// Thousands of spans may be nested, so they are not searched one by one.
func depths(spans []span, n int) []int32 {
	if len(spans) == 0 {
		return nil
	}
	depths := make([]int32, n+1)
	for _, s := range spans {
		depths[s.from]++
		depths[s.to]--
	}
	for i := range n {
		depths[i+1] += depths[i]
	}
	return depths
}

// beginOf returns where the response of an entry at an index begins: it was requested
// before that.
func (c *Context) beginOf(e *Entry, index int) int {
	for at := index - 1; at >= 0; at-- {
		before := &c.Entries[at]
		if before.Message == nil {
			continue
		}
		var pairs Pairs
		pairs.Add(before)
		if !pairs.Continues(e) {
			break
		}
		e, index = before, at
	}
	return index
}

// countAfter adds the sizes that were recorded with the messages after a report.
func (c *Context) countAfter(report int) {
	for i := report + 1; i < len(c.Entries); i++ {
		if m := c.Entries[i].Message; m != nil && m.Tokens != nil {
			c.Tokens += *m.Tokens
		} else {
			c.Uncounted++
		}
	}
}
