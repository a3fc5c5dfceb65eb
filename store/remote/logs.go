package remote

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/coppice-dev/coppice/store"
)

// Create implements store.Store.
func (s *Store) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	return s.create(ctx, name, lines, func() error { return nil })
}

// CreateCopy implements store.Store.
func (s *Store) CreateCopy(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of store.Log) (store.Log, error) {
	release := func() {}
	defer func() { release() }()
	return s.create(ctx, name, lines, func() error {
		unpin, err := of.Pin(ctx)
		if err == nil {
			release = unpin
		}
		return err
	})
}

// Batch implements store.Store.
func (s *Store) Batch() store.Batch { return store.BatchOf(s) }

// create creates a log. last is called after the last line: if it fails, there is no log.
func (s *Store) create(ctx context.Context, name string, lines iter.Seq2[[]byte, error], last func() error) (store.Log, error) {
	const op = "create"
	if err := s.admit(ctx, op, name); err != nil {
		return nil, err
	}
	l, sent := s.newLog(name), sum{}
	var r result
	err := s.run(ctx, op, &query{op: "create", args: request{Name: name}, each: one(&r), stream: func(w io.Writer) error {
		err := s.send(w, op, name, func(yield func([]byte, error) bool) {
			for line, err := range lines {
				if err == nil {
					sent.add(sumOf(line))
				}
				if !yield(line, err) {
					return
				}
			}
		})
		if err == nil {
			if err := last(); err != nil {
				return &refusal{err}
			}
		}
		return err
	}})
	if unanswered, ok := err.(*lost); ok && unanswered.sent && ctx.Err() == nil {
		if found := s.look(ctx, l, sent); found {
			return l, nil
		}
	}
	if err != nil {
		return nil, s.unsure(op, name, err)
	}
	l.handle = r.Handle
	if r.End > 0 {
		l.seen.join(run{0, r.End, sent})
	}
	s.addLog(l)
	return l, nil
}

// look opens a log that may have been created, if it has the expected lines.
func (s *Store) look(ctx context.Context, l *log, want sum) bool {
	var r result
	if s.read(ctx, "open", &query{op: "open", args: request{Name: l.name}, each: one(&r)}) != nil {
		return false
	}
	l.handle = r.Handle
	s.addLog(l)
	if err := l.mustBe(ctx, want); err != nil {
		_ = l.Close()
		return false
	}
	return true
}

// mustBe makes sure that the log has these lines and no others, durably.
func (l *log) mustBe(ctx context.Context, want sum) error {
	var found sum
	for line, err := range l.Forward(ctx, 0) {
		if err != nil {
			return err
		}
		found.add(sumOf(line.Data))
	}
	if found != want {
		return store.ErrExist
	}
	return l.Flush(ctx)
}

// send writes lines as frames.
func (s *Store) send(w io.Writer, op, name string, lines iter.Seq2[[]byte, error]) error {
	for line, err := range lines {
		if err == nil {
			err = s.checkLine(op, name, line)
		}
		if err != nil {
			return &refusal{err}
		}
		if err := writeFrame(w, kindData, line); err != nil {
			return err
		}
	}
	return nil
}

// checkLine refuses a line that the other store would refuse, before it is sent.
func (s *Store) checkLine(op, name string, line []byte) error {
	limit := s.limits.Entry
	if limit <= 0 {
		limit = maxData
	}
	return store.CheckLine(op, name, line, limit)
}

// Open implements store.Store.
func (s *Store) Open(ctx context.Context, name string) (store.Log, error) {
	if err := s.admit(ctx, "open", name); err != nil {
		return nil, err
	}
	var r result
	if err := s.read(ctx, "open", &query{op: "open", args: request{Name: name}, each: one(&r)}); err != nil {
		return nil, err
	}
	l := s.newLog(name)
	l.handle = r.Handle
	s.addLog(l)
	return l, nil
}

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, name string) (store.Stat, error) {
	if err := s.admit(ctx, "describe", name); err != nil {
		return store.Stat{}, err
	}
	var r result
	err := s.read(ctx, "describe", &query{op: "stat", args: request{Name: name}, each: one(&r)})
	if err != nil || r.Stat == nil {
		return store.Stat{}, err
	}
	return *r.Stat, nil
}

// List implements store.Store.
func (s *Store) List(ctx context.Context) iter.Seq2[store.Stat, error] {
	return func(yield func(store.Stat, error) bool) {
		all, err := s.results(ctx, "list", &query{op: "list"})
		if err != nil {
			yield(store.Stat{}, err)
			return
		}
		for i := range all {
			if all[i].Stat == nil {
				continue
			}
			var err error
			if all[i].Error != nil {
				err = all[i].Error.err()
			}
			if !yield(*all[i].Stat, err) {
				return
			}
		}
	}
}

// Remove implements store.Store.
func (s *Store) Remove(ctx context.Context, name string) error {
	return s.remove(ctx, request{Name: name})
}

// RemoveAt implements store.Store.
func (s *Store) RemoveAt(ctx context.Context, name string, end store.Pos) error {
	return s.remove(ctx, request{Name: name, End: &end})
}

func (s *Store) remove(ctx context.Context, args request) error {
	if err := s.admit(ctx, "remove", args.Name); err != nil {
		return err
	}
	return s.write(ctx, "remove", &query{op: "remove", args: args})
}

// Changes implements store.Store. It has none: marks are for the index beside the logs.
func (s *Store) Changes(ctx context.Context, _ string) (store.Changes, error) {
	return store.Changes{}, s.ready(ctx, "look for changes", "")
}

// Settle implements store.Store. There are no marks.
func (s *Store) Settle(ctx context.Context, _ string, _ map[string]*store.Stat) error {
	return s.ready(ctx, "settle", "")
}

// Limits implements store.Store.
func (s *Store) Limits() store.Limits { return s.limits }

// Where implements store.Store.
func (s *Store) Where() string { return s.url }

func (s *Store) addLog(l *log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[l] = struct{}{}
}

func (s *Store) forget(l *log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.logs, l)
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	logs := s.logs
	s.logs = make(map[*log]struct{})
	s.mu.Unlock()
	var errs []error
	for l := range logs {
		errs = append(errs, l.Close())
	}
	s.cancel(store.ErrClosed)
	s.client.CloseIdleConnections()
	return errors.Join(errs...)
}
