package session

import (
	"context"
	"slices"
)

// An agent asks for its context after every few appends. Nearly always the new context is
// the last one plus the appended entries. Then grow extends the last one, at the cost of what
// was appended, however long the conversation is. Anything that does more than add to the
// end (a compaction, an edit, a late tool result) goes to assemble, which knows all the
// rules.

// maxGrowth is how many entries grow looks at to find the last context's leaf. A single
// turn seldom appends more.
const maxGrowth = 256

// grow returns the last context plus the entries appended since, or nil if that is not all
// there is to it. It reports whether the context may be remembered.
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
	// In the last context every call has its result in place, so calls and results after
	// it can only belong to each other. That is why pairing the tail alone is enough.
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
	keep, err = c.fill(ctx, s.store.Blobs(), last)
	if err == nil && last.Fingerprints != nil {
		c.Fingerprints, err = fingerprintsAfter(c.Fingerprints, c.Entries)
	}
	if err != nil {
		return nil, false, err
	}
	return c, keep, nil
}

// nodesSince returns the nodes of the path from the last context's leaf (without it) to
// another leaf, or nil if grow cannot handle them.
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

// contextTail has the entries that were appended since a context was built.
type contextTail struct {
	Context
	reported bool // Tokens and Uncounted are of the whole context, not only of the tail
}

// count counts a tail the way readReport and countAfter count a context. It returns false
// if the response that reports the size begins before the tail; then only assemble can
// tell whether the report holds.
func (t *contextTail) count(last *Context, unlike []span) bool {
	report := t.readReport(unlike)
	t.countAfter(report)
	t.reported = report != noReport
	end := len(last.Entries)
	return !t.reported || t.beginOf(&t.Entries[report], report) > 0 || last.beginOf(&t.Entries[0], end) == end
}

// with returns the context extended by a tail.
//
// The lists of both contexts share memory. That is free of races because a list is never
// written below its length: new elements go past the end of every list in use, and readers
// of the older, shorter list never look there. It works only once per context, though,
// because a second extension would write to the same places. So the first one to set
// grown may append in place, and any other clips the lists, which makes append copy them.
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
