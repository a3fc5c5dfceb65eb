package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// defaultMaxText is the default of Options.MaxText.
const defaultMaxText = 1 << 20

// Options adjusts an Index. The zero value is what most programs want.
type Options struct {
	// MaxText is how many bytes of a single text, such as one tool's output, are
	// searchable. Default: 1 MiB.
	MaxText int
	// Prices says what models cost when a log does not. Default:
	// DefaultPrices().
	Prices *Prices
	// Apart marks an index outside the store, for example in a temporary directory, where
	// a redaction would not find it. Redacting deletes the indexes that it finds, because
	// the removed words remain in the file's free space and in the list of words. An index
	// that is apart is rebuilt whenever it finds that a log was rewritten.
	Apart bool
	// Logger gets a line for every rebuild, and for every log that cannot be read.
	// Default: none.
	Logger *slog.Logger

	patience time.Duration // of Open, before it does without the lock; tests have less
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.MaxText <= 0 {
		opts.MaxText = defaultMaxText
	}
	if opts.Prices == nil {
		opts.Prices = DefaultPrices()
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.patience <= 0 {
		opts.patience = 3 * time.Second
	}
	return opts
}

// Index is an open index of a store's sessions. All methods may be called
// concurrently.
type Index struct {
	store store.Store
	path  string
	opts  Options
	batch int // documents written in one transaction
	// sweepAlways is the number of sessions up to which every CatchUp looks at all of them.
	sweepAlways int
	guard       *guard

	turns   turns                   // one CatchUp at a time in this process
	rebuilt atomic.Bool             // the file was rebuilt, and no CatchUp has filled it yet
	closing context.Context         // done, with the cause store.ErrClosed, once the index is closed
	close   context.CancelCauseFunc // closing

	mu     sync.RWMutex // guards what follows; held for reading while db is in use
	db     *database
	closed bool
}

// Open returns the index in the file at path. It creates the file and its directory if they
// do not exist, and rebuilds an index that is damaged or of another version. Opening reads
// nothing of the store: call CatchUp. The store must stay open as long as the index is.
func Open(ctx context.Context, st store.Store, path string, o *Options) (*Index, error) {
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
	ix := &Index{store: st, path: abs, opts: o.withDefaults(), batch: batchDocs, sweepAlways: sweepAlways, guard: newGuard(abs)}
	ix.closing, ix.close = context.WithCancelCause(context.Background())
	if err := ix.openSoon(ctx); err != nil {
		defer ix.guard.close()
		switch {
		case isFull(err):
			err = syscall.ENOSPC
		case isForbidden(err):
			err = whyForbidden(abs)
		}
		return nil, &store.Error{Op: "open index", Path: abs, Err: err}
	}
	ix.db.behind.Store(false) // the caller decides whether to catch up first
	return ix, nil
}

// Path returns the index's file, as an absolute path.
func (ix *Index) Path() string { return ix.path }

// Close releases the index. Afterwards every method returns store.ErrClosed, except that
// closing again does nothing. A running CatchUp ends early; running queries finish.
func (ix *Index) Close() error {
	ix.close(store.ErrClosed)
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.closed {
		return nil
	}
	ix.closed = true
	return ix.leave()
}

// IsEmpty reports whether the index has no session yet, or cannot tell.
func (ix *Index) IsEmpty(ctx context.Context) bool {
	some := false
	err := ix.withDB(func(db *database) error {
		return db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sessions)`).Scan(&some)
	})
	return err != nil || !some
}

// IsComplete reports whether the index has had all sessions at some time. If so, it may be
// read even when it cannot be brought up to date.
func (ix *Index) IsComplete(ctx context.Context) bool {
	complete := false
	err := ix.withDB(func(db *database) error {
		complete = db.isComplete(ctx)
		return nil
	})
	return err == nil && complete
}

// Changes returns a number that is another one after each change of the index.
func (ix *Index) Changes(ctx context.Context) (n int64, err error) {
	err = ix.read(ctx, "look for changes", func(db *database) (err error) {
		n, err = db.changes(ctx)
		return err
	})
	return n, err
}

// Status describes an index as a whole.
type Status struct {
	Path     string `json:"path"`
	Sessions int    `json:"sessions"`
	Entries  int64  `json:"entries"`
	Texts    int64  `json:"texts"`  // searchable pieces of text
	Size     int64  `json:"size"`   // bytes of the index's files
	Schema   int    `json:"schema"` // version of the index's own format
	SQLite   string `json:"sqlite"`
}

// Status returns the index's size and contents.
func (ix *Index) Status(ctx context.Context) (Status, error) {
	s := Status{Path: ix.path, Schema: schemaVersion}
	err := ix.read(ctx, "status", func(db *database) error {
		return db.QueryRowContext(ctx, `SELECT count(*), ifnull(sum(entries), 0), ifnull(sum(docs), 0), sqlite_version()
			FROM sessions WHERE name IS NOT NULL`).Scan(&s.Sessions, &s.Entries, &s.Texts, &s.SQLite)
	})
	for _, suffix := range fileSuffixes {
		if info, err := os.Stat(ix.path + suffix); err == nil {
			s.Size += info.Size()
		}
	}
	return s, err
}

// read calls f with the database. If f finds it damaged, or it was deleted or replaced
// during the call, it is rebuilt from the logs and f is called once more.
func (ix *Index) read(ctx context.Context, op string, f func(db *database) error) error {
	err := ix.answer(f)
	for n := 0; n < maxReplaced && (isDamage(err) || errors.Is(err, errReplaced)); n++ {
		if _, err2 := ix.CatchUp(ctx, nil); err2 != nil {
			return ix.fail(op, errors.Join(err, err2))
		}
		err = ix.answer(f)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // not SQLite's wording of it
	}
	return ix.fail(op, err)
}

// answer is withDB for queries. A database that has to be filled first counts as deleted:
// it lacks what the one before it had.
func (ix *Index) answer(f func(db *database) error) error {
	return ix.withDB(func(db *database) error {
		if db.behind.Load() {
			return errReplaced
		}
		return f(db)
	})
}

// untilClosed returns a context that is done when ctx is, or when the index is
// closed: context.Cause says which.
func (ix *Index) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(ix.closing, func() { cancel(context.Cause(ix.closing)) })
	return ctx, func() { stop(); cancel(nil) }
}

// withDB calls f with the database. If its files were deleted or replaced during the call,
// what f found is worthless and the error is errReplaced. If f finds damage, withDB remembers
// it, so that the next CatchUp rebuilds the index.
func (ix *Index) withDB(f func(db *database) error) error {
	db, err := ix.withLocked(f)
	if !isDamage(err) {
		return err
	}
	ix.opts.Logger.Warn("rebuilding a damaged index", "path", ix.path, "cause", err)
	if err2 := ix.reset(context.Background(), db); err2 != nil {
		return errors.Join(err, err2)
	}
	return err
}

// withLocked calls f while the database cannot be closed or exchanged. It releases the lock
// even if f panics: a server survives that.
func (ix *Index) withLocked(f func(db *database) error) (db *database, err error) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if ix.closed {
		return nil, store.ErrClosed
	}
	db = ix.db
	err = f(db)
	if !db.current() {
		err = errReplaced
	}
	return db, err
}

// fail adds to an error what the index was doing.
func (ix *Index) fail(op string, err error) error {
	var done *store.Error
	var query *QueryError
	switch {
	case err == nil, errors.As(err, &query), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &done):
		return err
	case errors.Is(err, store.ErrClosed):
		return &store.Error{Op: op, Path: ix.path, Kind: store.ErrClosed}
	}
	if isFull(err) {
		err = syscall.ENOSPC // whose message says what to do
	}
	if isForbidden(err) {
		if why := whyForbidden(ix.path); vfs.NoDescriptors(why) {
			err = why
		}
	}
	if errors.Is(err, errReplaced) {
		return &store.Error{Op: op, Path: ix.path, Err: err, Hint: "another program keeps deleting it: try again later"}
	}
	return &store.Error{Op: op, Path: ix.path, Err: fmt.Errorf("index: %w", err)}
}

// Report says what a CatchUp found.
type Report struct {
	Sessions int   // looked at: all of the store, or those that may have changed
	Changed  int   // of them, read again or further
	Removed  int   // no longer in the store
	Entries  int64 // read
	Bytes    int64 // read
	Rebuilt  bool  // the index had to be rebuilt
	Duration time.Duration
	// Unread lists the logs that could not be read. The index keeps what it knew about them
	// before.
	Unread []Unread
}

// Unread is a log that could not be read, and why.
type Unread struct {
	Name string
	Err  error
}
