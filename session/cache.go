package session

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/store"
)

// cacheBytes limits, roughly, the lines whose decoded form is kept in addition to those of
// the path read last. At least half of it is the entries that were read most recently.
const cacheBytes = 32 << 20

// fewNodes is how many entries may be asked for one by one, and soon again.
const fewNodes = 64

// entryCache keeps decoded entries by their position: those of the path that was read
// last, however long it is, because it is likely to be read again with little added; and
// others up to cacheBytes.
//
// The others are in two generations. When the young one is full, the old one is dropped
// and the young one becomes old. An entry that is asked for again moves to the young one.
//
// Who asks for more than fewNodes walks through the session, as an export does, and will
// not ask again soon: the entries that are read for them are not kept.
//
// Entries in the cache never change, because shared contexts point to them: an entry is
// cloned before it is handed out, unless the caller asked for a shared context.
type entryCache struct {
	mu         sync.Mutex
	path       []cachedAt // by position
	young, old map[store.Pos]cached
	bytes      int // in young
	oldBytes   int
	pathBytes  int
}

type cached struct {
	entry *Entry
	bytes int
}

type cachedAt struct {
	pos store.Pos
	cached
}

// find fills in the cached entries of nodes and returns how many are missing, not counting
// gaps. Nodes that are not sorted by position may be missed.
func (c *entryCache) find(nodes []node, entries []cached) (missing int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	path := c.path
	if len(nodes) > 0 {
		at, _ := slices.BinarySearchFunc(path, nodes[0].pos, func(e cachedAt, pos store.Pos) int { return cmp.Compare(e.pos, pos) })
		path = path[at:]
	}
	for i := range nodes {
		pos := nodes[i].pos
		for len(path) > 0 && path[0].pos < pos {
			path = path[1:]
		}
		switch {
		case nodes[i].kind == kindGap:
		case len(path) > 0 && path[0].pos == pos:
			entries[i] = path[0].cached
		default:
			if entries[i] = c.get(pos); entries[i].entry == nil {
				missing++
			}
		}
	}
	return missing
}

func (c *entryCache) get(pos store.Pos) cached {
	if e, ok := c.young[pos]; ok {
		return e
	}
	e, ok := c.old[pos]
	if ok {
		c.put(pos, e)
	}
	return e
}

// add keeps the entries of nodes.
func (c *entryCache) add(nodes []node, entries []cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range entries {
		if entries[i].entry != nil {
			c.put(nodes[i].pos, entries[i])
		}
	}
}

func (c *entryCache) put(pos store.Pos, e cached) {
	if c.young == nil || c.bytes+e.bytes > cacheBytes/2 {
		c.young, c.old, c.bytes, c.oldBytes = make(map[store.Pos]cached), c.young, 0, c.bytes
	}
	c.young[pos] = e
	c.bytes += e.bytes
}

// setPath keeps the entries of a path that was read. Entries of the previous path that are
// not on this one become ordinary cached entries.
func (c *entryCache) setPath(nodes []node, entries []cached) {
	path := make([]cachedAt, 0, len(nodes))
	for i := range nodes {
		if entries[i].entry != nil {
			path = append(path, cachedAt{nodes[i].pos, entries[i]})
		}
	}
	c.replacePath(path)
}

func (c *entryCache) replacePath(path []cachedAt) {
	byPos := func(a, b cachedAt) int { return cmp.Compare(a.pos, b.pos) }
	if !slices.IsSortedFunc(path, byPos) {
		slices.SortFunc(path, byPos) // an entry may come after its children
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := path
	for _, e := range c.path {
		for len(rest) > 0 && rest[0].pos < e.pos {
			rest = rest[1:]
		}
		if len(rest) == 0 || rest[0].pos != e.pos {
			c.put(e.pos, e.cached)
		}
	}
	c.path, c.pathBytes = path, 0
	for i := range path {
		c.pathBytes += path[i].bytes
	}
}

// Footprint returns roughly how many bytes of memory the session takes, for programs that keep
// many of them open.
func (s *Session) Footprint() int64 {
	const self, node = 16 << 10, 128
	s.mu.RLock()
	nodes := cap(s.tree.nodes)
	s.mu.RUnlock()
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	return self + node*int64(nodes) + decodedWeight*int64(s.cache.bytes+s.cache.oldBytes+s.cache.pathBytes)
}

// forget releases the memory of the entries that were read.
func (s *Session) forget() {
	s.lastContext.Store(nil)
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.cache.path, s.cache.young, s.cache.old = nil, nil, nil
	s.cache.bytes, s.cache.oldBytes, s.cache.pathBytes = 0, 0, 0
}

// entryAt returns the decoded entry of a node. The entry belongs to the cache:
// clone it before handing it out.
func (s *Session) entryAt(ctx context.Context, n *node) (*Entry, error) {
	all, err := s.entriesAt(ctx, []node{*n})
	if err != nil {
		return nil, err
	}
	if all[0] == nil {
		return nil, &Error{Op: "read", Name: s.name, Offset: int64(n.pos), At: true, Kind: ErrCorrupt, Err: fmt.Errorf("entry %q is damaged", n.id)}
	}
	return all[0], nil
}

// nearestFirst yields the entries of some kinds among nodes, which are in the reverse
// order of the log. Damaged ones are left out; they are reported when asked for. How many
// the caller will want is unknown, so it reads one at first and then more at a time.
func (s *Session) nearestFirst(ctx context.Context, nodes []node, kinds ...kind) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		const most = 256
		some := make([]node, 0, most)
		for want := 1; len(nodes) > 0; want = min(2*want, most) {
			for some = some[:0]; len(nodes) > 0 && len(some) < want; nodes = nodes[1:] {
				if slices.Contains(kinds, nodes[0].kind) {
					some = append(some, nodes[0])
				}
			}
			slices.Reverse(some)
			entries, err := s.entriesAt(ctx, some)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, e := range slices.Backward(entries) {
				if e != nil && !yield(e, nil) {
					return
				}
			}
		}
	}
}

// seekGap is the largest gap between two lines that are still read in one go.
const seekGap = 64 << 10

// entriesAt returns the decoded entries of nodes that are sorted by position. Those that
// turn out to be damaged are nil.
func (s *Session) entriesAt(ctx context.Context, nodes []node) ([]*Entry, error) {
	return s.decoded(ctx, nodes, s.cache.add)
}

// pathAt is entriesAt for a path that is likely to be asked for again.
func (s *Session) pathAt(ctx context.Context, nodes []node) ([]*Entry, error) {
	return s.decoded(ctx, nodes, s.cache.setPath)
}

// keepFew is where to keep entries of which n are asked for, nil if nowhere.
func (s *Session) keepFew(n int) func([]node, []cached) {
	if n > fewNodes {
		return nil
	}
	return s.cache.add
}

// decoded is entriesAt with a choice of where to keep the decoded entries; nil keeps none.
func (s *Session) decoded(ctx context.Context, nodes []node, keep func([]node, []cached)) ([]*Entry, error) {
	found := make([]cached, len(nodes))
	if missing := s.cache.find(nodes, found); missing > 0 {
		if err := s.decodeMissing(ctx, nodes, found); err != nil {
			return nil, err
		}
		if keep != nil {
			keep(nodes, found)
		}
	}
	entries := make([]*Entry, len(nodes))
	for i := range found {
		entries[i] = found[i].entry
	}
	return entries, nil
}

// eachLine reads the lines of nodes that are sorted by position, except those to be
// skipped. Lines that are close together are read in one go.
func (s *Session) eachLine(ctx context.Context, nodes []node, skip func(i int) bool, visit func(i int, line store.Line) error) error {
	i := 0
	next := func() bool {
		for i < len(nodes) && skip(i) {
			i++
		}
		return i < len(nodes)
	}
	for next() {
		before := i
		for line, err := range s.log.Forward(ctx, nodes[i].pos) {
			if err != nil {
				return err
			}
			if line.Pos == nodes[i].pos {
				if err := visit(i, line); err != nil {
					return err
				}
				i++
			}
			if !next() || nodes[i].pos < line.Next || nodes[i].pos-line.Next > seekGap {
				break
			}
		}
		if i == before {
			return &Error{Op: "read", Name: s.name, Offset: int64(nodes[i].pos), At: true, Kind: ErrCorrupt, Err: fmt.Errorf("entry %q is no longer in the log", nodes[i].id)}
		}
	}
	return nil
}
