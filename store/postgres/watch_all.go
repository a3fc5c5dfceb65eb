package postgres

import (
	"context"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/store"
)

// Watch implements store.Watcher. Where no notifications arrive, it lists all logs again and again. So
// it does in the trash, whose changes nobody waits for.
func (s *Store) Watch(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := s.ready(ctx, "list", ""); err != nil {
			yield("", err)
			return
		}
		if s.trashed {
			store.Look(ctx, s, nil)(yield)
			return
		}
		e := s.hub.watchStore()
		defer e.close()
		store.Look(ctx, s, e)(yield)
	}
}

// storeWatch is a watch of all logs of a store.
type storeWatch struct {
	*store.Inbox
	hub *hub
}

// watchStore begins a watch, which the caller must close.
func (h *hub) watchStore() *storeWatch {
	e := &storeWatch{store.NewInbox(), h}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.storeWatches[e] = true
	h.start()
	return e
}

func (e *storeWatch) close() {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	delete(e.hub.storeWatches, e)
	e.hub.stopIfUnwatched()
}

// notificationsArrive notes that notifications arrive on the connection of a context. Those who
// watch the store have missed the earlier ones.
func (h *hub) notificationsArrive(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listening == ctx {
		return
	}
	h.listening = ctx
	for e := range h.storeWatches {
		e.TellAll()
	}
}

// notificationsEnd notes that no more notifications arrive, unless they arrive on another
// connection by now.
func (h *hub) notificationsEnd(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listening != ctx {
		return
	}
	h.listening = nil
	for e := range h.storeWatches {
		e.Tell() // it has to list the logs itself
	}
}

// wakeStoreWatches tells those who watch the store which logs have changed. A notification is for all
// tenants and has no names.
func (h *hub) wakeStoreWatches(ctx context.Context, logs [][]byte) {
	h.mu.Lock()
	nobody := len(h.storeWatches) == 0
	h.mu.Unlock()
	if nobody || len(logs) == 0 {
		return
	}
	s := h.store
	rows, err := s.pool.Query(ctx, s.sql(`SELECT DISTINCT name FROM coppice.logs WHERE tenant = $1 AND log = ANY ($2)`), s.tenant, logs)
	var names []string
	if err == nil {
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for e := range h.storeWatches {
		if e.Tell(names...); err != nil {
			e.TellAll()
		}
	}
}

// Err implements store.Notices. A pool of connections between us and the server is no fault.
func (e *storeWatch) Err() error {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	if e.hub.listening == nil {
		return errors.ErrUnsupported
	}
	return nil
}
