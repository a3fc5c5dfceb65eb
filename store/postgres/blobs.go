package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/store"
)

type blobs struct{ store *Store }

// Blobs implements store.Store.
func (s *Store) Blobs() store.Blobs { return &blobs{s} }

// holds are the holds of one program, which share a lock. A lock that is held for long would keep
// the server from vacuuming, so after a while the next hold takes a new one.
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

// rejoin is join for what a holder does that may last longer than its hold. The lock may be an old
// one: it began before.
func (h *holds) rejoin() *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now != nil {
		h.now.holders++
	}
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
			release, err := s.locks.lockGate(ctx, op, "", gateBlobs, false)
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
	backends, err := b.store.blobBackends(ctx, op, false)
	if err != nil {
		return "", err
	}
	ref := store.RefOf(data)
	if err := backends[0].put(ctx, op, ref, data); err != nil {
		return "", err
	}
	return ref, nil
}

// Get implements store.Blobs.
func (b *blobs) Get(ctx context.Context, ref store.Ref) ([]byte, error) {
	const op = "get blob"
	if digest(ref) == nil {
		return nil, &store.Error{Op: op, Kind: store.ErrInvalid, Err: fmt.Errorf("malformed reference %.80q", ref)}
	}
	data, err := b.find(ctx, op, ref, false)
	if errors.Is(err, store.ErrNotExist) { // or in a backend that this program does not know yet
		data, err = b.find(ctx, op, ref, true)
	}
	return data, err
}

// find returns the content of a blob from the first backend that has it undamaged.
func (b *blobs) find(ctx context.Context, op string, ref store.Ref, again bool) ([]byte, error) {
	backends, err := b.store.blobBackends(ctx, op, again)
	if err != nil {
		return nil, err
	}
	failed := error(&store.Error{Op: op, Kind: store.ErrNotExist, Err: fmt.Errorf("no blob %s in %s", ref, joinNames(backends))})
	for _, d := range backends {
		data, err := d.get(ctx, op, ref)
		switch {
		case err == nil && store.RefOf(data) == ref:
			return data, nil
		case errors.Is(err, store.ErrCorrupt), err == nil:
			failed = &store.Error{Op: op, Kind: store.ErrCorrupt, Err: fmt.Errorf("the content of %s in %s is another", ref, d)}
		case !errors.Is(err, store.ErrNotExist):
			return nil, err
		}
	}
	return nil, failed
}

// All implements store.Blobs.
func (b *blobs) All(ctx context.Context) iter.Seq2[store.Ref, error] {
	return func(yield func(store.Ref, error) bool) {
		for p, err := range b.each(ctx, "list blobs") {
			if !yield(store.Ref(p.Name), err) {
				return
			}
		}
	}
}

// each yields the blobs of all backends, each once.
func (b *blobs) each(ctx context.Context, op string) iter.Seq2[store.Part, error] {
	return func(yield func(store.Part, error) bool) {
		backends, err := b.store.blobBackends(ctx, op, true)
		if err != nil {
			yield(store.Part{}, err)
			return
		}
		seen := make(map[store.Ref]bool)
		for i, d := range backends {
			for found, err := range d.list(ctx, op) {
				if err != nil {
					yield(store.Part{}, err)
					return
				}
				if seen[found.ref] {
					continue
				}
				if i < len(backends)-1 {
					seen[found.ref] = true
				}
				if !yield(parts{b.store}.blob(found.ref, found.size), nil) {
					return
				}
			}
		}
	}
}

// Unreferenced implements store.Blobs.
func (b *blobs) Unreferenced(ctx context.Context) ([]store.Part, error) {
	const op = "look for references"
	var all, page []store.Part
	for p, err := range b.each(ctx, op) {
		if err != nil {
			return nil, err
		}
		if page = append(page, p); len(page) == listed {
			if page, err = b.notInLogs(ctx, op, page); err != nil {
				return nil, err
			}
			all, page = append(all, page...), nil
		}
	}
	page, err := b.notInLogs(ctx, op, page)
	if all = append(all, page...); err != nil || len(all) == 0 {
		return nil, err
	}
	named, err := b.inNotes(ctx, op)
	all = slices.DeleteFunc(all, func(p store.Part) bool { return named[store.Ref(p.Name)] != nil })
	slices.SortFunc(all, func(a, b store.Part) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// notInLogs returns those blobs that no log, copy or draft names.
func (b *blobs) notInLogs(ctx context.Context, op string, page []store.Part) ([]store.Part, error) {
	s, sums := b.store, make([][]byte, 0, len(page))
	for _, p := range page {
		sums = append(sums, digest(store.Ref(p.Name)))
	}
	named := make(map[store.Ref]bool)
	err := s.read(ctx, op, "", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, s.sql(`SELECT DISTINCT ref FROM coppice.refs WHERE tenant = $1 AND ref = ANY ($2)`), s.tenant, sums)
		if err != nil {
			return err
		}
		var sum []byte
		_, err = pgx.ForEachRow(rows, []any{&sum}, func() error { named[refOf(sum)] = true; return nil })
		return err
	})
	return slices.DeleteFunc(page, func(p store.Part) bool { return named[store.Ref(p.Name)] }), err
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

// exclusive is how long a deletion keeps others from holding blobs before they get a turn. The
// server ends a lock after idleTimeout, which is long after the deletion of one more blob.
const exclusive = time.Second

// Collect implements store.Blobs.
func (b *blobs) Collect(ctx context.Context, refs ...store.Ref) (*store.Collected, error) {
	const op = "remove blobs"
	done := &store.Collected{Named: make(map[store.Ref][]store.Part)}
	backends, err := b.store.blobBackends(ctx, op, true)
	if err != nil {
		return done, err
	}
	seen := make(map[store.Ref]bool)
	refs = slices.DeleteFunc(slices.Clone(refs), func(ref store.Ref) bool {
		again := seen[ref]
		seen[ref] = true
		return again || digest(ref) == nil
	})
	for first := true; first || len(refs) > 0; first = false {
		if refs, err = b.collectSome(ctx, op, backends, refs, done); err != nil {
			return done, err
		}
	}
	return done, nil
}

// collectSome deletes blobs that nothing names, as long as exclusive, and returns the rest.
func (b *blobs) collectSome(ctx context.Context, op string, backends []blobBackend, refs []store.Ref, done *store.Collected) ([]store.Ref, error) {
	s := b.store
	release, err := s.locks.lockGate(ctx, op, "", gateBlobs, true)
	if err != nil {
		if errors.Is(err, store.ErrLocked) {
			err = &store.Error{Op: op, Kind: store.ErrLocked, Err: fmt.Errorf("blobs are still in use after %v", lockTimeout), Hint: "try again later"}
		}
		return refs, err
	}
	defer release()
	inNotes, err := b.inNotes(ctx, op)
	if err != nil {
		return refs, err
	}
	for end := time.Now().Add(exclusive); len(refs) > 0 && time.Now().Before(end); refs = refs[1:] {
		ref := refs[0]
		named, err := parts{s}.naming(ctx, op, digest(ref))
		if err != nil {
			return refs, err
		}
		if named = append(named, inNotes[ref]...); len(named) > 0 {
			done.Named[ref] = named
			continue
		}
		deleted := false
		for _, d := range backends {
			was, err := d.delete(ctx, op, ref)
			if err != nil {
				return refs, err
			}
			deleted = deleted || was
		}
		if deleted {
			done.Deleted = append(done.Deleted, ref)
		}
	}
	return refs, nil
}
