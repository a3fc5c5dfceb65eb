package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/store"
)

// log is one handle.
type log struct {
	store *Store
	name  string
	key   key
	life  int64 // of the content that was opened

	once sync.Once
	done chan struct{} // closed by Close

	mu    sync.Mutex // guards what follows
	pages pages
}

func (s *Store) handle(name string, k key, life int64) *log {
	return &log{store: s, name: name, key: k, life: life, done: make(chan struct{})}
}

// Start has nothing to wait for: what the server has confirmed is as durable as it will be.
func (l *log) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	end, err := l.Append(ctx, at, lines...)
	return end, func() error { return nil }, err
}

// End implements store.Log.
func (l *log) End(ctx context.Context) (store.Pos, error) {
	const op = "end"
	if err := l.ready(ctx, op); err != nil {
		return 0, err
	}
	var h head
	start, edits := time.Now(), l.store.edits.Load()
	err := l.store.read(ctx, op, l.name, func(ctx context.Context) (err error) {
		h, err = l.current(ctx, l.store.pool, op)
		return err
	})
	if err == nil {
		l.remember(start, edits, nil)
	}
	return store.Pos(h.tail), err
}

// current returns the log's row if the log was not rewritten since it was opened.
func (l *log) current(ctx context.Context, q querier, op string) (head, error) {
	h, err := l.store.head(ctx, q, l.key, "")
	return h, l.isSame(op, h, err)
}

// isSame returns why a log's row is not that of the log that was opened.
func (l *log) isSame(op string, h head, err error) error {
	if err == nil && h.life != l.life {
		return &store.Error{Op: op, Name: l.name, Kind: store.ErrReplaced}
	}
	return absent(op, l.name, err)
}

// Flush has nothing to wait for: see Start.
func (l *log) Flush(ctx context.Context) error { return l.ready(ctx, "flush") }

// Current implements store.Log. It asks the server only if nothing else has for a moment: every
// other method that reads or writes notices a rewrite by itself.
func (l *log) Current() error {
	l.mu.Lock()
	isFresh := l.isFresh()
	l.mu.Unlock()
	if isFresh {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	if _, err := l.End(ctx); errors.Is(err, store.ErrReplaced) {
		return err
	}
	return nil
}

// Pin implements store.Log. The lock is a shared one, so that several copies can be made at
// once.
func (l *log) Pin(ctx context.Context) (func(), error) {
	const op = "copy"
	if err := l.ready(ctx, op); err != nil {
		return nil, err
	}
	return l.store.locks.hold(ctx, op, l.name, func(ctx context.Context, tx pgx.Tx) error {
		h, err := l.store.head(ctx, tx, l.key, " FOR SHARE")
		return l.isSame(op, h, err)
	})
}

// Close implements store.Log.
func (l *log) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// ready returns nil if the handle is open and ctx not done.
func (l *log) ready(ctx context.Context, op string) error {
	if closed(l.done) {
		return &store.Error{Op: op, Name: l.name, Kind: store.ErrClosed}
	}
	return l.store.ready(ctx, op, l.name)
}

func (l *log) fail(op string, at store.Pos, kind error) error {
	return &store.Error{Op: op, Name: l.name, Offset: int64(at), At: true, Kind: kind}
}
