// Package memory is a store that lives in memory and ends with the process: for
// tests, and for sessions that must leave no trace.
//
// It keeps the whole contract of package store, positions that look like byte
// offsets included, so that code which works on it has nothing to unlearn on
// disk.
package memory

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/coppice-dev/coppice/store"
)

const defaultMaxLine = 64 << 20

// Options configures a Store. Nil and the zero value mean the defaults.
type Options struct {
	// MaxLine is the maximum length of a line in bytes. Zero means 64 MiB.
	MaxLine int64
	// MaxLog is the maximum size of a log in bytes. Zero means no limit.
	MaxLog int64
	// MaxLogs is how many logs there may be. Zero means no limit.
	MaxLogs int
}

// Store is a store.Store in memory. Use New to make one.
type Store struct {
	limits store.Limits
	done   chan struct{} // closed by Close; logs watch it too

	mu    sync.RWMutex // guards what follows; taken before a content's mutex
	logs  map[string]*content
	blobs map[store.Ref][]byte
	holds int           // see blobs.Hold
	freed chan struct{} // closed when the last hold ends; nil if no one waits for that
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Limiter = (*Store)(nil)
	_ store.Remover = (*Store)(nil)
	_ store.Log     = (*log)(nil)
	_ store.Blobs   = (*blobs)(nil)

	_ store.Collector = (*blobs)(nil)
)

// New returns an empty store.
func New(o *Options) *Store {
	s := &Store{
		limits: store.Limits{Entry: defaultMaxLine},
		done:   make(chan struct{}),
		logs:   map[string]*content{},
		blobs:  map[store.Ref][]byte{},
	}
	if o == nil {
		return s
	}
	s.limits.Log, s.limits.Logs = o.MaxLog, o.MaxLogs
	if o.MaxLine > 0 {
		s.limits.Entry = o.MaxLine
	}
	return s
}

// Limits implements store.Limiter.
func (s *Store) Limits() store.Limits { return s.limits }

// Create implements store.Store.
func (s *Store) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	const op = "create"
	if err := s.admit(ctx, op, name); err != nil {
		return nil, err
	}
	// No lock is held while the lines come in: they may come out of this store.
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
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case closed(s.done):
		return nil, &store.Error{Op: op, Name: name, Kind: store.ErrClosed}
	case s.logs[name] != nil:
		return nil, &store.Error{Op: op, Name: name, Kind: store.ErrExist}
	}
	if err := store.MaxSessions.Check(op, name, int64(len(s.logs))+1, int64(s.limits.Logs)); err != nil {
		return nil, err
	}
	s.logs[name] = c
	return s.handle(name, c), nil
}

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

// Stat implements store.Describer.
func (s *Store) Stat(ctx context.Context, name string) (store.Stat, error) {
	if err := s.ready(ctx, "describe", name); err != nil {
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
	return s.remove(ctx, name, func(*content) bool { return true })
}

// RemoveAt implements store.Remover.
func (s *Store) RemoveAt(ctx context.Context, name string, end store.Pos) error {
	return s.remove(ctx, name, func(c *content) bool { return c.end == end })
}

// remove removes a log if may agrees. During the call nothing is appended to its
// content.
func (s *Store) remove(ctx context.Context, name string, may func(*content) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(ctx, "remove", name); err != nil {
		return err
	}
	c := s.logs[name]
	if c == nil {
		return &store.Error{Op: "remove", Name: name, Kind: store.ErrNotExist}
	}
	if !c.remove(may) {
		return &store.Error{Op: "remove", Name: name, Kind: store.ErrConflict}
	}
	delete(s.logs, name)
	return nil
}

// Blobs implements store.Store.
func (s *Store) Blobs() store.Blobs { return &blobs{s} }

// Close implements store.Store. It forgets everything.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !closed(s.done) {
		close(s.done)
		s.logs, s.blobs = nil, nil
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
	if err := store.MaxEntry.Check(op, name, int64(len(line)), s.limits.Entry); err != nil {
		return err
	}
	if bytes.IndexByte(line, '\n') >= 0 {
		return &store.Error{Op: op, Name: name, Kind: store.ErrInvalid, Err: errors.New("line contains a newline")}
	}
	return nil
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
