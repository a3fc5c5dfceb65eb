package remote

import (
	"crypto/rand"
	"errors"
	"fmt"
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

	uses   int // requests that use it now; this and what follows is guarded by the handler's mutex
	used   time.Time
	expiry *time.Timer
}

// addHandle keeps a log open and returns the name of its handle.
func (h *Handler) addHandle(log store.Log) (string, error) {
	id, l := rand.Text(), &handle{Log: log, used: time.Now()}
	h.mu.Lock()
	var oldest *handle
	if h.ctx.Err() != nil || len(h.logs) >= maxLogs && !h.forgetOldest(&oldest) {
		h.mu.Unlock()
		return "", errors.Join(&store.Error{Op: "open", Kind: store.ErrLocked, Err: fmt.Errorf("%d logs are open", maxLogs), Hint: "try again later"}, l.Close())
	}
	l.expiry = time.AfterFunc(h.pace.idle, func() { h.expire(id, l) })
	h.logs[id] = l
	h.mu.Unlock()
	if oldest != nil {
		return id, oldest.Close()
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
	_ = l.Close() // the client gets an error when it opens the log again and flushes
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
	return l.Close()
}

// lease is something that lasts for several requests of a client.
type lease struct {
	end    func()      // releases what the client has
	silent *time.Timer // ends it when the client is silent
	over   *time.Timer // ends it when its life is over
}

func (l *lease) finish() {
	l.silent.Stop()
	l.over.Stop()
	l.end()
}

// grant registers a lease and returns its name.
func (h *Handler) grant(end func(), life time.Duration) (string, error) {
	id := rand.Text()
	h.mu.Lock()
	if h.ctx.Err() != nil || len(h.leases) >= maxLeases {
		h.mu.Unlock()
		end()
		return "", &store.Error{Op: "lock", Kind: store.ErrLocked, Err: fmt.Errorf("there are %d leases", maxLeases), Hint: "try again later"}
	}
	defer h.mu.Unlock()
	release := func() { h.release(id) }
	h.leases[id] = &lease{end, time.AfterFunc(h.pace.lease, release), time.AfterFunc(life, release)}
	return id, nil
}

// renew reports whether there is such a lease, after a sign of life of its client. Its own life
// gets no longer by that: a client that never ends would keep others waiting for ever.
func (h *Handler) renew(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.leases[id]
	return l != nil && l.silent.Reset(h.pace.lease)
}

// release ends a lease. It does nothing if there is none.
func (h *Handler) release(id string) {
	h.mu.Lock()
	l := h.leases[id]
	delete(h.leases, id)
	h.mu.Unlock()
	if l != nil {
		l.finish()
	}
}
