package session

import (
	"context"
	"slices"
)

// An agent asks for its context after every few appends. Nearly always the new
// context is the last one and what was appended; then it is made of the last one,
// and costs what was appended, however long the conversation is. Whatever does more
// than add to the end (a compaction, an edit, a tool result that comes late) is left
// to assemble, which knows all the rules.

// maxGrowth is how many entries of a path are looked at to find the last context's
// leaf. More are seldom appended in one turn.
const maxGrowth = 256

// grow returns a context that is the last one and what was appended since, or nil
// if it takes more than that. It reports whether the context may be remembered.
func (s *Session) grow(ctx context.Context, key contextKey, last *sharedContext) (c *sharedContext, keep bool, err error) {
	if last.key.unpaired != key.unpaired || !last.mayGrow {
		return nil, false, nil
	}
	nodes, err := s.nodesSince(ctx, key.leaf, last)
	if err != nil || nodes == nil {
		return nil, false, err
	}
	entries, err := s.inOrder(nodes)
	if err != nil || slices.Contains(entries, nil) {
		return nil, false, err
	}
	var tail contextTail
	tail.Entries = make([]Entry, 0, len(entries))
	for _, e := range entries {
		if last.edits[e.ID] != nil {
			return nil, false, nil
		}
		tail.contribute(&selection{}, e, nil)
		tail.originIs(len(last.path) + len(tail.path))
		tail.path = append(tail.path, e)
	}
	// All calls in the last context have their results in place, so that calls and
	// results after it can only belong to each other.
	var order arrangement
	if !key.unpaired {
		order = tail.pair()
	}
	if !order.isNone() || !tail.count(&last.Context, order.unlike) {
		return nil, false, nil
	}
	c = last.with(&tail)
	c.Leaf, c.key = key.leaf, key
	c.inBlobs = inBlobs(c.Entries, len(last.Entries))
	keep = c.fill(ctx, s.store.Blobs(), last)
	if last.Fingerprints != nil {
		c.Fingerprints, err = fingerprintsAfter(c.Fingerprints, c.Entries)
	}
	return c, keep, err
}

// nodesSince returns the nodes of the path from the last context's leaf to another,
// without the first. It returns nil if they are not as they must be for grow.
func (s *Session) nodesSince(ctx context.Context, leaf string, last *sharedContext) ([]node, error) {
	way, version, err := s.startAt(ctx, &leaf)
	if err != nil || version != last.version {
		return nil, err
	}
	var nodes []node
	for n := way.next(); n != nil; n = way.next() {
		switch {
		case n.id == last.Leaf:
			slices.Reverse(nodes)
			return nodes, nil
		case !kinds[n.kind].adds || len(nodes) == maxGrowth:
			return nil, nil
		}
		nodes = append(nodes, *n)
	}
	return nil, nil
}

// contextTail is what was appended to a context.
type contextTail struct {
	Context
	reported bool // Tokens and Uncounted are those of the whole context
}

// count counts a tail as takeReport and countAfter do a context. It returns false if
// the response that reports its size begins before the tail: whether the report holds
// is then for assemble to say.
func (t *contextTail) count(last *Context, unlike []span) bool {
	report := t.takeReport(unlike)
	t.countAfter(report)
	t.reported = report != noReport
	end := len(last.Entries)
	return !t.reported || t.beginOf(&t.Entries[report], report) > 0 || last.beginOf(&t.Entries[0], end) == end
}

// with returns the context with a tail. The lists of both contexts share their
// memory: new elements go past the end of every list that is in use. So a context
// can be extended in place only once; the second time, the lists are copied.
func (c *sharedContext) with(tail *contextTail) *sharedContext {
	g := &sharedContext{
		Context: c.Context, version: c.version, state: c.state, edits: c.edits, mayGrow: true,
		filled: c.filled, blobBytes: c.blobBytes,
	}
	g.Problems = slices.Clip(g.Problems)
	if c.grown.Swap(true) {
		g.Entries, g.Fingerprints = slices.Clip(g.Entries), slices.Clip(g.Fingerprints)
		g.path, g.origin = slices.Clip(g.path), slices.Clip(g.origin)
	}
	g.Entries = append(g.Entries, tail.Entries...)
	g.path, g.origin = append(g.path, tail.path...), append(g.origin, tail.origin...)
	if tail.reported {
		g.Tokens, g.Uncounted = tail.Tokens, tail.Uncounted
	} else {
		g.Tokens, g.Uncounted = g.Tokens+tail.Tokens, g.Uncounted+tail.Uncounted
	}
	for _, e := range tail.path {
		g.state.update(e)
	}
	g.Provider, g.Model, g.ThinkingLevel = g.state.Provider, g.state.Model, g.state.ThinkingLevel
	return g
}
