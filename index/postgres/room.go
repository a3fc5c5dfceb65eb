// Package postgres keeps the tables of an index in the database of a store: the index of all
// programs that use the store. See package room for what an index needs, and schema.sql for
// the tables.
package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
)

// ErrNotMigrated means that the database has no tables for an index, or those of another
// version.
var ErrNotMigrated = errors.New("the database has no tables for this program's index")

// Room is a room.Room in the database of a store. Use Open to open one.
type Room struct {
	base   postgres.Database
	where  string
	tenant string
	db     *sql.DB
	conns  *connector // of db
	// patience is how long to wait for another program that writes.
	patience time.Duration

	rebuilt atomic.Bool

	using  sync.RWMutex // held for reading while the tables are in use
	closed bool         // guarded by using

	mu   sync.Mutex
	seen life // what is known of the tables
}

var _ room.Room = (*Room)(nil)

// life is the time from one emptying of the tables to the next.
type life struct {
	version int   // of the tables; 0: there are none
	id      int64 // 0: nothing was ever written
	filled  bool  // they have had all that the store has
}

// Open opens the index in the database of a store. The store must stay open as long as the room
// is. Tables of another version, or none, are an error that matches ErrNotMigrated.
func Open(ctx context.Context, s *postgres.Store) (*Room, error) {
	r := &Room{base: s.Database(), where: s.Where(), patience: 30 * time.Second}
	r.tenant = r.base.Tenant()
	r.conns = &connector{base: r.base, translator: newTranslator(r.base.SQL, r.tenant), begin: r.lock, lookedInto: lookedInto}
	r.db = sql.OpenDB(r.conns)
	if err := r.Follow(ctx); err != nil {
		return nil, err
	}
	if r.life().id != 0 {
		return r, nil
	}
	if err := r.Update(ctx, r.tables(), func(room.Tx) error { return nil }); err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, err // a role that may only read waits until another has filled it
	}
	return r, r.Follow(ctx)
}

// Where implements room.Room.
func (r *Room) Where() string { return r.where }

// Reader implements room.Room.
func (r *Room) Reader() string { return postgres.Index }

// Rebuilt implements room.Room.
func (r *Room) Rebuilt() bool { return r.rebuilt.Swap(false) }

// Explain implements room.Room. The driver's errors are the store's already.
func (r *Room) Explain(err error) error { return err }

// Close implements room.Room. Running queries finish.
func (r *Room) Close() error {
	r.using.Lock()
	defer r.using.Unlock()
	r.closed = true
	return r.db.Close()
}

// use calls f, unless the room is closed.
func (r *Room) use(f func() error) error {
	r.using.RLock()
	defer r.using.RUnlock()
	if r.closed {
		return store.ErrClosed
	}
	return f()
}

// tables are the tables as long as they live.
type tables struct {
	*sql.DB
	life int64
}

func (r *Room) tables() tables { return tables{r.db, r.life().id} }

// life returns what is known of the tables.
func (r *Room) life() life {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// live records what is known of the tables.
func (r *Room) live(now life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now.filled = now.filled || now.id == r.seen.id && r.seen.filled
	r.seen = now
}

// Filled implements room.Room.
func (r *Room) Filled(t room.Tables) {
	r.live(life{room.Version, t.(tables).life, true})
}

// Follow implements room.Room.
func (r *Room) Follow(ctx context.Context) error {
	var now life
	err := r.base.Read(ctx, opRead, func(ctx context.Context, pool *pgxpool.Pool) error {
		err := pool.QueryRow(ctx, r.base.SQL(`SELECT v.version, coalesce(r.life, 0), EXISTS (SELECT FROM coppice.index_swept WHERE tenant = $1)
			FROM coppice.index_version v LEFT JOIN coppice.index_rooms r ON r.tenant = $1`), r.tenant).Scan(&now.version, &now.id, &now.filled)
		if isNone(err) {
			now, err = life{}, nil
		}
		return err
	})
	if err == nil {
		err = r.check(now)
	}
	if err == nil {
		r.live(now)
	}
	return err
}

// isNone reports whether a statement failed because there is no such table or column.
func isNone(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && (answer.Code == "42P01" || answer.Code == "42703")
}

// check returns an error if the tables are not ours.
func (r *Room) check(l life) error {
	if l.version == room.Version {
		return nil
	}
	return &store.Error{
		Op: "open index", Path: r.where, Hint: "coppice migrate makes them",
		Err: fmt.Errorf("%w: it has version %d, this program uses %d", ErrNotMigrated, l.version, room.Version),
	}
}

// View implements room.Room. It asks whether the tables are the same afterwards, and before only
// if it has to: an answer from others is thrown away.
func (r *Room) View(ctx context.Context, filled bool, f func(room.Tables) error) error {
	return r.use(func() error { return r.view(ctx, filled, f) })
}

func (r *Room) view(ctx context.Context, filled bool, f func(room.Tables) error) error {
	if filled && !r.life().filled {
		if err := r.Follow(ctx); err != nil {
			return err
		}
		if !r.life().filled {
			return room.ErrReplaced
		}
	}
	t := r.tables()
	err := f(t)
	if errors.Is(err, room.ErrDamaged) {
		return errors.Join(err, r.empty(ctx, t.life))
	}
	if err2 := r.Follow(ctx); err2 != nil {
		return cmp.Or(err, err2)
	}
	if r.life().id != t.life {
		return room.ErrReplaced
	}
	return err
}

// settings are those of a transaction that writes:
//
//   - With so much memory the index of the words is written in half the time.
//   - A plan is kept that was made when the tables were empty, and reading all of them fast.
//   - What a crash of the server takes from the end of its log, nobody has been told to have: marks
//     are removed after that.
const settings = `SELECT set_config('lock_timeout', $1, true), set_config('work_mem', '64MB', true),
	set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true), set_config('synchronous_commit', 'off', true)`

// lock begins a transaction that is the only one that writes, and returns whose tables it has.
func (r *Room) lock(ctx context.Context, tx *pgxpool.Conn) (l life, err error) {
	b := new(pgx.Batch)
	b.Queue(`BEGIN`)
	b.Queue(settings, fmt.Sprint(r.patience.Milliseconds()))
	for range 2 {
		b.Queue(r.base.SQL(`SELECT v.version, r.life FROM coppice.index_version v, coppice.index_rooms r
			WHERE r.tenant = $1 FOR UPDATE OF r`), r.tenant)
		answers := tx.SendBatch(ctx, b)
		for range b.Len() - 1 {
			if _, err := answers.Exec(); err != nil {
				_ = answers.Close() // with the same error
				return l, err
			}
		}
		err = answers.QueryRow().Scan(&l.version, &l.id)
		if b = new(pgx.Batch); !errors.Is(cmp.Or(answers.Close(), err), pgx.ErrNoRows) {
			break
		}
		if err = r.begin(ctx, tx); err != nil {
			break
		}
	}
	var answer *pgconn.PgError
	switch {
	case isNone(err):
		return l, r.check(life{})
	case errors.As(err, &answer) && answer.Code == "55P03":
		return l, &store.Error{
			Op: "lock index", Path: r.where, Kind: store.ErrLocked,
			Err:  errors.New("another program has been writing to the index for too long"),
			Hint: "that program seems to be stuck; end it if it is yours",
		}
	}
	return l, err
}

// begin makes the rows that the index of a tenant always has.
func (r *Room) begin(ctx context.Context, tx *pgxpool.Conn) error {
	tag, err := tx.Exec(ctx, r.base.SQL(`WITH made AS (INSERT INTO coppice.index_rooms VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING tenant)
		INSERT INTO coppice.index_counters SELECT tenant, name, 0 FROM made, unnest(ARRAY['docs', 'tokens', 'changes', 'sessions']) AS name`),
		r.tenant, time.Now().UnixNano())
	if err == nil && tag.RowsAffected() > 0 {
		r.rebuilt.Store(true)
	}
	return err
}

// writer is a transaction that writes.
type writer struct {
	*sql.Tx
	room *Room
	conn *conn
}

// Update implements room.Room. It does not try again what f has done: f has its own memory.
func (r *Room) Update(ctx context.Context, t room.Tables, f func(room.Tx) error) error {
	return r.change(ctx, func(w *writer) error {
		switch was := t.(tables).life; {
		case w.conn.life.version != room.Version:
			return r.check(w.conn.life)
		case w.conn.life.id != was && was != 0:
			return room.ErrReplaced
		}
		return f(w)
	})
}

// change calls f in a transaction during which no other program writes.
func (r *Room) change(ctx context.Context, f func(w *writer) error) error {
	c, err := r.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	w := &writer{Tx: tx, room: r}
	if err := c.Raw(func(driver any) error { w.conn = driver.(*conn); return nil }); err != nil {
		return err
	}
	if err := f(w); err != nil {
		return err
	}
	return tx.Commit()
}

// Empty implements room.Room.
func (r *Room) Empty(ctx context.Context) error {
	return r.use(func() error { return r.empty(ctx, 0) })
}

// Discard implements room.Room.
func (r *Room) Discard(ctx context.Context) error { return r.Empty(ctx) }

// empty deletes all rows of the tenant, unless others have done so since the life that was, or
// it is 0.
func (r *Room) empty(ctx context.Context, was int64) error {
	var now life
	err := r.change(ctx, func(w *writer) error {
		if now = w.conn.life; was != 0 && now.id != was {
			return nil
		}
		now.id = max(now.id+1, time.Now().UnixNano())
		statements := []string{`SET LOCAL statement_timeout = 0`}
		for _, table := range append([]string{"texts"}, tableNames...) {
			if table != "counters" {
				statements = append(statements, `DELETE FROM coppice.index_`+table+` WHERE tenant = `+quote(r.tenant))
			}
		}
		statements = append(statements,
			`UPDATE coppice.index_counters SET value = 0 WHERE tenant = `+quote(r.tenant),
			`UPDATE coppice.index_rooms SET life = `+fmt.Sprint(now.id)+` WHERE tenant = `+quote(r.tenant))
		for _, statement := range statements {
			if err := w.exec(ctx, statement); err != nil {
				return err
			}
		}
		r.rebuilt.Store(true)
		return nil
	})
	if err == nil {
		r.live(now)
	}
	return err
}

// Forgets implements room.Room. A word that no text has any more is removed with the last one. What
// the server still has of a removed row, its next VACUUM takes away.
func (r *Room) Forgets() bool { return true }

// Tidy implements room.Room. The server frees space by itself; it plans better if it knows at
// once what the tables have now, and finds words faster if they are sorted in. It does so only
// for their owner.
func (r *Room) Tidy(ctx context.Context, _ room.Tables) error {
	var list []string
	for _, table := range tableNames {
		list = append(list, "coppice.index_"+table)
	}
	return r.base.Read(ctx, opWrite, func(ctx context.Context, pool *pgxpool.Pool) error {
		if _, err := pool.Exec(ctx, r.base.SQL(`ANALYZE `+strings.Join(list, ", "))); err != nil {
			return err
		}
		_, err := pool.Exec(ctx, r.base.SQL(`SELECT gin_clean_pending_list(c.oid) FROM pg_class c
			WHERE c.oid = 'coppice.index_words'::regclass AND pg_has_role(c.relowner, 'USAGE')`))
		return err
	})
}

// Status implements room.Room. The size is the share of the tables that the tenant has by its
// documents, because tables do not say which of their bytes are whose.
func (r *Room) Status(ctx context.Context) (size int64, engine string, err error) {
	err = r.base.Read(ctx, opRead, func(ctx context.Context, pool *pgxpool.Pool) error {
		return pool.QueryRow(ctx, r.base.SQL(`WITH
			mine AS (SELECT coalesce(sum(docs), 0)::float8 AS docs FROM coppice.index_sessions WHERE tenant = $1),
			whole AS (SELECT sum(pg_total_relation_size(oid))::float8 AS size, max(reltuples) FILTER (WHERE oid = 'coppice.index_docs'::regclass)::float8 AS docs
				FROM pg_class WHERE relkind = 'r' AND relname LIKE 'index\_%'
				AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'coppice.index_docs'::regclass))
			SELECT (whole.size * mine.docs / greatest(whole.docs, mine.docs, 1))::bigint, 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1)
			FROM mine, whole`), r.tenant).Scan(&size, &engine)
	})
	return size, engine, err
}
