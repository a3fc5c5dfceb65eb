// Package memory is a store that lives in memory and ends with the process: for
// tests, and for sessions that must leave no trace.
//
// It keeps the whole contract of package store, positions that look like byte
// offsets included, so that code which works on it has nothing to unlearn on
// disk. Of the capabilities that only some stores have, it has one: it tells of changes.
package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/store"
)

// Options configures a Store. Nil and the zero value mean the defaults.
type Options struct {
	// MaxLine is the maximum length of a line in bytes. Zero means 64 MiB.
	MaxLine int64
	// MaxLog is the maximum size of a log in bytes. Zero means no limit.
	MaxLog int64
	// MaxLogs is how many logs there may be. Zero means no limit.
	MaxLogs int
	// MakeRoom, if it is not nil, is called when there are as many logs as there may be
	// and one is to be created: see the option of store/file.
	MakeRoom func(ctx context.Context, s store.Store, n int) error
}

// Store is a store.Store in memory. Use New to make one.
type Store struct {
	limits   store.Limits
	makeRoom func(ctx context.Context, s store.Store, n int) error
	done     chan struct{} // closed by Close; logs watch it too

	creating gate.Mutex // held from making room until there is one log more
	changing gate.Mutex // held while a note is changed

	mu    sync.RWMutex // guards what follows; taken before a content's mutex
	logs  map[string]*content
	trash map[string]trashed // by ID
	notes map[string]note
	blobs map[store.Ref][]byte
	holds int           // see blobs.Hold
	freed chan struct{} // closed when the last hold ends; nil if no one waits for that

	news news
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Watcher = (*Store)(nil)
	_ store.Log     = (*log)(nil)
	_ store.Blobs   = (*blobs)(nil)
)

// New returns an empty store.
func New(o *Options) *Store {
	s := &Store{
		limits: store.Limits{Entry: store.DefaultMaxEntry},
		done:   make(chan struct{}),
		logs:   map[string]*content{},
		trash:  map[string]trashed{},
		notes:  map[string]note{},
		blobs:  map[store.Ref][]byte{},
		news:   news{watchers: map[*watcher]bool{}},
	}
	if o == nil {
		return s
	}
	s.limits.Log, s.limits.Logs, s.makeRoom = o.MaxLog, o.MaxLogs, o.MakeRoom
	if o.MaxLine > 0 {
		s.limits.Entry = o.MaxLine
	}
	return s
}

// Limits implements store.Store.
func (s *Store) Limits() store.Limits { return s.limits }

// Create implements store.Store.
func (s *Store) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	return s.create(ctx, name, lines, nil)
}

// CreateCopy implements store.Store.
func (s *Store) CreateCopy(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of store.Log) (store.Log, error) {
	return s.create(ctx, name, lines, of)
}

// create makes a log, as a copy of another if that is not nil.
func (s *Store) create(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of store.Log) (store.Log, error) {
	const op = "create"
	if err := s.admit(ctx, op, name); err != nil {
		return nil, err
	}
	if s.limits.Logs > 0 {
		if err := s.creating.LockContext(ctx); err != nil {
			return nil, &store.Error{Op: op, Name: name, Err: err}
		}
		defer s.creating.Unlock()
		if err := s.reserve(ctx, name); err != nil {
			return nil, err
		}
	}
	c, err := s.gather(ctx, op, name, lines)
	if err != nil {
		return nil, err
	}
	if of != nil {
		release, err := of.Pin(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case closed(s.done):
		return nil, &store.Error{Op: op, Name: name, Kind: store.ErrClosed}
	case s.logs[name] != nil:
		return nil, &store.Error{Op: op, Name: name, Kind: store.ErrExist}
	}
	s.logs[name] = c
	s.news.logChanged(name)
	return s.handle(name, c), nil
}

// gather returns what a log of those lines holds. No lock is held while they come in: they may
// come out of this store.
func (s *Store) gather(ctx context.Context, op, name string, lines iter.Seq2[[]byte, error]) (*content, error) {
	c := newContent()
	for line, err := range lines {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, &store.Error{Op: op, Name: name, Err: err}
		}
		if err := s.checkLine(op, name, line); err != nil {
			return nil, err
		}
		c.add(bytes.Clone(line))
		if err := store.MaxSession.Check(op, name, int64(c.end), s.limits.Log); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// reserve makes sure that there may be one log more, and makes room if the options say how.
func (s *Store) reserve(ctx context.Context, name string) error {
	count := func() (n int, taken bool) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return len(s.logs), s.logs[name] != nil
	}
	n, taken := count()
	if !taken && n >= s.limits.Logs && s.makeRoom != nil {
		if err := s.makeRoom(ctx, s, n-s.limits.Logs+1); err != nil {
			return &store.Error{Op: "create", Name: name, Err: fmt.Errorf("making room for another session: %w", err)}
		}
		n, taken = count()
	}
	if taken {
		return nil // that is the better answer
	}
	return store.MaxSessions.Check("create", name, int64(n)+1, int64(s.limits.Logs))
}

// Batch implements store.Store.
func (s *Store) Batch() store.Batch { return store.BatchOf(s) }

// Open implements store.Store.
func (s *Store) Open(ctx context.Context, name string) (store.Log, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.admit(ctx, "open", name); err != nil {
		return nil, err
	}
	c := s.logs[name]
	if c == nil {
		return nil, &store.Error{Op: "open", Name: name, Kind: store.ErrNotExist}
	}
	return s.handle(name, c), nil
}

// List implements store.Store.
func (s *Store) List(ctx context.Context) iter.Seq2[store.Stat, error] {
	return func(yield func(store.Stat, error) bool) {
		if err := s.ready(ctx, "list", ""); err != nil {
			yield(store.Stat{}, err)
			return
		}
		for _, stat := range s.stats() {
			if !yield(stat, nil) {
				return
			}
		}
	}
}

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, name string) (store.Stat, error) {
	if err := s.admit(ctx, "describe", name); err != nil {
		return store.Stat{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	c, ok := s.logs[name]
	if !ok {
		return store.Stat{}, &store.Error{Op: "describe", Name: name, Kind: store.ErrNotExist}
	}
	return c.stat(name), nil
}

// stats is a copy, so that the caller may create and remove while listing.
func (s *Store) stats() []store.Stat {
	s.mu.RLock()
	defer s.mu.RUnlock()
	stats := make([]store.Stat, 0, len(s.logs))
	for name, c := range s.logs {
		stats = append(stats, c.stat(name))
	}
	return stats
}

// Remove implements store.Store.
func (s *Store) Remove(ctx context.Context, name string) error {
	return s.remove(ctx, name, "", func(*content) error { return nil })
}

// RemoveAt implements store.Store.
func (s *Store) RemoveAt(ctx context.Context, name string, end store.Pos) error {
	return s.remove(ctx, name, "", func(c *content) error { return c.endsAt(end) })
}

// endsAt returns ErrConflict if the content does not end at a position.
func (c *content) endsAt(end store.Pos) error {
	if c.end != end {
		return store.ErrConflict
	}
	return nil
}

// remove removes a log if may returns no error. It is called with the store's mutex, and nothing
// is appended to the content during the call. If id is empty, the removal gets a new one.
func (s *Store) remove(ctx context.Context, name, id string, may func(*content) error) error {
	const op = "remove"
	for {
		if err := s.admit(ctx, op, name); err != nil {
			return err
		}
		s.mu.RLock()
		c := s.logs[name]
		s.mu.RUnlock()
		if c == nil {
			return &store.Error{Op: op, Name: name, Kind: store.ErrNotExist}
		}
		if err := c.pinned.LockContext(ctx); err != nil {
			return &store.Error{Op: op, Name: name, Err: err}
		}
		done, err := s.removeContent(name, id, c, may)
		c.pinned.Unlock()
		if done {
			return err
		}
	}
}

// removeContent is remove for a caller who has pinned the content. It reports false if
// that is no longer the log's.
func (s *Store) removeContent(name, id string, c *content, may func(*content) error) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs[name] != c {
		return false, nil
	}
	if kind := may(c); kind != nil {
		return true, &store.Error{Op: "remove", Name: name, Kind: kind}
	}
	c.retire(store.ErrNotExist)
	delete(s.logs, name)
	s.news.logChanged(name)
	s.discard(name, id, c)
	return true, nil
}

// Changes implements store.Store. It cannot tell: who wants to know looks at all logs,
// which costs little here.
func (s *Store) Changes(ctx context.Context, _ string) (store.Changes, error) {
	return store.Changes{}, s.ready(ctx, "list", "")
}

// Settle implements store.Store. There are no marks.
func (s *Store) Settle(ctx context.Context, _ string, _ map[string]*store.Stat) error {
	return s.ready(ctx, "settle", "")
}

// Blobs implements store.Store.
func (s *Store) Blobs() store.Blobs { return &blobs{s} }

// Close implements store.Store. It forgets everything.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !closed(s.done) {
		close(s.done)
		s.logs, s.trash, s.notes, s.blobs = nil, nil, nil, nil
		s.news.end()
	}
	return nil
}

func (s *Store) handle(name string, c *content) *log {
	return &log{store: s, name: name, content: c, done: make(chan struct{})}
}

// admit returns nil if an operation on a log of that name may proceed.
func (s *Store) admit(ctx context.Context, op, name string) error {
	if e, ok := errors.AsType[*store.Error](store.CheckName(name)); ok {
		e.Op = op // says more than CheckName can
		return e
	}
	return s.ready(ctx, op, name)
}

// ready returns nil if the store is open and ctx not done.
func (s *Store) ready(ctx context.Context, op, name string) error {
	if closed(s.done) {
		return &store.Error{Op: op, Name: name, Kind: store.ErrClosed}
	}
	if err := ctx.Err(); err != nil {
		return &store.Error{Op: op, Name: name, Err: err}
	}
	return nil
}

func (s *Store) checkLine(op, name string, line []byte) error {
	return store.CheckLine(op, name, line, s.limits.Entry)
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
