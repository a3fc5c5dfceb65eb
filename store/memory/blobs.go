package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
)

type blobs struct{ store *Store }

// Hold counts. Blobs are deleted at once under the store's mutex, when there is no
// hold. So no hold can begin during a deletion, and a nested hold never waits.
func (b *blobs) Hold(ctx context.Context) (func(), error) {
	s := b.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx, "protect blobs", ""); err != nil {
		return nil, err
	}
	s.holds++
	return sync.OnceFunc(b.release), nil
}

func (b *blobs) release() {
	s := b.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds--; s.holds == 0 && s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

// holdWait is how long Collect waits for a moment without a hold.
const holdWait = 10 * time.Second

func (b *blobs) Collect(ctx context.Context, refs ...store.Ref) ([]store.Ref, error) {
	const op = "remove blobs"
	timeout := time.After(holdWait)
	for {
		deleted, wait, err := b.collect(ctx, refs)
		if wait == nil {
			return deleted, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, &store.Error{Op: op, Err: ctx.Err()}
		case <-timeout:
			return nil, &store.Error{Op: op, Kind: store.ErrLocked, Err: fmt.Errorf("blobs are still in use after %v", holdWait), Hint: "try again later"}
		}
	}
}

// collect deletes, or returns what to wait for.
func (b *blobs) collect(ctx context.Context, refs []store.Ref) (deleted []store.Ref, wait <-chan struct{}, err error) {
	s := b.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx, "remove blobs", ""); err != nil {
		return nil, nil, err
	}
	if s.holds > 0 {
		if s.freed == nil {
			s.freed = make(chan struct{})
		}
		return nil, s.freed, nil
	}
	named := make(map[store.Ref]bool)
	for _, c := range s.logs {
		c.eachLine(func(line []byte) { store.EachRef(line, func(ref store.Ref) { named[ref] = true }) })
	}
	for _, ref := range refs {
		if _, there := s.blobs[ref]; there && !named[ref] {
			delete(s.blobs, ref)
			deleted = append(deleted, ref)
		}
	}
	return deleted, nil, nil
}

func (b *blobs) Put(ctx context.Context, data []byte) (store.Ref, error) {
	ref := store.RefOf(data)
	s := b.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx, "put blob", ""); err != nil {
		return "", err
	}
	if _, ok := s.blobs[ref]; !ok {
		s.blobs[ref] = bytes.Clone(data)
	}
	return ref, nil
}

func (b *blobs) Get(ctx context.Context, ref store.Ref) ([]byte, error) {
	const op = "get blob"
	if _, ok := ref.Hex(); !ok {
		return nil, &store.Error{Op: op, Kind: store.ErrInvalid, Err: fmt.Errorf("malformed reference %.80q", ref)}
	}
	b.store.mu.RLock()
	defer b.store.mu.RUnlock()
	if err := b.store.ready(ctx, op, ""); err != nil {
		return nil, err
	}
	data, ok := b.store.blobs[ref]
	if !ok {
		return nil, &store.Error{Op: op, Kind: store.ErrNotExist, Err: fmt.Errorf("no blob %s", ref)}
	}
	return bytes.Clone(data), nil
}

func (b *blobs) All(ctx context.Context) iter.Seq2[store.Ref, error] {
	return func(yield func(store.Ref, error) bool) {
		if err := b.store.ready(ctx, "list blobs", ""); err != nil {
			yield("", err)
			return
		}
		for _, ref := range b.refs() {
			if !yield(ref, nil) {
				return
			}
		}
	}
}

// refs is a copy, so that the caller may put and get while listing.
func (b *blobs) refs() []store.Ref {
	b.store.mu.RLock()
	defer b.store.mu.RUnlock()
	return slices.Collect(maps.Keys(b.store.blobs))
}
