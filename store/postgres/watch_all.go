package postgres

import (
	"context"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/store"
)

// Watch implements store.Watcher. Where no notifications arrive, all logs are looked at. In the trash
// they are, too: nobody waits for it.
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
		e := s.hub.hearAll()
		defer e.close()
		store.Look(ctx, s, e)(yield)
	}
}

// ear is somebody who watches all logs.
type ear struct {
	*store.Inbox
	hub *hub
}

// hearAll returns an ear, which the caller must close.
func (h *hub) hearAll() *ear {
	e := &ear{store.NewInbox(), h}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ears[e] = true
	h.begin()
	return e
}

func (e *ear) close() {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	delete(e.hub.ears, e)
	e.hub.end()
}

// hearing notes that notifications arrive. Those who watch all logs have missed what came before.
func (h *hub) hearing(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hears == ctx {
		return
	}
	h.hears = ctx
	for e := range h.ears {
		e.TellAll()
	}
}

// deaf notes that none arrive any more, unless somebody else hears them by now.
func (h *hub) deaf(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hears != ctx {
		return
	}
	h.hears = nil
	for e := range h.ears {
		e.Tell() // it has to look by itself
	}
}

// tellEars tells those who watch all logs which of them have changed. A notification is for all
// tenants and has no names.
func (h *hub) tellEars(ctx context.Context, logs [][]byte) {
	h.mu.Lock()
	nobody := len(h.ears) == 0
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
	for e := range h.ears {
		if e.Tell(names...); err != nil {
			e.TellAll()
		}
	}
}

// Err implements store.Notices. A pool of connections between us and the server is no fault.
func (e *ear) Err() error {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	if e.hub.hears == nil {
		return errors.ErrUnsupported
	}
	return nil
}
