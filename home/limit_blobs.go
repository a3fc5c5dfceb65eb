package home

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// viewBlobs are the blobs that sessions of a view refer to, and those that were put through
// it. Every line that is read through the view is inspected, and its index reads all of them:
// a blob that no line has named does not exist here.
type viewBlobs struct {
	view *view
	real store.Blobs

	mu     sync.Mutex                        // guards what follows
	owners map[store.Ref]map[string]struct{} // the logs that name a blob
	put    map[store.Ref]struct{}
}

func newViewBlobs(v *view) *viewBlobs {
	return &viewBlobs{view: v, real: v.real.Blobs(), owners: make(map[store.Ref]map[string]struct{}), put: make(map[store.Ref]struct{})}
}

// refsOf returns the blobs that an entry has its content in. A text that only mentions the
// name of a blob does not refer to it: otherwise a caller could read any blob that it can
// name.
func refsOf(line []byte) (refs []store.Ref) {
	if !bytes.Contains(line, []byte("sha256")) && !bytes.Contains(line, []byte(`\u00`)) {
		return nil
	}
	var e session.Entry
	if e.UnmarshalJSON(line) != nil {
		return nil
	}
	e.FillFrom(func(ref store.Ref) ([]byte, error) {
		refs = append(refs, ref)
		return nil, store.ErrNotExist
	})
	return refs
}

// note remembers what a line of a log refers to.
func (b *viewBlobs) note(name string, line []byte) {
	refs := refsOf(line)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ref := range refs {
		if b.owners[ref] == nil {
			b.owners[ref] = make(map[string]struct{})
		}
		b.owners[ref][name] = struct{}{}
	}
}

// named is note for a line that is to be written. It may refer only to blobs that the view
// has already.
func (b *viewBlobs) named(ctx context.Context, name string, line []byte) error {
	for _, ref := range refsOf(line) {
		if err := b.check(ctx, ref); err != nil {
			return err
		}
	}
	b.note(name, line)
	return nil
}

// check returns an error unless the view has the blob.
func (b *viewBlobs) check(ctx context.Context, ref store.Ref) error {
	here, noted, err := b.isHere(ctx, ref)
	if err == nil && !noted {
		// This is never within the index itself, which has read the line that names the blob.
		if _, err = b.view.part.index(ctx); err == nil {
			here, _, err = b.isHere(ctx, ref)
		}
	}
	if err == nil && !here {
		err = missing("read blob", string(ref))
	}
	return err
}

// isHere reports whether the view has a blob, and whether a line that was read names it.
func (b *viewBlobs) isHere(ctx context.Context, ref store.Ref) (here, noted bool, err error) {
	b.mu.Lock()
	_, here = b.put[ref]
	names := slices.Collect(maps.Keys(b.owners[ref]))
	b.mu.Unlock()
	for _, name := range names {
		if here || err != nil {
			break
		}
		if here = b.view.trash.isKnown(name); !here {
			here, err = b.view.isInside(ctx, name)
		}
	}
	return here, here || len(names) > 0, err
}

// Hold implements store.Blobs.
func (b *viewBlobs) Hold(ctx context.Context) (func(), error) { return b.real.Hold(ctx) }

// Put implements store.Blobs.
func (b *viewBlobs) Put(ctx context.Context, data []byte) (store.Ref, error) {
	ref, err := b.real.Put(ctx, data)
	if err == nil {
		b.mu.Lock()
		b.put[ref] = struct{}{}
		b.mu.Unlock()
	}
	return ref, err
}

// Get implements store.Blobs.
func (b *viewBlobs) Get(ctx context.Context, ref store.Ref) ([]byte, error) {
	if _, ok := ref.Hex(); ok {
		if err := b.check(ctx, ref); err != nil {
			return nil, err
		}
	}
	return b.real.Get(ctx, ref)
}

// All implements store.Blobs.
func (b *viewBlobs) All(ctx context.Context) iter.Seq2[store.Ref, error] {
	return func(yield func(store.Ref, error) bool) {
		_, err := b.view.part.index(ctx)
		b.mu.Lock()
		refs := slices.Collect(maps.Keys(b.owners))
		b.mu.Unlock()
		for _, ref := range refs {
			here := false
			if err == nil {
				here, _, err = b.isHere(ctx, ref)
			}
			if err != nil {
				yield("", err)
				return
			}
			if here && !yield(ref, nil) {
				return
			}
		}
	}
}

// Unreferenced implements store.Blobs. Only the whole home can tell.
func (b *viewBlobs) Unreferenced(context.Context) ([]store.Part, error) {
	return nil, b.view.part.refuse("list blobs")
}

// Collect implements store.Blobs.
func (b *viewBlobs) Collect(context.Context, ...store.Ref) (*store.Collected, error) {
	return &store.Collected{}, b.view.part.refuse("delete blobs")
}
