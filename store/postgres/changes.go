package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/store"
)

// Index is the reader whose marks a store keeps: the one index that belongs to it. Every other
// reader has to look at all logs.
//
// A mark is a column of the log's row, which every statement that changes the log also sets.
// So a mark and the change that it is of are committed together, and no reader has to know in
// which order others commit, or what their clocks show.
const Index = "index"

// Changes implements store.Store.
func (s *Store) Changes(ctx context.Context, reader string) (store.Changes, error) {
	const op = "list changes"
	if err := s.ready(ctx, op, ""); err != nil || reader != Index || s.trashed {
		return store.Changes{}, err
	}
	c := store.Changes{Epoch: s.schema}
	err := s.read(ctx, op, "", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, s.sql(`SELECT DISTINCT name FROM coppice.logs WHERE tenant = $1 AND marked`), s.tenant)
		if err == nil {
			c.Names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	// A log that was created or removed is marked. So the listing is explained by the marks.
	slices.Sort(c.Names)
	sum := sha256.New()
	for _, name := range c.Names {
		sum.Write([]byte(name + "\x00"))
	}
	c.Listing = hex.EncodeToString(sum.Sum(nil)[:8])
	return c, err
}

// Settle implements store.Store. A statement that is changing the log has its row locked; when
// it is done, the conditions are looked at again. It does not wait for the disk: if the server
// crashes, the log may be marked again, and is looked at once more.
func (s *Store) Settle(ctx context.Context, reader, name string, was *store.Stat) error {
	const op = "settle"
	if err := s.admit(ctx, op, name); err != nil || reader != Index || s.trashed {
		return err
	}
	k := s.keyOf(name)
	return s.write(ctx, op, name, func(ctx context.Context) (err error) {
		if was == nil {
			_, err = s.pool.Exec(ctx, s.sql(`UPDATE coppice.logs SET marked = false WHERE tenant = $1 AND log = $2 AND slot > 0 AND marked AND `+unsynced+`
				AND NOT EXISTS (SELECT FROM coppice.logs WHERE tenant = $1 AND log = $2 AND slot = 0)`), s.tenant, k.log)
			return err
		}
		_, err = s.pool.Exec(ctx, s.sql(`UPDATE coppice.logs l SET marked = false
			WHERE tenant = $1 AND log = $2 AND marked AND `+unsynced+` AND (slot > 0 OR tail = $3 AND modified = $4) AND EXISTS (
				SELECT FROM coppice.logs WHERE tenant = $1 AND log = $2 AND slot = 0 AND tail = $3 AND modified = $4)`), s.tenant, k.log, was.Size, was.Modified)
		return err
	})
}

// unsynced is a condition that always holds. With it a statement does not wait for the disk.
const unsynced = `(SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL`
