package session

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/store"
)

// cacheBytes bounds the lines whose decoded form is kept, roughly: the larger
// half of it is what was asked for most recently.
const cacheBytes = 32 << 20

// entryCache keeps decoded entries by their position. It has two generations:
// when the young one is full, the old one is dropped and the young one becomes
// old. What is asked for again moves to the young one.
type entryCache struct {
	mu         sync.Mutex
	young, old map[store.Pos]cached
	bytes      int // in young
}

type cached struct {
	entry *Entry
	bytes int
}

func (c *entryCache) get(pos store.Pos) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.young[pos]; ok {
		return e.entry
	}
	e, ok := c.old[pos]
	if ok {
		c.put(pos, e)
	}
	return e.entry
}

func (c *entryCache) add(pos store.Pos, e *Entry, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(pos, cached{e, bytes})
}

func (c *entryCache) put(pos store.Pos, e cached) {
	if c.young == nil || c.bytes+e.bytes > cacheBytes/2 {
		c.young, c.old, c.bytes = make(map[store.Pos]cached), c.young, 0
	}
	c.young[pos] = e
	c.bytes += e.bytes
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

// nearestFirst yields the entries of nodes that stand in the reverse order of the
// log, those of some kinds. What is damaged is left out: it is reported when it is
// asked for. Nobody knows how many will be wanted, so it reads few at first and
// then more at a time.
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

// seekGap is how far apart two lines may be that are read in one go.
const seekGap = 64 << 10

// entriesAt returns the decoded entries of nodes that are sorted by position,
// nil for those that turn out to be damaged.
func (s *Session) entriesAt(ctx context.Context, nodes []node) ([]*Entry, error) {
	entries := make([]*Entry, len(nodes))
	skip := func(i int) bool {
		if nodes[i].kind != kindGap {
			entries[i] = s.cache.get(nodes[i].pos)
		}
		return nodes[i].kind == kindGap || entries[i] != nil
	}
	err := s.eachLine(ctx, nodes, skip, func(i int, line store.Line) error {
		entries[i] = s.decode(line)
		return nil
	})
	return entries, err
}

// eachLine reads the lines of nodes that are sorted by position, except those
// to be skipped. Lines that stand close together are read in one go.
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

// decode returns nil for a line that is not an entry after all: opening looks
// only at a line's first bytes.
func (s *Session) decode(line store.Line) *Entry {
	e, err := decodeEntry(line.Data)
	if err != nil {
		s.opts.Logger.Warn("damaged entry", "session", s.name, "offset", int64(line.Pos), "cause", err)
		return nil
	}
	s.cache.add(line.Pos, e, len(line.Data))
	return e
}
