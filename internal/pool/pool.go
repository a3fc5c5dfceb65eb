// Package pool keeps things open that are expensive to open: the most recently used ones, up
// to a number and an amount of memory.
package pool

import (
	"container/list"
	"context"
	"math"
	"sync"
	"time"
)

// Limits are how much a pool keeps. What is in use or pinned stays, whatever the limits are.
type Limits struct {
	Count int
	Bytes int64
}

// Options adjusts a Pool. Its functions may be nil.
type Options[T comparable] struct {
	// Close closes a value to make room, or because it was dropped. It reports whether the
	// value may go. If not, it stays in the pool, unless it was dropped. Default: it may go.
	Close func(T) bool
	// Size returns roughly how much memory a value takes. Default: nothing.
	Size func(T) int64
	// IsEmpty reports whether a value that was released by its last user is not worth
	// keeping. It then goes without Close. Default: all are.
	IsEmpty func(T) bool
	// IsShort reports whether memory is short. The limits are then halved.
	// Default: it never is.
	IsShort func() bool
	// Grace is how long a value stays after its last use even if there are too many, up to
	// Burst times as many as allowed. It does not help against the limit of bytes. Now is
	// the clock. Default: none.
	Grace time.Duration
	Burst int
	Now   func() time.Time
}

// Pool keeps values open by key. There is at most one value per key at any time, so two
// users of a key always share it: while one is opened or closed, others wait.
type Pool[T comparable] struct {
	options Options[T]

	// mu guards what follows. It is never held while a value is opened or closed, which
	// may take long, nor while a function of the options is called other than Size, IsEmpty
	// and Now.
	mu       sync.Mutex
	limits   Limits
	items    map[string]*list.Element
	recent   list.List // of *item, most recently used first
	bytes    int64
	pins     map[string]bool
	priority map[string]int // 0 by default
}

// item is a value in the pool. It is in one of three states:
//
//	busy: it is being opened or closed, and others wait until busy is closed;
//	in use: users > 0;
//	idle: it may be closed to make room.
type item[T comparable] struct {
	key   string
	value T
	busy  chan struct{} // nil if it is neither opened nor closed
	users int
	used  time.Time // when it was last released
	size  int64     // its part of the pool's bytes
}

// New returns an empty pool.
func New[T comparable](limits Limits, o Options[T]) *Pool[T] {
	if o.Close == nil {
		o.Close = func(T) bool { return true }
	}
	if o.Size == nil {
		o.Size = func(T) int64 { return 0 }
	}
	if o.IsEmpty == nil {
		o.IsEmpty = func(T) bool { return false }
	}
	if o.IsShort == nil {
		o.IsShort = func() bool { return false }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Pool[T]{
		options: o, limits: limits, items: make(map[string]*list.Element),
		pins: make(map[string]bool), priority: make(map[string]int),
	}
}

// Get returns the value of a key, and opens it if necessary. The caller must release it. While
// another caller opens or closes it, Get waits, until ctx ends. An error is always that of the
// caller's own open or ctx: if another caller's open fails, Get tries its own.
func (p *Pool[T]) Get(ctx context.Context, key string, open func() (T, error)) (T, error) {
	for {
		it, busy := p.acquire(key)
		if busy == nil {
			return it.value, nil
		}
		if it != nil { // ours to open
			return p.open(it, open)
		}
		select {
		case <-busy:
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}

// acquire returns the item of a key, in use, or a new one that the caller must open; or else what
// to wait for.
func (p *Pool[T]) acquire(key string) (*item[T], chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.items[key]
	if e == nil {
		it := &item[T]{key: key, busy: make(chan struct{}), users: 1}
		p.items[key] = p.recent.PushFront(it)
		return it, it.busy
	}
	it := e.Value.(*item[T])
	if it.busy != nil {
		return nil, it.busy
	}
	it.users++
	p.recent.MoveToFront(e)
	return it, nil
}

func (p *Pool[T]) open(it *item[T], open func() (T, error)) (value T, err error) {
	opened := false // not if open panics
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		it.value = value // with mu held: Release of a value that was dropped may look at it
		if !opened || err != nil {
			p.remove(it)
		}
		p.finish(it)
	}()
	value, err = open()
	opened = true
	return value, err
}

// finish ends opening or closing an item. It is called with mu held.
func (p *Pool[T]) finish(it *item[T]) {
	close(it.busy)
	it.busy = nil
}

// remove takes an item out of the pool. It is called with mu held.
func (p *Pool[T]) remove(it *item[T]) {
	if e := p.items[it.key]; e != nil && e.Value.(*item[T]) == it {
		p.recent.Remove(e)
		delete(p.items, it.key)
		p.bytes -= it.size
	}
}

// Release ends a use of a value, and then makes room if necessary. A value that was dropped in
// the meantime needs no release, but it does no harm.
func (p *Pool[T]) Release(key string, value T) {
	p.done(key, value, true)
	p.makeRoom()
}

func (p *Pool[T]) done(key string, value T, isUse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.items[key]
	if e == nil {
		return
	}
	it := e.Value.(*item[T])
	if it.value != value || it.users == 0 {
		return
	}
	it.users--
	if isUse {
		it.used = p.options.Now()
	}
	p.measure(it)
	if it.users == 0 && it.busy == nil && p.options.IsEmpty(value) {
		p.remove(it)
	}
}

// measure updates the pool's total. It is called with mu held.
func (p *Pool[T]) measure(it *item[T]) {
	size := p.options.Size(it.value)
	p.bytes += size - it.size
	it.size = size
}

// makeRoom closes values until the limits hold or no other value may go.
func (p *Pool[T]) makeRoom() {
	short := p.options.IsShort()
	p.mu.Lock()
	limits := p.limits
	if short && p.recent.Len() > 1 {
		limits.Count, limits.Bytes = limits.Count/2, limits.Bytes/2
	}
	victims := p.victims(limits)
	p.mu.Unlock()
	p.close(victims, false)
}

// victims returns the items to close, all busy. It is called with mu held.
func (p *Pool[T]) victims(l Limits) (victims []*item[T]) {
	count, bytes := p.recent.Len(), p.bytes
	for count > l.Count || bytes > l.Bytes {
		it := p.victim(l, count, bytes)
		if it == nil {
			break
		}
		it.busy = make(chan struct{})
		count--
		bytes -= it.size
		victims = append(victims, it)
	}
	return victims
}

// victim returns the item that should go first: among those with the lowest priority, the
// least recently used.
func (p *Pool[T]) victim(l Limits, count int, bytes int64) (first *item[T]) {
	now := p.options.Now()
	for e := p.recent.Back(); e != nil; e = e.Prev() {
		it := e.Value.(*item[T])
		fresh := bytes <= l.Bytes && now.Sub(it.used) < p.options.Grace && count <= p.options.Burst*l.Count
		if it.users > 0 || it.busy != nil || fresh || p.pins[it.key] {
			continue
		}
		if first == nil || p.priority[it.key] < p.priority[first.key] {
			first = it
		}
	}
	return first
}

// close closes busy items. Those that may not go stay, unless they must.
func (p *Pool[T]) close(items []*item[T], must bool) {
	for _, it := range items {
		gone := p.options.Close(it.value) || must
		p.mu.Lock()
		if it.used = p.options.Now(); gone { // if it stays, do not try again right away
			p.remove(it)
		} else {
			p.measure(it)
		}
		p.finish(it)
		p.mu.Unlock()
	}
}

// Drop takes a value out of the pool and closes it, even if it is in use.
func (p *Pool[T]) Drop(key string) {
	for {
		p.mu.Lock()
		e := p.items[key]
		if e == nil {
			p.mu.Unlock()
			return
		}
		it := e.Value.(*item[T])
		busy := it.busy
		if busy == nil {
			it.busy = make(chan struct{})
		}
		p.mu.Unlock()
		if busy == nil {
			p.close([]*item[T]{it}, true)
			return
		}
		<-busy
	}
}

// Limit changes the limits.
func (p *Pool[T]) Limit(l Limits) {
	p.mu.Lock()
	p.limits = l
	p.mu.Unlock()
	p.makeRoom()
}

// Shrink closes values until they take at most a number of bytes.
func (p *Pool[T]) Shrink(bytes int64) {
	p.mu.Lock()
	victims := p.victims(Limits{math.MaxInt, bytes})
	p.mu.Unlock()
	p.close(victims, false)
}

// Pin keeps the value of a key in the pool until it is unpinned.
func (p *Pool[T]) Pin(key string, pinned bool) {
	p.mu.Lock()
	if pinned {
		p.pins[key] = true
	} else {
		delete(p.pins, key)
	}
	p.mu.Unlock()
	p.makeRoom()
}

// Prioritise says how much a value is worth keeping: those with a lower priority go first.
func (p *Pool[T]) Prioritise(key string, priority int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.priority[key] = priority
}

// Has reports whether the value of a key is in the pool.
func (p *Pool[T]) Has(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.items[key] != nil
}

// Contents returns the keys of the values in the pool, most recently used first, and roughly
// how much memory they take.
func (p *Pool[T]) Contents() (keys []string, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := p.recent.Front(); e != nil; e = e.Next() {
		keys = append(keys, e.Value.(*item[T]).key)
	}
	return keys, p.bytes
}

// Each calls f with the values in the pool, most recently used first. That does not count as a
// use. Those that are being opened or closed are left out.
func (p *Pool[T]) Each(f func(T)) {
	p.mu.Lock()
	var items []*item[T]
	for e := p.recent.Front(); e != nil; e = e.Next() {
		if it := e.Value.(*item[T]); it.busy == nil {
			it.users++
			items = append(items, it)
		}
	}
	p.mu.Unlock()
	for _, it := range items {
		f(it.value)
		p.done(it.key, it.value, false)
	}
}

// Close closes all values, even those in use.
func (p *Pool[T]) Close() {
	keys, _ := p.Contents()
	for _, key := range keys {
		p.Drop(key)
	}
}
