package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/coppice-dev/coppice/store"
)

type blobs struct{ store *Store }

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

// refs is a copy, so that the one who lists may also put and get.
func (b *blobs) refs() []store.Ref {
	b.store.mu.RLock()
	defer b.store.mu.RUnlock()
	return slices.Collect(maps.Keys(b.store.blobs))
}
