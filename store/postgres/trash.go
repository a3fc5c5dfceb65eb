package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/store"
)

// trash is the logs whose rows say when they were removed.
type trash struct{ store *Store }

// Trash implements store.Store.
func (s *Store) Trash() store.Trash { return trash{s} }

// now returns what time it is on the server. When a log was removed is for all programs to know,
// and their clocks may differ.
func (s *Store) now(ctx context.Context) (now time.Time, err error) {
	err = s.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now)
	return now, err
}

// ahead returns by how much our clock is ahead of the server's, or 0 if that is less than half a
// minute. Callers think in times of our clock: they ask for logs that were removed an hour ago.
func (t trash) ahead(ctx context.Context, op string) (ahead time.Duration, err error) {
	err = t.store.read(ctx, op, "", func(ctx context.Context) error {
		now, err := t.store.now(ctx)
		ahead = time.Since(now).Round(time.Minute)
		return err
	})
	return ahead, err
}

// removed describes a log in the trash.
func removed(r row, ahead time.Duration) store.Trashed {
	return store.Trashed{ID: removalID(r.name, r.slot), Name: r.name, Removed: time.Unix(0, r.slot).Add(ahead).UTC(), Size: r.tail}
}

// List implements store.Trash.
func (t trash) List(ctx context.Context) ([]store.Trashed, error) {
	const op = "list trash"
	ahead, err := t.ahead(ctx, op)
	if err != nil {
		return nil, err
	}
	var all []store.Trashed
	for r, err := range t.store.rows(ctx, op, true) {
		if err != nil {
			return nil, err
		}
		all = append(all, removed(r, ahead))
	}
	slices.SortFunc(all, func(a, b store.Trashed) int { return b.Removed.Compare(a.Removed) })
	return all, nil
}

// Add implements store.Trash.
func (t trash) Add(ctx context.Context, id string, lines iter.Seq2[[]byte, error]) error {
	const op = "add to trash"
	s := t.store
	k, err := s.removal(op, id)
	if err != nil {
		return &store.Error{Op: op, Kind: store.ErrInvalid, Err: fmt.Errorf("%.80q does not name a removal", id)}
	}
	name := id[:len(id)-len(removedFormat)-1]
	if err := s.admitWrite(ctx, op, name); err != nil {
		return err
	}
	d, err := s.writeDraft(ctx, op, name, k, lines)
	if err != nil {
		return err
	}
	if err := publish(ctx, op, d)[0]; err != nil {
		d.discard(ctx)
		return err
	}
	return nil
}

// Take implements store.Trash.
func (t trash) Take(ctx context.Context, id string, end store.Pos) error {
	const op = "remove"
	name, _, ok := store.ParseRemoval(id)
	k, err := t.store.removal(op, id)
	if err != nil || !ok {
		return &store.Error{Op: op, Kind: store.ErrInvalid, Err: fmt.Errorf("%.80q does not name a removal", id)}
	}
	if end < 0 {
		return &store.Error{Op: op, Name: name, Kind: store.ErrConflict}
	}
	return t.store.remove(ctx, name, k.slot, int64(end))
}

// Restore implements store.Trash.
func (t trash) Restore(ctx context.Context, id string) error {
	const op = "restore"
	s := t.store
	if err := s.admit(ctx, op, id); err != nil {
		return err
	}
	k, err := s.removal(op, id)
	if err != nil {
		return err
	}
	if _, err := s.head(ctx, s.pool, k, ""); err == nil {
		if err := store.NoteRemovals(ctx, s, id); err != nil {
			return err
		}
	}
	var was head
	err = s.write(ctx, op, "", func(ctx context.Context) error {
		h, err := s.head(ctx, s.pool, k, "")
		if errors.Is(err, pgx.ErrNoRows) {
			// Unless it was us, and the answer got lost.
			if now, err := s.head(ctx, s.pool, key{log: k.log}, ""); err == nil && now.life == was.life {
				return nil
			}
			return &store.Error{Op: op, Kind: store.ErrNotExist, Err: fmt.Errorf("the trash has no %q", id)}
		}
		if err != nil {
			return err
		}
		was = h
		_, err = s.pool.Exec(ctx, s.sql(`UPDATE coppice.logs SET slot = 0, marked = true
			WHERE tenant = $1 AND log = $2 AND slot = $3 AND life = $4`), s.tenant, k.log, k.slot, h.life)
		if unique(err) {
			return &store.Error{Op: op, Name: id[:len(id)-len(removedFormat)-1], Kind: store.ErrExist}
		}
		return err
	})
	if err == nil {
		s.hub.changed(k)
	}
	return err
}

// Empty implements store.Trash. The row of a log that is deleted for good stays: it says so to
// an index that has not noticed yet, and to programs that may have a copy of it.
func (t trash) Empty(ctx context.Context, before time.Time) ([]store.Trashed, error) {
	const op = "empty trash"
	s := t.store
	ahead, err := t.ahead(ctx, op)
	if err != nil {
		return nil, err
	}
	var rows []row
	var ids []string
	for r, err := range s.rows(ctx, op, true) {
		if err != nil {
			return nil, err
		}
		if item := removed(r, ahead); item.Removed.Before(before) {
			rows, ids = append(rows, r), append(ids, item.ID)
		}
	}
	if err := store.NoteRemovals(ctx, s, ids...); err != nil {
		return nil, err
	}
	var gone []store.Trashed
	for _, r := range rows {
		item, deleted := removed(r, ahead), false
		err := s.write(ctx, op, r.name, func(ctx context.Context) error {
			return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
				tag, err := tx.Exec(ctx, s.sql(`UPDATE coppice.logs SET life = 0, tail = 0, marked = true
					WHERE tenant = $1 AND log = $2 AND slot = $3 AND life = $4`), s.tenant, r.log, r.slot, r.life)
				if err != nil || tag.RowsAffected() == 0 {
					return err // restored, or deleted by another
				}
				deleted = true
				return s.deleteLife(ctx, tx, r.log, r.life)
			})
		})
		if err != nil {
			return gone, err
		}
		if deleted {
			gone = append(gone, item)
		}
	}
	return gone, nil
}

// Read implements store.Trash.
func (t trash) Read() (store.Store, error) {
	if err := t.store.ready(context.Background(), "read trash", ""); err != nil {
		return nil, err
	}
	s := *t.store
	s.trashed, s.done, s.closing = true, make(chan struct{}), new(atomic.Bool)
	return &s, nil
}
