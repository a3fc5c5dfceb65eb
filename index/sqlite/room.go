// Package sqlite keeps the tables of an index in a file, with SQLite.
//
// The file may be deleted at any time, and several programs may use it: see files.go. WAL
// mode, which SQLite needs for several processes at once, does not work on network file
// systems: put the file on a local disk.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Room is a room.Room in a file. Use Open to open one.
type Room struct {
	path    string
	log     *slog.Logger
	soon    time.Duration // the patience of Open, before it does without the lock
	guard   *guard
	rebuilt atomic.Bool // the tables were rebuilt: see Rebuilt

	mu     sync.RWMutex // guards what follows; held for reading while db is in use
	db     *database
	closed bool
}

var _ room.Room = (*Room)(nil)

// Options adjusts a Room. The zero value is what most programs want.
type Options struct {
	// Logger gets a line for every rebuild. Default: none.
	Logger *slog.Logger
	// Patience is how long Open waits for another process that holds the lock, before it takes
	// a complete index as it is. Default: 3 seconds.
	Patience time.Duration
}

// Open returns the room in the file at path. It creates the file and its directory if they
// do not exist, and replaces tables that are damaged or of another version by empty ones.
func Open(ctx context.Context, path string, o *Options) (*Room, error) {
	if path == "" {
		return nil, &store.Error{Op: "open index", Kind: store.ErrInvalid, Err: errors.New("the path is empty")}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, &store.Error{Op: "open index", Path: path, Err: err}
	}
	disk := vfs.OS{KeepOwner: true}
	if err := disk.MkdirAll(filepath.Dir(abs), 0o700); err != nil {
		return nil, &store.Error{Op: "open index", Path: abs, Err: err}
	}
	r := &Room{path: abs, log: slog.New(slog.DiscardHandler), soon: 3 * time.Second, guard: newGuard(abs)}
	if o != nil && o.Logger != nil {
		r.log = o.Logger
	}
	if o != nil && o.Patience > 0 {
		r.soon = o.Patience
	}
	if err := r.openSoon(ctx); err != nil {
		defer r.guard.close()
		if isForbidden(err) {
			err = whyForbidden(abs)
		}
		return nil, &store.Error{Op: "open index", Path: abs, Err: r.Explain(err)}
	}
	r.db.behind.Store(false) // the caller decides whether to catch up first
	return r, nil
}

// Where implements room.Room: it is the file, as an absolute path.
func (r *Room) Where() string { return r.path }

// Reader implements room.Room.
func (r *Room) Reader() string { return r.path }

// Close implements room.Room. Afterwards every method returns store.ErrClosed, except that
// closing again does nothing. Running queries finish.
func (r *Room) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	return r.leave()
}

// View implements room.Room.
func (r *Room) View(_ context.Context, filled bool, f func(room.Tables) error) error {
	db, err := r.withLocked(func(db *database) error {
		if filled && db.behind.Load() {
			return errReplaced // it lacks what the one before it had
		}
		return f(db)
	})
	if !isDamage(err) {
		return err
	}
	r.log.Warn("rebuilding a damaged index", "path", r.path, "cause", err)
	if !errors.Is(err, room.ErrDamaged) {
		err = &damage{err}
	}
	if err2 := r.reset(context.Background(), db); err2 != nil {
		return errors.Join(err, err2)
	}
	return err
}

// damage marks an error as damage to the file.
type damage struct{ error }

func (d *damage) Unwrap() error        { return d.error }
func (d *damage) Is(target error) bool { return target == room.ErrDamaged } //nolint:errorlint // that is what Is is for

// withLocked calls f while the database cannot be closed or exchanged. If its files were
// deleted or replaced during the call, what f found is worthless and the error is errReplaced.
// It releases the lock even if f panics: a server survives that.
func (r *Room) withLocked(f func(db *database) error) (db *database, err error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return nil, store.ErrClosed
	}
	db = r.db
	err = f(db)
	if !db.current() {
		err = errReplaced
	}
	return db, err
}

// alone calls f once all running queries have finished, and blocks new ones until it returns.
func (r *Room) alone(f func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return store.ErrClosed
	}
	return f()
}

// Filled implements room.Room.
func (r *Room) Filled(t room.Tables) { t.(*database).behind.Store(false) }

// Rebuilt implements room.Room.
func (r *Room) Rebuilt() bool { return r.rebuilt.Swap(false) }

// Empty implements room.Room.
func (r *Room) Empty(ctx context.Context) error {
	return r.alone(func() error { return r.replace(ctx) })
}

// Update implements room.Room: see rules 3 and 4 of files.go.
func (r *Room) Update(ctx context.Context, t room.Tables, f func(room.Tx) error) error {
	return r.change(ctx, t, func(db *database) error {
		inner, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer inner.Rollback()
		if err := f(&tx{Tx: inner, stmts: make(map[string]*sql.Stmt)}); err != nil {
			return err
		}
		return inner.Commit()
	})
}

func (r *Room) change(ctx context.Context, t room.Tables, f func(db *database) error) error {
	db := t.(*database)
	return r.guard.hold(ctx, func() error {
		if !db.current() {
			return errReplaced
		}
		if err := r.guard.mark(); err != nil {
			return err
		}
		return f(db)
	})
}

// Forgets implements room.Room. What was removed stays in the free space of the file, and in the
// list of words.
func (r *Room) Forgets() bool { return false }

// Tidy implements room.Room: it empties the write-ahead log. Readers may prevent that, which
// does no harm.
func (r *Room) Tidy(ctx context.Context, t room.Tables) error {
	return r.change(ctx, t, func(db *database) error {
		_, err := db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
		return err
	})
}

// Status implements room.Room.
func (r *Room) Status(ctx context.Context) (size int64, engine string, err error) {
	for _, suffix := range fileSuffixes {
		if info, err := os.Stat(r.path + suffix); err == nil {
			size += info.Size()
		}
	}
	err = r.View(ctx, false, func(t room.Tables) error {
		return t.QueryRowContext(ctx, `SELECT 'SQLite ' || sqlite_version()`).Scan(&engine)
	})
	return size, engine, err
}

// Explain implements room.Room.
func (r *Room) Explain(err error) error {
	if isFull(err) {
		return syscall.ENOSPC // whose message says what to do
	}
	if isForbidden(err) {
		if why := whyForbidden(r.path); vfs.NoDescriptors(why) {
			return why
		}
	}
	return err
}
