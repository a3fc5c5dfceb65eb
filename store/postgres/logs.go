package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/store"
)

// head is the row of a log.
type head struct {
	life, tail int64
	modified   time.Time
}

// querier is a pool, a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

const selectHead = `SELECT life, tail, modified FROM coppice.logs WHERE tenant = $1 AND log = $2 AND slot = $3 AND life <> 0`

// head returns the row of a log, or pgx.ErrNoRows.
func (s *Store) head(ctx context.Context, q querier, k key, locking string) (h head, err error) {
	err = q.QueryRow(ctx, s.sql(selectHead)+locking, s.tenant, k.log, k.slot).Scan(&h.life, &h.tail, &h.modified)
	return h, err
}

// find is head for a log that should be there.
func (s *Store) find(ctx context.Context, op, name string, k key) (h head, err error) {
	err = s.read(ctx, op, name, func(ctx context.Context) error {
		h, err = s.head(ctx, s.pool, k, "")
		return absent(op, name, err)
	})
	return h, err
}

// absent makes the error that there is no such row one of the store.
func absent(op, name string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return &store.Error{Op: op, Name: name, Kind: store.ErrNotExist}
	}
	return err
}

// Open implements store.Store.
func (s *Store) Open(ctx context.Context, name string) (store.Log, error) {
	const op = "open"
	if err := s.admit(ctx, op, name); err != nil {
		return nil, err
	}
	k, err := s.keyFor(op, name)
	if err != nil {
		return nil, err
	}
	start, edits := time.Now(), s.edits.Load()
	h, lines, err := s.findBeginning(ctx, op, name, k)
	if err != nil {
		return nil, err
	}
	l := s.handle(name, k, h.life)
	l.remember(start, edits, lines)
	return l, nil
}

// findBeginning is find, and with it, in the same round trip, the lines with which the log
// begins: who opens a log mostly reads them next.
func (s *Store) findBeginning(ctx context.Context, op, name string, k key) (h head, lines []store.Line, err error) {
	err = s.read(ctx, op, name, func(ctx context.Context) error {
		b := new(pgx.Batch)
		b.Queue(s.sql(`SELECT pos, data, life FROM coppice.lines
			WHERE tenant = $1 AND log = $2 AND pos < $4 AND life = (
				SELECT life FROM coppice.logs WHERE tenant = $1 AND log = $2 AND slot = $3)
			ORDER BY pos LIMIT $4`), s.tenant, k.log, k.slot, openPage)
		b.Queue(s.sql(selectHead), s.tenant, k.log, k.slot)
		results := s.pool.SendBatch(ctx, b)
		defer results.Close()
		rows, err := results.Query()
		if err != nil {
			return err
		}
		life := int64(0)
		if lines, err = collectLines(rows, &life); err != nil {
			return err
		}
		err = results.QueryRow().Scan(&h.life, &h.tail, &h.modified)
		if h.life != life {
			lines = nil // the log was rewritten in between
		}
		return absent(op, name, err)
	})
	return h, lines, err
}

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, name string) (store.Stat, error) {
	const op = "describe"
	if err := s.admit(ctx, op, name); err != nil {
		return store.Stat{}, err
	}
	k, err := s.keyFor(op, name)
	if err != nil {
		return store.Stat{}, err
	}
	h, err := s.find(ctx, op, name, k)
	return store.Stat{Name: name, Size: h.tail, Modified: h.modified}, err
}

// listed is how many rows a page of a list has.
const listed = 5000

// List implements store.Store.
func (s *Store) List(ctx context.Context) iter.Seq2[store.Stat, error] {
	return func(yield func(store.Stat, error) bool) {
		for r, err := range s.rows(ctx, "list", s.trashed) {
			name := r.name
			if s.trashed {
				name = removalID(r.name, r.slot)
			}
			if !yield(store.Stat{Name: name, Size: r.tail, Modified: r.modified}, err) {
				return
			}
		}
	}
}

// row is a row of a list of logs.
type row struct {
	key
	name string
	head
}

// rows yields the logs, or those in the trash, page by page.
func (s *Store) rows(ctx context.Context, op string, removed bool) iter.Seq2[row, error] {
	statement := s.sql(`SELECT log, slot, name, life, tail, modified FROM coppice.logs
		WHERE tenant = $1 AND (log, slot) > ($2, $3) AND slot = 0 AND life <> 0 ORDER BY log, slot LIMIT $4`)
	if removed {
		statement = s.sql(`SELECT log, slot, name, life, tail, modified FROM coppice.logs
			WHERE tenant = $1 AND (log, slot) > ($2, $3) AND slot > 0 AND life <> 0 ORDER BY log, slot LIMIT $4`)
	}
	return func(yield func(row, error) bool) {
		last := key{[]byte{}, 0}
		for {
			var page []row
			err := s.read(ctx, op, "", func(ctx context.Context) error {
				rows, err := s.pool.Query(ctx, statement, s.tenant, last.log, last.slot, listed)
				if err != nil {
					return err
				}
				page, err = pgx.CollectRows(rows, func(in pgx.CollectableRow) (r row, err error) {
					return r, in.Scan(&r.log, &r.slot, &r.name, &r.life, &r.tail, &r.modified)
				})
				return err
			})
			if err != nil {
				yield(row{}, err)
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
			}
			if len(page) < listed {
				return
			}
			last = page[len(page)-1].key
		}
	}
}

// Create implements store.Store.
func (s *Store) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	return s.create(ctx, name, lines, nil)
}

// CreateCopy implements store.Store.
func (s *Store) CreateCopy(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of store.Log) (store.Log, error) {
	return s.create(ctx, name, lines, of)
}

// create makes a log, as a copy of another if that is not nil.
func (s *Store) create(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of store.Log) (store.Log, error) {
	const op = "create"
	if err := s.admitWrite(ctx, op, name); err != nil {
		return nil, err
	}
	release, err := s.reserve(ctx, name)
	if err != nil {
		return nil, err
	}
	defer release()
	d, err := s.writeDraft(ctx, op, name, s.keyOf(name), lines)
	if err != nil {
		return nil, err
	}
	if of != nil {
		release, err := of.Pin(ctx)
		if err != nil {
			d.discard(ctx)
			return nil, err
		}
		defer release()
	}
	if err := publish(ctx, op, d)[0]; err != nil {
		d.discard(ctx)
		return nil, err
	}
	return s.handle(name, d.key, d.life), nil
}

// writeDraft writes the lines of a future log.
func (s *Store) writeDraft(ctx context.Context, op, name string, k key, lines iter.Seq2[[]byte, error]) (*draft, error) {
	d := s.draft(op, name, k)
	for line, err := range lines {
		if err != nil {
			err = &store.Error{Op: op, Name: name, Err: err}
		} else {
			err = d.add(ctx, line)
		}
		if err != nil {
			d.discard(ctx)
			return nil, err
		}
	}
	return d, nil
}

// reserve makes sure that there may be one log more, makes room if the options say how, and keeps
// others from creating one until release is called.
func (s *Store) reserve(ctx context.Context, name string) (release func(), err error) {
	const op = "create"
	if s.limits.Logs <= 0 {
		return func() {}, nil
	}
	if release, err = s.locks.lockGate(ctx, op, name, gateCreate, true); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	n, taken, err := s.count(ctx, op, name)
	if err == nil && !taken && n >= s.limits.Logs && s.makeRoom != nil {
		if err := s.makeRoom(ctx, s, n-s.limits.Logs+1); err != nil {
			return release, &store.Error{Op: op, Name: name, Err: fmt.Errorf("making room for another session: %w", err)}
		}
		n, taken, err = s.count(ctx, op, name)
	}
	if err != nil || taken { // ErrExist is the better answer
		return release, err
	}
	return release, store.MaxSessions.Check(op, name, int64(n)+1, int64(s.limits.Logs))
}

// count returns how many logs there are, and whether one has that name.
func (s *Store) count(ctx context.Context, op, name string) (n int, taken bool, err error) {
	err = s.read(ctx, op, name, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, s.sql(`SELECT count(*), coalesce(bool_or(log = $2), false) FROM coppice.logs
			WHERE tenant = $1 AND slot = 0`), s.tenant, s.keyOf(name).log).Scan(&n, &taken)
	})
	return n, taken, err
}

// Remove implements store.Store.
func (s *Store) Remove(ctx context.Context, name string) error { return s.remove(ctx, name, 0, -1) }

// RemoveAt implements store.Store.
func (s *Store) RemoveAt(ctx context.Context, name string, end store.Pos) error {
	if end < 0 {
		return &store.Error{Op: "remove", Name: name, Kind: store.ErrConflict}
	}
	return s.remove(ctx, name, 0, int64(end))
}

// remove puts a log into the trash, if it ends at a position that is not negative. If slot is 0,
// the removal gets a new one.
func (s *Store) remove(ctx context.Context, name string, slot, end int64) error {
	const op = "remove"
	if err := s.admitWrite(ctx, op, name); err != nil {
		return err
	}
	k, given := s.keyOf(name), slot != 0
	var was head // which was ours to remove, if it is in the trash later
	err := s.write(ctx, op, name, func(ctx context.Context) error {
		h, err := s.head(ctx, s.pool, k, "")
		if errors.Is(err, pgx.ErrNoRows) {
			// Unless it was us, and the answer got lost.
			if now, err := s.head(ctx, s.pool, key{k.log, slot}, ""); err == nil && now.life == was.life {
				return nil
			}
			return absent(op, name, err)
		}
		if err != nil {
			return err
		}
		if slot == 0 {
			now, err := s.now(ctx)
			if err != nil {
				return err
			}
			slot = now.UnixNano()
		}
		was = h
		if end >= 0 && h.tail != end {
			return &store.Error{Op: op, Name: name, Offset: end, At: true, Kind: store.ErrConflict}
		}
		tag, err := s.pool.Exec(ctx, s.sql(`UPDATE coppice.logs SET slot = $4, marked = true
			WHERE tenant = $1 AND log = $2 AND slot = 0 AND life = $3 AND (tail = $5 OR $5 < 0)`), s.tenant, k.log, h.life, slot, end)
		switch {
		case unique(err) && given:
			return &store.Error{Op: op, Name: name, Kind: store.ErrExist}
		case unique(err): // two removals in one nanosecond
			slot++
			return errMoved
		case err == nil && tag.RowsAffected() == 0:
			return errMoved
		}
		return err
	})
	if err == nil {
		s.hub.changed(k)
	}
	return err
}
