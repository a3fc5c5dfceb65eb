package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// locks are transactions that stay open to keep others from something, such as from appending
// to a log that is being copied. A lock is one on a row, which every server of this kind has
// and which ends when the connection does. Each takes a connection, so they have a pool to
// themselves.
type locks struct {
	store *Store
	pool  *pgxpool.Pool

	mu   sync.Mutex
	open map[*pgxpool.Conn]bool
}

func newLocks(ctx context.Context, s *Store, config *pgxpool.Config) (*locks, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	return &locks{store: s, pool: pool, open: make(map[*pgxpool.Conn]bool)}, err
}

// hold begins a transaction in which take takes a lock, and keeps it open until release is
// called.
func (l *locks) hold(ctx context.Context, op, name string, take func(ctx context.Context, tx pgx.Tx) error) (release func(), err error) {
	var conn *pgxpool.Conn
	err = l.store.read(ctx, op, name, func(ctx context.Context) error {
		c, err := l.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		tx, err := c.Begin(ctx)
		if err == nil {
			err = take(ctx, tx)
		}
		if err != nil {
			l.drop(c)
			return err
		}
		conn = c
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.open[conn] = true
	l.mu.Unlock()
	return sync.OnceFunc(func() { l.release(conn) }), nil
}

// release ends a lock, unless the store was closed and has ended it.
func (l *locks) release(conn *pgxpool.Conn) {
	l.mu.Lock()
	open := l.open[conn]
	delete(l.open, conn)
	l.mu.Unlock()
	if open {
		l.drop(conn)
	}
}

// drop ends a transaction and gives its connection back.
func (l *locks) drop(conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := conn.Exec(ctx, `ROLLBACK`); err != nil {
		_ = conn.Conn().Close(ctx)
	}
	conn.Release()
}

// The gates are rows that exist only to be locked, or written to.
const (
	gateBlobs    = "blobs"    // shared by those who hold blobs; alone, who deletes some
	gateCreate   = "create"   // who creates a log where only so many may be
	gateStandbys = "standbys" // see Store.awaitStandbys
)

// lockGate locks a gate: alone, or together with others.
func (l *locks) lockGate(ctx context.Context, op, name, gate string, alone bool) (release func(), err error) {
	s, locking := l.store, " FOR SHARE"
	if alone {
		locking = " FOR UPDATE"
	}
	return l.hold(ctx, op, name, func(ctx context.Context, tx pgx.Tx) error {
		for {
			tag, err := tx.Exec(ctx, s.sql(`SELECT FROM coppice.gates WHERE tenant = $1 AND gate = $2`)+locking, s.tenant, gate)
			if err != nil || tag.RowsAffected() == 1 {
				return err
			}
			if _, err := tx.Exec(ctx, s.sql(`INSERT INTO coppice.gates (tenant, gate) VALUES ($1, $2) ON CONFLICT DO NOTHING`), s.tenant, gate); err != nil {
				return err
			}
		}
	})
}

// close ends all locks.
func (l *locks) close() {
	l.mu.Lock()
	open := l.open
	l.open = nil
	l.mu.Unlock()
	for conn := range open {
		l.drop(conn)
	}
	l.pool.Close()
}
