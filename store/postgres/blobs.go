package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/store"
)

type blobs struct{ store *Store }

// Blobs implements store.Store.
func (s *Store) Blobs() store.Blobs { return &blobs{s} }

// blobPart is how many bytes of a blob a row has.
const blobPart = 1 << 20

// holds are those of one program, which share a lock. One that is in use for long would keep
// the server from tidying up, so after a while the next hold begins a new one.
type holds struct {
	taking gate.Mutex // held while a lock is being taken

	mu  sync.Mutex
	now *hold // which the next holder joins; nil if there is none
}

type hold struct {
	holders int
	since   time.Time
	release func()
}

const holdTime = 10 * time.Second

// join counts one holder more of the present lock, and reports whether there is one.
func (h *holds) join() *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil || time.Since(h.now.since) > holdTime {
		return nil
	}
	h.now.holders++
	return h.now
}

// begin makes a lock the present one.
func (h *holds) begin(release func()) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = &hold{holders: 1, since: time.Now(), release: release}
	return h.now
}

// leave counts one holder less.
func (h *holds) leave(held *hold) {
	h.mu.Lock()
	held.holders--
	last := held.holders == 0
	if last && h.now == held {
		h.now = nil
	}
	h.mu.Unlock()
	if last {
		held.release()
	}
}

// Hold implements store.Blobs.
func (b *blobs) Hold(ctx context.Context) (func(), error) {
	const op = "protect blobs"
	s := b.store
	if err := s.ready(ctx, op, ""); err != nil {
		return nil, err
	}
	h := s.holds
	held := h.join()
	if held == nil {
		if err := h.taking.LockContext(ctx); err != nil {
			return nil, &store.Error{Op: op, Err: err}
		}
		defer h.taking.Unlock()
		if held = h.join(); held == nil {
			release, err := s.locks.take(ctx, op, "", gateBlobs, false)
			if err != nil {
				return nil, err
			}
			held = h.begin(release)
		}
	}
	return sync.OnceFunc(func() { h.leave(held) }), nil
}

// Put implements store.Blobs.
func (b *blobs) Put(ctx context.Context, data []byte) (store.Ref, error) {
	const op = "put blob"
	s, ref := b.store, store.RefOf(data)
	sum := digest(ref)
	err := s.write(ctx, op, "", func(ctx context.Context) error {
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
	if err != nil {
		return "", err
	}
	return ref, nil
}

// Get implements store.Blobs.
func (b *blobs) Get(ctx context.Context, ref store.Ref) ([]byte, error) {
	const op = "get blob"
	s, sum := b.store, digest(ref)
	if sum == nil {
		return nil, &store.Error{Op: op, Kind: store.ErrInvalid, Err: fmt.Errorf("malformed reference %.80q", ref)}
	}
	var parts [][]byte
	err := s.read(ctx, op, "", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, s.sql(`SELECT data FROM coppice.blobs WHERE tenant = $1 AND ref = $2 ORDER BY part`), s.tenant, sum)
		if err == nil {
			parts, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
		}
		return err
	})
	data := slices.Concat(parts...)
	switch {
	case err != nil:
		return nil, err
	case len(parts) == 0:
		return nil, &store.Error{Op: op, Kind: store.ErrNotExist, Err: fmt.Errorf("no blob %s", ref)}
	case store.RefOf(data) != ref:
		return nil, &store.Error{Op: op, Kind: store.ErrCorrupt, Err: fmt.Errorf("the content of %s is another", ref)}
	}
	return data, nil
}

// All implements store.Blobs.
func (b *blobs) All(ctx context.Context) iter.Seq2[store.Ref, error] {
	return func(yield func(store.Ref, error) bool) {
		for p, err := range b.each(ctx, "list blobs", "") {
			if !yield(store.Ref(p.Name), err) {
				return
			}
		}
	}
}

// each yields the blobs for which a condition holds, sorted, page by page.
func (b *blobs) each(ctx context.Context, op, condition string) iter.Seq2[store.Part, error] {
	s, last := b.store, []byte{}
	statement := s.sql(`SELECT ref, size FROM coppice.blobs b WHERE tenant = $1 AND part = 0 AND ref > $2 ` + condition + ` ORDER BY ref LIMIT $3`)
	type blob struct {
		Ref  []byte
		Size int64
	}
	return func(yield func(store.Part, error) bool) {
		for {
			var page []blob
			err := s.read(ctx, op, "", func(ctx context.Context) error {
				rows, err := s.pool.Query(ctx, statement, s.tenant, last, listed)
				if err == nil {
					page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[blob])
				}
				return err
			})
			if err != nil {
				yield(store.Part{}, err)
				return
			}
			for _, found := range page {
				if !yield(parts{s}.blob(refOf(found.Ref), found.Size), nil) {
					return
				}
			}
			if len(page) < listed {
				return
			}
			last = page[len(page)-1].Ref
		}
	}
}

// Unreferenced implements store.Blobs.
func (b *blobs) Unreferenced(ctx context.Context) ([]store.Part, error) {
	const op = "look for references"
	var all []store.Part
	for p, err := range b.each(ctx, op, `AND NOT EXISTS (SELECT FROM coppice.refs r WHERE r.tenant = b.tenant AND r.ref = b.ref)`) {
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, nil
	}
	named, err := b.inNotes(ctx, op)
	return slices.DeleteFunc(all, func(p store.Part) bool { return named[store.Ref(p.Name)] != nil }), err
}

// inNotes returns the notes that name each blob.
func (b *blobs) inNotes(ctx context.Context, op string) (map[store.Ref][]store.Part, error) {
	named := make(map[store.Ref][]store.Part)
	for n, err := range (parts{b.store}).notes(ctx, op) {
		if err != nil {
			return nil, err
		}
		if n.part.Name == store.PendingNote {
			continue
		}
		store.EachRef(n.data, func(ref store.Ref) {
			if !slices.Contains(named[ref], n.part) {
				named[ref] = append(named[ref], n.part)
			}
		})
	}
	return named, nil
}

// Collect implements store.Blobs.
func (b *blobs) Collect(ctx context.Context, refs ...store.Ref) (*store.Collected, error) {
	const op = "remove blobs"
	s, done := b.store, &store.Collected{Named: make(map[store.Ref][]store.Part)}
	release, err := s.locks.take(ctx, op, "", gateBlobs, true)
	if err != nil {
		if errors.Is(err, store.ErrLocked) {
			err = &store.Error{Op: op, Kind: store.ErrLocked, Err: fmt.Errorf("blobs are still in use after %v", lockTimeout), Hint: "try again later"}
		}
		return done, err
	}
	defer release()
	inNotes, err := b.inNotes(ctx, op)
	if err != nil {
		return done, err
	}
	seen := make(map[store.Ref]bool)
	for _, ref := range refs {
		sum := digest(ref)
		if sum == nil || seen[ref] {
			continue
		}
		seen[ref] = true
		named, err := parts{s}.naming(ctx, op, sum)
		if err != nil {
			return done, err
		}
		if named = append(named, inNotes[ref]...); len(named) > 0 {
			done.Named[ref] = named
			continue
		}
		deleted, err := b.delete(ctx, op, sum)
		if err != nil {
			return done, err
		}
		if deleted {
			done.Deleted = append(done.Deleted, ref)
		}
	}
	return done, nil
}

// delete deletes a blob and reports whether there was one.
func (b *blobs) delete(ctx context.Context, op string, sum []byte) (deleted bool, err error) {
	s := b.store
	err = s.write(ctx, op, "", func(ctx context.Context) error {
		tag, err := s.pool.Exec(ctx, s.sql(`DELETE FROM coppice.blobs WHERE tenant = $1 AND ref = $2`), s.tenant, sum)
		deleted = deleted || tag.RowsAffected() > 0
		return err
	})
	return deleted, err
}
