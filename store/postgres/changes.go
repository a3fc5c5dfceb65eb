package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/store"
)

// Index is the reader whose marks a store keeps: the one index that belongs to it. Every other
// reader has to look at all logs.
//
// A mark is a column of the log's row, which every statement that changes the log also sets.
// So a mark and the change that it is of are committed together, and no reader has to know in
// which order others commit, or what their clocks show. Nobody else writes to the tables, so
// there is no listing to compare.
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
	return c, err
}

// settleBatch is how many logs are settled in one round trip and one transaction.
const settleBatch = 500

// Settle implements store.Store. A statement that is changing a log has its row locked; when it
// is done, the conditions are looked at again. It does not wait for the disk: if the server
// crashes, logs may be marked again, and are looked at once more.
func (s *Store) Settle(ctx context.Context, reader string, seen map[string]*store.Stat) error {
	const op = "settle"
	if err := s.ready(ctx, op, ""); err != nil || reader != Index || s.trashed {
		return err
	}
	size := settleBatch
	if s.single {
		size = 1
	}
	// All settle in the same order, so that they do not wait for each other in a circle.
	for names := range slices.Chunk(slices.Sorted(maps.Keys(seen)), size) {
		if err := s.write(ctx, op, "", func(ctx context.Context) error {
			var all pgx.Batch
			for _, name := range names {
				if log, was := s.keyOf(name).log, seen[name]; was == nil {
					all.Queue(s.sql(settleGone), s.tenant, log)
				} else {
					all.Queue(s.sql(settleLog), s.tenant, log, was.Size, was.Modified)
				}
			}
			return s.pool.SendBatch(ctx, &all).Close()
		}); err != nil {
			return err
		}
	}
	return nil
}

const (
	settleLog = `UPDATE coppice.logs l SET marked = false
		WHERE tenant = $1 AND log = $2 AND marked AND ` + unsynced + ` AND (slot > 0 OR tail = $3 AND modified = $4) AND EXISTS (
			SELECT FROM coppice.logs WHERE tenant = $1 AND log = $2 AND slot = 0 AND tail = $3 AND modified = $4)`
	settleGone = `UPDATE coppice.logs SET marked = false WHERE tenant = $1 AND log = $2 AND slot > 0 AND marked AND ` + unsynced + `
		AND NOT EXISTS (SELECT FROM coppice.logs WHERE tenant = $1 AND log = $2 AND slot = 0)`
)

// unsynced is a condition that always holds. With it a statement does not wait for the disk.
const unsynced = `(SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL`
