package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/store"
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
	// a redaction would not find it. Redacting makes the indexes forget that it finds: see
	// Forget. An index that is apart does so whenever it finds that a log was rewritten.
	Apart bool
	// Logger gets a line for every rebuild, and for every log that cannot be read.
	// Default: none.
	Logger *slog.Logger
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
	return opts
}

// Index is an open index of a store's sessions. All methods may be called
// concurrently.
type Index struct {
	store store.Store
	room  room.Room
	opts  Options
	batch int // documents written in one transaction
	// sweepAlways is the number of sessions up to which every CatchUp looks at all of them.
	sweepAlways int

	turns   turns                   // one CatchUp at a time in this process
	closing context.Context         // done, with the cause store.ErrClosed, once the index is closed
	close   context.CancelCauseFunc // closing
}

// New returns the index of a store in a room, which it closes when it is closed. It reads
// nothing of the store: call CatchUp. The store must stay open as long as the index is.
func New(st store.Store, r room.Room, o *Options) *Index {
	ix := &Index{store: st, room: r, opts: o.withDefaults(), batch: batchDocs, sweepAlways: sweepAlways}
	ix.closing, ix.close = context.WithCancelCause(context.Background())
	return ix
}

// Where says where the index is: the path of a file, or the address of a database.
func (ix *Index) Where() string { return ix.room.Where() }

// Close releases the index. Afterwards every method returns store.ErrClosed, except that
// closing again does nothing. A running CatchUp ends early; running queries finish.
func (ix *Index) Close() error {
	ix.close(store.ErrClosed)
	return ix.room.Close()
}

// Discard deletes what the index has. It stays open: its next use rebuilds it from the logs.
// Running queries finish first.
func (ix *Index) Discard(ctx context.Context) error {
	return ix.fail("delete index", ix.alone(ctx, ix.room.Discard))
}

// Forget makes the index forget what the logs no longer say, after a redaction. Where what is
// removed would leave traces, everything is deleted, and rebuilt when it is next used.
func (ix *Index) Forget(ctx context.Context) error {
	if !ix.room.Forgets() {
		return ix.Discard(ctx)
	}
	if ix.closing.Err() == nil && ix.IsEmpty(ctx) {
		return nil
	}
	if _, err := ix.CatchUp(ctx, nil); err != nil {
		return err
	}
	return ix.fail("forget", ix.room.View(ctx, false, func(db room.Tables) error {
		r := &catching{ctx: ctx, ix: ix, db: db, terms: newTermTable()}
		return r.inTx((*writer).dropNames)
	}))
}

// IsEmpty reports whether the index has no session yet, or cannot tell.
func (ix *Index) IsEmpty(ctx context.Context) bool {
	return !ix.isTrue(ctx, `SELECT EXISTS (SELECT 1 FROM sessions)`)
}

// IsComplete reports whether the index has had all sessions at some time. If so, it may be
// read even when it cannot be brought up to date.
func (ix *Index) IsComplete(ctx context.Context) bool {
	return ix.isTrue(ctx, `SELECT EXISTS (SELECT 1 FROM swept)`)
}

// isTrue reports whether a condition in SQL holds.
func (ix *Index) isTrue(ctx context.Context, question string) (yes bool) {
	err := ix.room.View(ctx, false, func(db room.Tables) error {
		return db.QueryRowContext(ctx, question).Scan(&yes)
	})
	return err == nil && yes
}

// Changes returns a number that is another one after each change of the index.
func (ix *Index) Changes(ctx context.Context) (n int64, err error) {
	err = ix.read(ctx, "look for changes", func(db room.Tables) error {
		return db.QueryRowContext(ctx, `SELECT value FROM counters WHERE name = 'changes'`).Scan(&n)
	})
	return n, err
}

// Status describes an index as a whole.
type Status struct {
	Path     string `json:"path"`
	Sessions int    `json:"sessions"`
	Entries  int64  `json:"entries"`
	Texts    int64  `json:"texts"`  // searchable pieces of text
	Size     int64  `json:"size"`   // bytes that it takes
	Schema   int    `json:"schema"` // version of the index's own format
	Engine   string `json:"engine"` // the database and its version
}

// Status returns the index's size and contents.
func (ix *Index) Status(ctx context.Context) (Status, error) {
	s := Status{Path: ix.Where(), Schema: room.Version}
	err := ix.read(ctx, "status", func(db room.Tables) error {
		return db.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(entries), 0), coalesce(sum(docs), 0)
			FROM sessions WHERE name IS NOT NULL`).Scan(&s.Sessions, &s.Entries, &s.Texts)
	})
	if err == nil {
		s.Size, s.Engine, err = ix.room.Status(ctx)
	}
	return s, ix.fail("status", err)
}

// maxReplaced is how many times in a row an index is read again because it was deleted.
const maxReplaced = 5

// isLost reports whether an error means that the index has to be filled again.
func isLost(err error) bool {
	return errors.Is(err, room.ErrDamaged) || errors.Is(err, room.ErrReplaced)
}

// read calls f with the tables. If they are damaged, or were deleted or replaced during the
// call, they are filled from the logs and f is called once more.
func (ix *Index) read(ctx context.Context, op string, f func(db room.Tables) error) error {
	err := ix.room.View(ctx, true, f)
	for n := 0; n < maxReplaced && isLost(err); n++ {
		if _, err2 := ix.CatchUp(ctx, nil); err2 != nil {
			return ix.fail(op, errors.Join(err, err2))
		}
		err = ix.room.View(ctx, true, f)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // not the database's wording of it
	}
	return ix.fail(op, err)
}

// untilClosed returns a context that is done when ctx is, or when the index is
// closed: context.Cause says which.
func (ix *Index) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(ix.closing, func() { cancel(context.Cause(ix.closing)) })
	return ctx, func() { stop(); cancel(nil) }
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
		return &store.Error{Op: op, Path: ix.Where(), Kind: store.ErrClosed}
	}
	err = ix.room.Explain(err)
	if errors.As(err, &done) {
		return err
	}
	if errors.Is(err, room.ErrReplaced) {
		return &store.Error{Op: op, Path: ix.Where(), Err: err, Hint: "another program keeps deleting it: try again later"}
	}
	return &store.Error{Op: op, Path: ix.Where(), Err: fmt.Errorf("index: %w", err)}
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
