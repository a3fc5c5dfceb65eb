package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// maxLogs is how many logs clients may have open at the same time. Those that are not in use
// are forgotten before that.
const maxLogs = 1000

// maxLeases is how many leases there may be at the same time.
const maxLeases = 1000

// handle is a log that a client has open.
type handle struct {
	store.Log
	of store.Store // closed with the log, if it is not nil

	uses   int // requests that use it now; this and what follows is guarded by the handler's mutex
	used   time.Time
	expiry *time.Timer
}

func (l *handle) close() error {
	err := l.Log.Close()
	if l.of != nil {
		err = errors.Join(err, l.of.Close())
	}
	return err
}

// keep keeps a log open and returns the name of its handle.
func (h *Handler) keep(log store.Log, of store.Store) (string, error) {
	id, l := rand.Text(), &handle{Log: log, of: of, used: time.Now()}
	h.mu.Lock()
	var oldest *handle
	if h.ctx.Err() != nil || len(h.logs) >= maxLogs && !h.forgetOldest(&oldest) {
		h.mu.Unlock()
		return "", errors.Join(&store.Error{Op: "open", Kind: store.ErrLocked, Err: fmt.Errorf("%d logs are open", maxLogs), Hint: "try again later"}, l.close())
	}
	l.expiry = time.AfterFunc(h.pace.idle, func() { h.expire(id, l) })
	h.logs[id] = l
	h.mu.Unlock()
	if oldest != nil {
		return id, oldest.close()
	}
	return id, nil
}

// forgetOldest removes the log that was unused for the longest time. The caller has the
// mutex, and closes the log.
func (h *Handler) forgetOldest(oldest **handle) bool {
	id := ""
	for other, l := range h.logs {
		if l.uses == 0 && (*oldest == nil || l.used.Before((*oldest).used)) {
			id, *oldest = other, l
		}
	}
	if *oldest == nil {
		return false
	}
	(*oldest).expiry.Stop()
	delete(h.logs, id)
	return true
}

func (h *Handler) expire(id string, l *handle) {
	h.mu.Lock()
	if h.logs[id] != l || l.uses > 0 || time.Since(l.used) < h.pace.idle {
		h.mu.Unlock()
		return
	}
	delete(h.logs, id)
	h.mu.Unlock()
	_ = l.close() // the client learns of an error when it opens the log again and flushes
}

// log returns the log of a handle; done must be called.
func (h *Handler) log(id string) (log store.Log, done func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.logs[id]
	if l == nil {
		return nil, nil, errGone
	}
	l.uses++
	return l.Log, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		l.used = time.Now()
		if l.uses--; l.uses == 0 {
			l.expiry.Reset(h.pace.idle)
		}
	}, nil
}

// isTrash reports whether a handle belongs to a log in the trash.
func (h *Handler) isTrash(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.logs[id]
	return l != nil && l.of != nil
}

// drop forgets a handle and closes its log.
func (h *Handler) drop(id string) error {
	h.mu.Lock()
	l := h.logs[id]
	delete(h.logs, id)
	h.mu.Unlock()
	if l == nil {
		return nil
	}
	l.expiry.Stop()
	return l.close()
}

// lease is something that lasts for several requests of a client.
type lease struct {
	ctx    context.Context // ends with the lease
	cancel context.CancelFunc
	end    func() // releases what the client has; after that nothing of it is left
	life   time.Duration
	expiry *time.Timer // when the client is silent
	last   *time.Timer // when its life is over
	once   sync.Once

	batch    store.Batch
	mu       sync.Mutex // held by the request that uses the lease
	exchange *exchange
}

// finish ends a lease, and returns when everything is released.
func (l *lease) finish() {
	l.cancel()
	l.once.Do(l.end)
}

// drop ends a lease that is no longer known.
func (l *lease) drop() {
	l.expiry.Stop()
	l.last.Stop()
	l.finish()
}

// newLease returns a lease. The caller sets its end, and calls grant.
func (h *Handler) newLease() *lease {
	l := &lease{end: func() {}, life: h.pace.life}
	l.ctx, l.cancel = context.WithCancel(h.ctx)
	return l
}

// grant registers a lease and returns its name.
func (h *Handler) grant(l *lease) (string, error) {
	id := rand.Text()
	h.mu.Lock()
	if h.ctx.Err() != nil || len(h.leases) >= maxLeases {
		h.mu.Unlock()
		l.finish()
		return "", &store.Error{Op: "lock", Kind: store.ErrLocked, Err: fmt.Errorf("there are %d leases", maxLeases), Hint: "try again later"}
	}
	l.expiry = time.AfterFunc(h.pace.lease, func() { h.release(id) })
	l.last = time.AfterFunc(l.life, l.finish) // it stays known, so that its client learns why
	h.leases[id] = l
	h.mu.Unlock()
	return id, nil
}

// renew returns a lease, after a sign of life of its client. Its own life gets no longer by that:
// a client that never ends would keep others waiting for ever.
func (h *Handler) renew(id string) (*lease, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.leases[id]
	switch {
	case l == nil:
		return nil, errGone
	case l.ctx.Err() != nil:
		return nil, &store.Error{
			Op: "keep", Kind: store.ErrLocked, Hint: "take it again",
			Err: fmt.Errorf("%w: a client may have it for %s", errOver, l.life),
		}
	case !l.expiry.Reset(h.pace.lease):
		return nil, errGone
	}
	return l, nil
}

// release ends a lease. It does nothing if there is none.
func (h *Handler) release(id string) {
	h.mu.Lock()
	l := h.leases[id]
	delete(h.leases, id)
	h.mu.Unlock()
	if l != nil {
		l.drop()
	}
}

// exchange runs a function of the client, such as that of store.Parts.Edit, in the middle of
// an operation of the store: it asks, and gets an answer in the client's next request.
type exchange struct {
	ctx     context.Context
	asked   chan []byte // nil: there is nothing
	replies chan []byte
	done    chan struct{} // closed when the operation is over
	err     error         // of the operation; to be read after that
}

func startExchange(ctx context.Context, run func(ctx context.Context, ask func([]byte) ([]byte, error)) error) *exchange {
	x := &exchange{ctx: ctx, asked: make(chan []byte), replies: make(chan []byte), done: make(chan struct{})}
	go func() {
		defer close(x.done)
		x.err = run(ctx, x.ask)
	}()
	return x
}

// errEnded is why an operation fails when its client has cancelled or is dead.
var errEnded = &store.Error{Op: "change", Kind: store.ErrLocked, Err: errors.New("the client has gone")}

func (x *exchange) ask(question []byte) ([]byte, error) {
	select {
	case x.asked <- question:
	case <-x.ctx.Done():
		return nil, errEnded
	}
	select {
	case reply := <-x.replies:
		return reply, nil
	case <-x.ctx.Done():
		return nil, errEnded
	}
}

// next returns the next question, or that the operation is over.
func (x *exchange) next(ctx context.Context) (question []byte, over bool, err error) {
	select {
	case question = <-x.asked:
		return question, false, nil
	case <-x.done:
		return nil, true, x.err
	case <-ctx.Done():
		return nil, true, ctx.Err()
	}
}

func (x *exchange) isOver() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// reply answers the question.
func (x *exchange) reply(answer []byte) error {
	select {
	case x.replies <- answer:
		return nil
	case <-x.done:
		return x.err
	}
}
