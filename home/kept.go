package home

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/internal/pool"
	"github.com/coppice-dev/coppice/session"
)

// Sessions that are appended to stay open for a moment, because the next append often comes soon:
// opening one takes longer than appending to it, and writers that append to the same session at
// the same time can share a sync. Such a session holds no lock between two appends. It reads what
// others have written before each, and one that was rewritten is opened again.
const (
	maxKept      = 200
	maxKeptBytes = 64 << 20
	// keptFor is roughly how long a session that is not used stays open. It must not be long: a
	// file that was deleted takes up room on the disk as long as it is open.
	keptFor = 5 * time.Second
	// For a moment more may stay, or a burst of appends to many would open and close files all
	// the time. Each takes two.
	keptGrace = time.Second
	keptBurst = 4
)

// keptOpen is a session that stays open.
type keptOpen struct {
	*session.Session
	name   string
	size   atomic.Int64
	broken atomic.Bool
	ctx    context.Context // of the update that runs; there is one at a time
}

// keeper keeps sessions open for a home.
type keeper struct {
	pool  *pool.Pool[*keptOpen]
	views *pool.Pool[*viewed]

	mu     sync.Mutex // guards what follows
	sweep  *time.Timer
	unseen *time.Timer // closes what is not looked at any more
	closed bool
}

func newKeeper() *keeper {
	return &keeper{views: newViews(), pool: pool.New(pool.Limits{Count: maxKept, Bytes: maxKeptBytes}, pool.Options[*keptOpen]{
		Close: func(k *keptOpen) bool {
			_ = k.Close() // what was appended is durable, or its caller knows that it may not be
			return true
		},
		Size:    func(k *keptOpen) int64 { return k.size.Load() },
		IsEmpty: func(k *keptOpen) bool { return k.broken.Load() },
		Grace:   keptGrace, Burst: keptBurst,
	})}
}

// findKept is find for an operation that only makes updates. The name of a session that is open
// need not be looked up.
func (h *Home) findKept(ctx context.Context, given string) (alone *Conversation, chain session.Linked, err error) {
	open := func(name string) (*Conversation, error) { return h.openKept(ctx, name) }
	if h.keeper.pool.Has(given) {
		if alone, chain, err = h.chainBy(ctx, given, open); !errors.Is(err, session.ErrNotExist) {
			return alone, chain, err
		}
	}
	return h.findBy(ctx, given, open)
}

// openKept opens a session for updates; nothing else may be written to it. Close leaves it open
// for the next one.
func (h *Home) openKept(ctx context.Context, name string) (*Conversation, error) {
	fresh := false
	k, err := h.keeper.pool.Get(ctx, name, func() (*keptOpen, error) {
		fresh = true
		return h.newKept(ctx, name)
	})
	if err != nil {
		return nil, err
	}
	if fresh {
		h.keeper.sweepLater()
	} else if _, err = k.WithContext(ctx).Refresh(); err != nil {
		again := k.failed(err)
		k.release(h.keeper)
		if !again {
			return nil, err
		}
		return h.openSession(ctx, name, session.Linked{})
	}
	return &Conversation{Session: k.Session, Handle: name, home: h, kept: k, unreadable: &losses{}, done: h.uses.begin(name)}, nil
}

func (h *Home) newKept(ctx context.Context, name string) (*keptOpen, error) {
	k := &keptOpen{name: name}
	opts := h.sessionOptions(ctx)
	opts.Clean = func(e *session.Entry) error { return h.clean(k.ctx, e) }
	var err error
	k.Session, err = session.Open(ctx, h.store, name, opts)
	return k, err
}

// serve must be called by each update, so that notices about its entries go to the caller who
// appends them.
func (k *keptOpen) serve(ctx context.Context) {
	if k != nil {
		k.ctx = ctx
	}
}

// failed notes the error, or nil, with which an operation on the session ended. It reports whether
// that was refused because of what happened to the session since it was opened, and is to be tried
// again.
func (k *keptOpen) failed(err error) (again bool) {
	if k == nil {
		return false
	}
	if isStale(err) || errors.Is(err, session.ErrUnknown) {
		k.broken.Store(true)
	}
	return isStale(err)
}

func isStale(err error) bool {
	return (session.MustReopen(err) || errors.Is(err, session.ErrNotExist)) && !errors.Is(err, session.ErrUnknown)
}

// release ends a use of the session. Others may still be using it, and if it is broken they find
// that out, too.
func (k *keptOpen) release(kr *keeper) {
	k.size.Store(k.Footprint())
	if k.broken.Load() {
		_ = k.Close() // the error that broke it says more
	}
	kr.pool.Release(k.name, k)
}

// sweepLater closes unused sessions after a while.
func (kr *keeper) sweepLater() {
	kr.mu.Lock()
	defer kr.mu.Unlock()
	switch {
	case kr.closed:
		kr.pool.Close()
	case kr.sweep == nil:
		kr.sweep = time.AfterFunc(keptFor, func() {
			kr.mu.Lock()
			kr.sweep = nil
			kr.mu.Unlock()
			kr.pool.Shrink(0)
			if left, _ := kr.pool.Contents(); len(left) > 0 {
				kr.sweepLater()
			}
		})
	}
}

// closeIdle closes sessions that are not in use. It must be called before sessions are removed,
// moved or rewritten: some systems do not do that to open files, and on others they take up room.
func (kr *keeper) closeIdle() {
	kr.pool.Shrink(0)
	kr.views.Shrink(0)
}

// closeViewsLater closes views that nobody has looked at for a while.
func (kr *keeper) closeViewsLater() {
	kr.mu.Lock()
	defer kr.mu.Unlock()
	switch {
	case kr.closed:
		kr.views.Close()
	case kr.unseen == nil:
		kr.unseen = time.AfterFunc(viewedFor, func() { kr.views.Shrink(0) })
	default:
		kr.unseen.Reset(viewedFor)
	}
}

func (kr *keeper) close() {
	kr.mu.Lock()
	kr.closed = true
	if kr.sweep != nil {
		kr.sweep.Stop()
	}
	if kr.unseen != nil {
		kr.unseen.Stop()
	}
	kr.mu.Unlock()
	kr.pool.Close()
	kr.views.Close()
}
