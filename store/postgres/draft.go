package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/store"
)

// draft is the lines of a log that does not exist yet, or of a log that is being rewritten.
// They are kept here as long as they are few. Otherwise they are written under the life that
// the log will have. The row in the table of drafts says that no log has it yet; when the
// writer dies, that row is what is left to find them by.
type draft struct {
	store *Store
	op    string
	name  string
	key   key
	life  int64

	tail    int64 // where the next line begins
	begun   bool  // some of it is in the database
	pending rows
	copied  [][]byte // the blobs that copied lines name
}

// rows are lines to be inserted.
type rows struct {
	pos   []int64
	lines [][]byte
	bytes int
}

// draftSize is how many bytes a draft keeps in memory, and sends at a time.
const draftSize = 4 << 20

func (s *Store) draft(op, name string, k key) *draft {
	return &draft{store: s, op: op, name: name, key: k, life: number()}
}

// add adds a line, which it copies.
func (d *draft) add(ctx context.Context, line []byte) error {
	if err := d.store.ready(ctx, d.op, d.name); err != nil {
		return err
	}
	if err := d.store.checkLine(d.op, d.name, line); err != nil {
		return err
	}
	p := &d.pending
	p.pos = append(p.pos, d.tail)
	p.lines = append(p.lines, append([]byte{}, line...))
	p.bytes += len(line) + 64
	d.tail += int64(len(line)) + 1
	if err := store.MaxSession.Check(d.op, d.name, d.tail, d.store.limits.Log); err != nil {
		return err
	}
	if p.bytes < draftSize {
		return nil
	}
	return d.flush(ctx)
}

const (
	insertDraft = `INSERT INTO coppice.drafts (tenant, log, life, name, touched) VALUES ($1, $2, $3, $4, now())
		ON CONFLICT (tenant, log, life) DO UPDATE SET touched = now()`
	insertLines = `INSERT INTO coppice.lines (tenant, log, life, pos, data)
		SELECT $1, $2, $3, l.pos, l.data FROM unnest($4::bigint[], $5::bytea[]) l (pos, data) ON CONFLICT DO NOTHING`
	insertRefs = `INSERT INTO coppice.refs (tenant, log, life, ref)
		SELECT $1, $2, $3, r FROM unnest($4::bytea[]) r ON CONFLICT DO NOTHING`
)

// flush writes what is pending.
func (d *draft) flush(ctx context.Context) error {
	s, p := d.store, &d.pending
	err := s.write(ctx, d.op, d.name, func(ctx context.Context) error {
		b := new(pgx.Batch)
		b.Queue(s.sql(insertDraft), s.tenant, d.key.log, d.life, d.name)
		d.queue(b)
		return s.pool.SendBatch(ctx, b).Close()
	})
	d.begun = true
	*p = rows{}
	return err
}

// queue adds the statements that write what is pending.
func (d *draft) queue(b *pgx.Batch) {
	s, p := d.store, &d.pending
	if len(p.lines) == 0 {
		return
	}
	b.Queue(s.sql(insertLines), s.tenant, d.key.log, d.life, p.pos, p.lines)
	if refs := refsIn(p.lines); len(refs) > 0 {
		b.Queue(s.sql(insertRefs), s.tenant, d.key.log, d.life, refs)
	}
}

// addUnchanged adds a line that is the same, at the same position, in another life of the log. The
// lines so added are written by copyUnchanged.
func (d *draft) addUnchanged(line store.Line) {
	d.copied = append(d.copied, refsIn([][]byte{line.Data})...)
	d.tail = int64(line.Next)
}

// copyUnchanged copies the lines that addUnchanged has added.
func (d *draft) copyUnchanged(ctx context.Context, life int64) error {
	return d.copyLines(ctx, life, 0, d.tail, 0)
}

// copyCut adds a line that is too long to be read. The blobs that it names are not known, so
// all that the log names stay.
func (d *draft) copyCut(ctx context.Context, life int64, line store.Line) error {
	if err := d.flush(ctx); err != nil {
		return err
	}
	shift := d.tail - int64(line.Pos)
	d.tail += int64(line.Next - line.Pos)
	if err := d.copyLines(ctx, life, int64(line.Pos), int64(line.Next), shift); err != nil {
		return err
	}
	s := d.store
	return s.write(ctx, d.op, d.name, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, s.sql(`INSERT INTO coppice.refs (tenant, log, life, ref)
			SELECT tenant, log, $3, ref FROM coppice.refs WHERE tenant = $1 AND log = $2 AND life = $4 ON CONFLICT DO NOTHING`), s.tenant, d.key.log, d.life, life)
		return err
	})
}

// copyLines copies the lines between two positions of another life.
func (d *draft) copyLines(ctx context.Context, life, from, to, shift int64) error {
	s := d.store
	err := s.write(ctx, d.op, d.name, func(ctx context.Context) error {
		b := new(pgx.Batch)
		b.Queue(s.sql(insertDraft), s.tenant, d.key.log, d.life, d.name)
		b.Queue(s.sql(`INSERT INTO coppice.lines (tenant, log, life, pos, data)
			SELECT tenant, log, $3, pos + $7, data FROM coppice.lines
			WHERE tenant = $1 AND log = $2 AND life = $4 AND pos >= $5 AND pos < $6 ON CONFLICT DO NOTHING`), s.tenant, d.key.log, d.life, life, from, to, shift)
		if len(d.copied) > 0 {
			b.Queue(s.sql(insertRefs), s.tenant, d.key.log, d.life, d.copied)
		}
		return s.pool.SendBatch(ctx, b).Close()
	})
	d.begun, d.copied = true, nil
	return err
}

// insertLog makes a draft a log: its row, the lines that are pending, and the blobs that they
// name. If there is a log of that name, it does nothing.
const insertLog = `WITH head AS (
		INSERT INTO coppice.logs (tenant, log, slot, name, life, tail, modified, marked)
		VALUES ($1, $2, $9, $3, $4, $5, now(), true) ON CONFLICT DO NOTHING RETURNING life
	), added AS (
		INSERT INTO coppice.lines (tenant, log, life, pos, data)
		SELECT $1, $2, head.life, l.pos, l.data FROM head, unnest($6::bigint[], $7::bytea[]) l (pos, data)
	), named AS (
		INSERT INTO coppice.refs (tenant, log, life, ref)
		SELECT $1, $2, head.life, r FROM head, unnest($8::bytea[]) r ON CONFLICT DO NOTHING
	), settled AS (
		DELETE FROM coppice.drafts d USING head WHERE d.tenant = $1 AND d.log = $2 AND d.life = head.life
	) SELECT count(*) FROM head`

// publish makes drafts of one store logs, together, and returns an error for each, or nil if
// there is none. A name that is taken fails only its own draft.
func publish(ctx context.Context, op string, drafts ...*draft) []error {
	s, errs := drafts[0].store, make([]error, len(drafts))
	made := make([]int, len(drafts))
	err := s.write(ctx, op, drafts[0].name, func(ctx context.Context) error {
		b := new(pgx.Batch)
		for _, d := range drafts {
			p := d.pending
			b.Queue(s.sql(insertLog), s.tenant, d.key.log, d.name, d.life, d.tail, p.pos, p.lines, refsIn(p.lines), d.key.slot)
		}
		results := s.pool.SendBatch(ctx, b)
		defer results.Close()
		for i := range drafts {
			if err := results.QueryRow().Scan(&made[i]); err != nil {
				return err
			}
		}
		return results.Close()
	})
	for i, d := range drafts {
		errs[i] = err
		if err == nil && made[i] == 0 {
			errs[i] = d.exists(ctx)
		}
		if errs[i] == nil {
			s.hub.changed(d.key)
		}
	}
	return errs
}

// exists returns ErrExist, unless the log is what the draft was to become: then the answer to
// the statement that made it was lost.
func (d *draft) exists(ctx context.Context) error {
	s := d.store
	return s.read(context.WithoutCancel(ctx), d.op, d.name, func(ctx context.Context) error {
		h, err := s.head(ctx, s.pool, d.key, "")
		if err == nil && h.life != d.life || errors.Is(err, pgx.ErrNoRows) { // or was removed since
			return &store.Error{Op: d.op, Name: d.name, Kind: store.ErrExist}
		}
		return err
	})
}

// discard deletes the rows of the draft. Rows that cannot be deleted now are found later:
// see Parts.
func (d *draft) discard(ctx context.Context) {
	s := d.store
	if !d.begun || errors.Is(s.ready(context.WithoutCancel(ctx), d.op, d.name), store.ErrClosed) {
		return
	}
	_ = s.write(context.WithoutCancel(ctx), d.op, d.name, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.deleteLife(ctx, tx, d.key.log, d.life) })
	})
}
