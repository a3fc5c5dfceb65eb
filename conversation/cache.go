package conversation

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// cache keeps links open: the most recently used ones, up to a number and an amount of
// memory. Links in use and pinned links stay, whatever the limits are.
//
// There is at most one link per session, because each has its own idea of what the log holds.
// mu guards the table only. Loading and closing a link do I/O, so they happen without it:
// whoever puts an item into the table loads it, and others wait for ready.
type cache struct {
	mu       sync.Mutex
	items    map[string]*cached
	clock    uint64 // counts uses
	count    int    // the limits
	bytes    int64
	pressure func() bool
	pins     map[string]bool
	priority map[string]int // 0 by default
	closing  func(*link)    // closes a link that was evicted; called without mu
}

type cached struct {
	link  *link
	err   error         // why it could not be loaded
	ready chan struct{} // closed when link or err is set; they do not change after that
	users int
	used  uint64 // when it was last used, by the cache's clock
}

func newCache(s Settings, pressure func() bool, closing func(*link)) *cache {
	return &cache{
		items: make(map[string]*cached), pins: make(map[string]bool), priority: make(map[string]int),
		count: s.MaxSessionsInMemory, bytes: s.MaxBytesInMemory, pressure: pressure, closing: closing,
	}
}

// get returns the link of an id, and loads it if necessary. The caller must release it. If
// another caller is loading it, get waits until ctx ends. If that caller gives up, get tries
// again: somebody else's cancelled context must not become our error.
func (c *cache) get(ctx context.Context, id string, load func() (*link, error)) (*link, error) {
	for {
		l, own, err := c.tryGet(ctx, id, load)
		if err == nil || own || ctx.Err() != nil || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			return l, err
		}
	}
}

// tryGet is get without the retry. own is false if the error is another caller's.
func (c *cache) tryGet(ctx context.Context, id string, load func() (*link, error)) (_ *link, own bool, _ error) {
	c.mu.Lock()
	item, ok := c.items[id]
	if !ok {
		item = &cached{ready: make(chan struct{})}
		c.items[id] = item
	}
	c.use(item)
	c.mu.Unlock()
	if !ok {
		item.link, item.err = load()
		close(item.ready)
	}
	select {
	case <-item.ready:
	case <-ctx.Done():
		c.unuse(item)
		return nil, true, ctx.Err()
	}
	if item.err != nil {
		c.forget(id, item)
		return nil, !ok, item.err
	}
	return item.link, !ok, nil
}

// unuse releases an item that is not loaded yet.
func (c *cache) unuse(item *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	item.users--
}

// has reports whether a link is in the cache.
func (c *cache) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.items[id] != nil
}

func (c *cache) use(item *cached) {
	c.clock++
	item.used = c.clock
	item.users++
}

// put adds a link that was just created. The caller must release it. If there is already a
// link for that session, put returns that one and closes the new one.
func (c *cache) put(l *link) *link {
	got, _ := c.get(context.Background(), l.id, func() (*link, error) { return l, nil })
	if got != nil && got != l {
		c.closing(l)
	}
	return got
}

// release ends the use of a link, and then makes room if necessary.
func (c *cache) release(l *link) {
	c.mu.Lock()
	if item := c.items[l.id]; item != nil && item.link == l {
		item.users--
	}
	c.mu.Unlock()
	c.evict()
}

// forget removes an item, unless another one has taken its place.
func (c *cache) forget(id string, item *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.items[id] == item {
		delete(c.items, id)
	}
}

// drop removes a link that can no longer be used, and closes it.
func (c *cache) drop(id string) {
	c.mu.Lock()
	item := c.items[id]
	delete(c.items, id)
	c.mu.Unlock()
	if item != nil {
		<-item.ready
		if item.err == nil {
			c.closing(item.link)
		}
	}
}

// limit changes the limits.
func (c *cache) limit(s Settings) {
	c.mu.Lock()
	c.count, c.bytes = s.MaxSessionsInMemory, s.MaxBytesInMemory
	c.mu.Unlock()
	c.evict()
}

// evict closes links until the limits hold. If memory is short, the limits are half of what
// they are otherwise.
func (c *cache) evict() {
	short := c.pressure() // without mu: the function may call SessionsInMemory
	c.mu.Lock()
	count, bytes := c.count, c.bytes
	if short && len(c.items) > 1 {
		count, bytes = count/2, bytes/2
	}
	victims := c.shrink(count, bytes)
	c.mu.Unlock()
	for _, v := range victims {
		c.closing(v)
	}
}

// shrink removes links until the limits hold or no other link may go. It is called with mu
// held; the caller closes the links afterwards, without it.
func (c *cache) shrink(count int, bytes int64) (victims []*link) {
	for len(c.items) > count || c.size() > bytes {
		id := c.victim()
		if id == "" {
			break
		}
		victims = append(victims, c.items[id].link)
		delete(c.items, id)
	}
	return victims
}

func (c *cache) size() (total int64) {
	for _, item := range c.items {
		if item.loaded() {
			total += item.link.bytes.Load()
		}
	}
	return total
}

func (i *cached) loaded() bool {
	select {
	case <-i.ready:
		return i.err == nil
	default:
		return false
	}
}

// victim returns the id of the link that should go first: among those with the lowest
// priority, the least recently used.
func (c *cache) victim() (id string) {
	lowest, oldest := math.MaxInt, uint64(math.MaxUint64)
	for candidate, item := range c.items {
		if item.users > 0 || c.pins[candidate] {
			continue
		}
		p := c.priority[candidate]
		if p < lowest || p == lowest && item.used < oldest {
			id, lowest, oldest = candidate, p, item.used
		}
	}
	return id
}

// open returns the links that are in the cache now. The caller releases them.
func (c *cache) open() []*link {
	c.mu.Lock()
	defer c.mu.Unlock()
	var links []*link
	for _, item := range c.items {
		if item.loaded() {
			item.users++ // without marking it as recently used
			links = append(links, item.link)
		}
	}
	return links
}

// heapNearLimit reports whether the heap is above nine tenths of its limit, if there is one.
func heapNearLimit() bool {
	limit := debug.SetMemoryLimit(-1) // a negative limit only asks
	if limit == math.MaxInt64 {
		return false
	}
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Kind() == metrics.KindUint64 && sample[0].Value.Uint64() > uint64(limit)/10*9
}

func (c *cache) pin(id string, pinned bool) {
	c.mu.Lock()
	if pinned {
		c.pins[id] = true
	} else {
		delete(c.pins, id)
	}
	c.mu.Unlock()
	c.evict()
}

func (c *cache) prioritise(id string, priority int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.priority[id] = priority
}

// contents returns the ids of the links and the size of their messages.
func (c *cache) contents() (ids []string, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.items {
		ids = append(ids, id)
	}
	return ids, c.size()
}

// shrinkTo closes links until they take at most a number of bytes.
func (c *cache) shrinkTo(bytes int64) {
	c.mu.Lock()
	victims := c.shrink(math.MaxInt, bytes)
	c.mu.Unlock()
	for _, v := range victims {
		c.closing(v)
	}
}

// close closes all links, even those in use.
func (c *cache) close() {
	c.mu.Lock()
	ids := make([]string, 0, len(c.items))
	for id := range c.items {
		ids = append(ids, id)
	}
	c.mu.Unlock()
	for _, id := range ids {
		c.drop(id)
	}
}
