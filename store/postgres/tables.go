package postgres

import (
	"context"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/store"
)

// tables is the backend that keeps blobs in the database, a row for each part of them.
type tables struct{ store *Store }

// blobPart is how many bytes of a blob a row has.
const blobPart = 1 << 20

func (tables) String() string { return "the " + InDatabase }
func (tables) close()         {}

func (t tables) put(ctx context.Context, op string, ref store.Ref, data []byte) error {
	s, sum := t.store, digest(ref)
	return s.write(ctx, op, "", func(ctx context.Context) error {
		var size int64
		err := s.pool.QueryRow(ctx, s.sql(`SELECT coalesce(sum(octet_length(data)), -1) FROM coppice.blobs WHERE tenant = $1 AND ref = $2`), s.tenant, sum).Scan(&size)
		if err != nil || size == int64(len(data)) {
			return err
		}
		statements := new(pgx.Batch)
		if size >= 0 { // someone has broken it
			statements.Queue(s.sql(`DELETE FROM coppice.blobs WHERE tenant = $1 AND ref = $2`), s.tenant, sum)
		}
		for part := 0; part == 0 || part*blobPart < len(data); part++ {
			statements.Queue(s.sql(`INSERT INTO coppice.blobs (tenant, ref, part, size, data) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`),
				s.tenant, sum, part, len(data), data[part*blobPart:min((part+1)*blobPart, len(data))])
		}
		return s.pool.SendBatch(ctx, statements).Close()
	})
}

func (t tables) get(ctx context.Context, op string, ref store.Ref) ([]byte, error) {
	s := t.store
	var parts [][]byte
	err := s.read(ctx, op, "", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, s.sql(`SELECT data FROM coppice.blobs WHERE tenant = $1 AND ref = $2 ORDER BY part`), s.tenant, digest(ref))
		if err == nil {
			parts, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
		}
		return err
	})
	if err == nil && len(parts) == 0 {
		err = store.ErrNotExist
	}
	return slices.Concat(parts...), err
}

// list yields the blobs page by page.
func (t tables) list(ctx context.Context, op string) iter.Seq2[blob, error] {
	s, last := t.store, []byte{}
	return func(yield func(blob, error) bool) {
		for {
			var page []blob
			err := s.read(ctx, op, "", func(ctx context.Context) error {
				rows, err := s.pool.Query(ctx, s.sql(`SELECT ref, size FROM coppice.blobs
					WHERE tenant = $1 AND part = 0 AND ref > $2 ORDER BY ref LIMIT $3`), s.tenant, last, listed)
				if err != nil {
					return err
				}
				page, err = pgx.CollectRows(rows, func(in pgx.CollectableRow) (blob, error) {
					var sum []byte
					var size int64
					err := in.Scan(&sum, &size)
					return blob{refOf(sum), size}, err
				})
				return err
			})
			if err != nil {
				yield(blob{}, err)
				return
			}
			for _, found := range page {
				if !yield(found, nil) {
					return
				}
			}
			if len(page) < listed {
				return
			}
			last = digest(page[len(page)-1].ref)
		}
	}
}

func (t tables) delete(ctx context.Context, op string, ref store.Ref) (deleted bool, err error) {
	s := t.store
	err = s.write(ctx, op, "", func(ctx context.Context) error {
		tag, err := s.pool.Exec(ctx, s.sql(`DELETE FROM coppice.blobs WHERE tenant = $1 AND ref = $2`), s.tenant, digest(ref))
		deleted = deleted || tag.RowsAffected() > 0
		return err
	})
	return deleted, err
}
