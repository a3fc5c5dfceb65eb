package session

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coppice-dev/coppice/store"
)

// sharedContext is a context whose entries share memory with the cache and with all
// callers that asked for a shared one. So nothing in it ever changes once it is published
// in Session.lastContext. The session keeps the last one: asking again costs nothing, and
// asking after an append costs little more than what was appended.
type sharedContext struct {
	Context
	key       contextKey
	inBlobs   []int                           // the entries with content in blobs: see fill
	filled    map[*MessageEntry]*MessageEntry // messages by what they were before their blobs were filled in
	blobBytes int                             // how much was filled in

	// For grow:
	version treeVersion
	state   State             // at the leaf
	edits   map[string]*Entry // in force
	mayGrow bool
	grown   atomic.Bool // another context was built on it, in the same memory: see with
}

// contextKey is everything that a context depends on, unless the log is rewritten.
type contextKey struct {
	leaf     string
	end      store.Pos // how much of the log we have read
	unpaired bool
	closed   bool // no context is ever stored under such a key
}

// contextKey returns the key of a context in the session's present state.
func (s *Session) contextKey(o ContextOptions) contextKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if o.Leaf == "" {
		o.Leaf = s.tree.leaf
	}
	return contextKey{o.Leaf, s.tree.end, o.Unpaired, s.closed}
}

// sharedContext returns the context for the options: the last one if it still fits,
// grown from it if possible, or else assembled.
//
// It does not hold mu, so other goroutines may append. That is safe: the path comes from
// one snapshot of the tree, entries in the log do not change, and remember stores the
// result only if the session has not moved on.
func (s *Session) sharedContext(ctx context.Context, o ContextOptions, fingerprints bool) (*sharedContext, error) {
	key := s.contextKey(o)
	last := s.lastContext.Load()
	switch {
	case last == nil:
		last = &sharedContext{}
	case last.key == key && (last.Fingerprints != nil || !fingerprints):
		return last, nil
	case last.Fingerprints != nil || !fingerprints:
		c, keep, err := s.grow(ctx, key, last)
		if err != nil || c != nil {
			s.remember(c, o, keep)
			return c, err
		}
	}
	sel, err := s.selectPath(ctx, o.Leaf)
	if err != nil {
		return nil, err
	}
	if fingerprints { // GetContext needs neither these nor the model in force
		if err := s.findState(ctx, sel); err != nil {
			return nil, err
		}
	}
	sel.unpaired = o.Unpaired
	c := assemble(sel)
	c.Problems = s.locate(c.Problems)
	c.key = key
	keep, err := c.fill(ctx, s.store.Blobs(), last)
	if err != nil {
		return nil, err
	}
	if fingerprints {
		n := c.sameAs(last)
		c.Fingerprints, err = fingerprintsAfter(last.Fingerprints[:n:n], c.Entries)
		if err != nil {
			return nil, err
		}
	}
	s.remember(c, o, keep)
	return c, nil
}

// remember keeps a context for the next caller, unless the session has moved on.
func (s *Session) remember(c *sharedContext, o ContextOptions, keep bool) {
	if c != nil && keep && s.contextKey(o) == c.key {
		s.lastContext.Store(c)
	}
}

// inBlobs returns which entries, from an index on, have content in blobs.
func inBlobs(entries []Entry, from int) (at []int) {
	for i := from; i < len(entries); i++ {
		if entries[i].blobBytes() > 0 {
			at = append(at, i)
		}
	}
	return at
}

// fill fills in the content from blobs, taking it from the last context where possible. It
// reports whether the context may be remembered. It may not if something was missing,
// because that may come back, or if it is large.
func (c *sharedContext) fill(ctx context.Context, blobs store.Blobs, last *sharedContext) (keep bool, err error) {
	problems, own := len(c.Problems), false
	for _, i := range c.inBlobs {
		e := &c.Entries[i]
		c.blobBytes += e.blobBytes()
		source := e.Message
		if e.Message = last.filled[source]; e.Message == nil {
			e.Message = source.clone()
			gone, err := resolve(ctx, blobs, e, 0)
			if err != nil {
				return false, err
			}
			c.Problems = append(c.Problems, gone...)
		}
		if !own { // grow shares the map with the last context, which others may be reading
			c.filled, own = maps.Clone(c.filled), true
		}
		if c.filled == nil {
			c.filled = make(map[*MessageEntry]*MessageEntry)
		}
		c.filled[source] = e.Message
	}
	return len(c.Problems) == problems && c.blobBytes <= cacheBytes, nil
}

// sameAs returns how many fingerprints of the last context also hold for this one: as many
// as there are entries at the beginning that contribute the same to both.
func (c *sharedContext) sameAs(last *sharedContext) int {
	n := 0
	for n < len(last.Fingerprints) && n < len(c.Entries) && sameContribution(&c.Entries[n], &last.Entries[n]) {
		n++
	}
	return n
}

// sameContribution reports whether two entries certainly contribute the same to a request.
// Comparing pointers is enough, because they nearly always share the memory of their
// content, and that never changes.
func sameContribution(a, b *Entry) bool {
	if a.Type != b.Type || a.Message == nil || b.Message == nil {
		return a.Type == b.Type && a.Message == b.Message && a.Summary() == b.Summary()
	}
	x, y := a.Message.Content, b.Message.Content
	if a.Message.Role != b.Message.Role || len(x) != len(y) {
		return false
	}
	return len(x) == 0 && (x == nil) == (y == nil) || len(x) > 0 && (&x[0] == &y[0] || sameResults(x, y))
}

// sameResults reports whether blocks are results with the same text and nothing else. An
// edit that clears results makes such blocks afresh each time.
func sameResults(x, y []Content) bool {
	for i := range x {
		a, b := x[i].ToolResult, y[i].ToolResult
		if a == nil || b == nil || x[i].Extra != nil || y[i].Extra != nil || a.Extra != nil || b.Extra != nil || a.Parts != nil || b.Parts != nil {
			return false
		}
		if a.ToolUseID != b.ToolUseID || a.IsError != b.IsError || a.Content != b.Content || a.Blob != b.Blob || a.Size != b.Size {
			return false
		}
	}
	return true
}

// copy returns a copy of the context that the caller may change.
func (c *sharedContext) copy() *Context {
	made := c.Context
	made.Entries = cloneEntries(c.Entries)
	made.Fingerprints = slices.Clone(c.Fingerprints)
	made.Edited = maps.Clone(c.Edited)
	made.Problems = slices.Clone(c.Problems)
	return &made
}

// view returns the context for a caller who only reads it. Its lists are clipped, so that
// an append by the caller copies them instead of writing into memory that grow uses.
func (c *sharedContext) view() *Context {
	made := c.Context
	made.Entries = slices.Clip(c.Entries)
	made.Fingerprints = slices.Clip(c.Fingerprints)
	made.Problems = slices.Clip(c.Problems)
	return &made
}

// manyEntries is the number of entries from which it pays to clone them on several
// processors.
const manyEntries = 4096

func cloneEntries(entries []Entry) []Entry {
	if entries == nil {
		return nil
	}
	clones := make([]Entry, len(entries))
	workers := 1
	if len(entries) >= manyEntries {
		workers = runtime.GOMAXPROCS(0)
	}
	var done sync.WaitGroup
	for w := range workers {
		from, to := w*len(entries)/workers, (w+1)*len(entries)/workers
		part := func() {
			var room cloneRoom
			for i := from; i < to; i++ {
				clones[i] = entries[i].cloneInto(&room)
			}
		}
		if w == workers-1 {
			part()
		} else {
			done.Go(part)
		}
	}
	done.Wait()
	return clones
}
