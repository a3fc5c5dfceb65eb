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

func (b *blobs) Unreferenced(ctx context.Context) ([]store.Part, error) {
	s := b.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.ready(ctx, "look for references", ""); err != nil {
		return nil, err
	}
	named := b.named()
	var all []store.Part
	for _, ref := range slices.Sorted(maps.Keys(s.blobs)) {
		if named[ref] == nil {
			all = append(all, parts{s}.blob(ref))
		}
	}
	return all, nil
}

// named returns what names each blob. The caller holds the store's mutex.
func (b *blobs) named() map[store.Ref][]store.Part {
	s, named := b.store, make(map[store.Ref][]store.Part)
	note := func(p store.Part, text []byte) {
		store.EachRef(text, func(ref store.Ref) {
			if !slices.Contains(named[ref], p) {
				named[ref] = append(named[ref], p)
			}
		})
	}
	for name, c := range s.logs {
		c.eachLine(func(line []byte) { note(parts{s}.log(store.PartLog, name, name, c), line) })
	}
	for id, item := range s.trash {
		item.content.eachLine(func(line []byte) { note(parts{s}.log(store.PartCopy, item.Name, id, item.content), line) })
	}
	for name, n := range s.notes {
		if name != store.PendingNote {
			note(parts{s}.note(name, n), n.data)
		}
	}
	return named
}

func (b *blobs) Collect(ctx context.Context, refs ...store.Ref) (*store.Collected, error) {
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
			return deleted, &store.Error{Op: op, Err: ctx.Err()}
		case <-timeout:
			return deleted, &store.Error{Op: op, Kind: store.ErrLocked, Err: fmt.Errorf("blobs are still in use after %v", holdWait), Hint: "try again later"}
		}
	}
}

// collect deletes, or returns what to wait for.
func (b *blobs) collect(ctx context.Context, refs []store.Ref) (done *store.Collected, wait <-chan struct{}, err error) {
	s, done := b.store, &store.Collected{Named: make(map[store.Ref][]store.Part)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx, "remove blobs", ""); err != nil {
		return done, nil, err
	}
	if s.holds > 0 {
		if s.freed == nil {
			s.freed = make(chan struct{})
		}
		return done, s.freed, nil
	}
	named := b.named()
	for _, ref := range refs {
		_, there := s.blobs[ref]
		switch {
		case named[ref] != nil:
			done.Named[ref] = named[ref]
		case there:
			delete(s.blobs, ref)
			done.Deleted = append(done.Deleted, ref)
		}
	}
	return done, nil, nil
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
