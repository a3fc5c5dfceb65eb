package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// trashed is a log that was removed.
type trashed struct {
	store.Trashed
	content *content
}

// trash is the store's trash.
type trash struct{ store *Store }

// Trash implements store.Store.
func (s *Store) Trash() store.Trash { return trash{s} }

// discard puts a log into the trash. The caller holds the store's mutex.
func (s *Store) discard(name string, c *content) {
	now := time.Now().UTC()
	for { // each removal has a time of its own
		id := name + "." + now.Format("20060102T150405.000000000Z")
		if _, taken := s.trash[id]; !taken {
			s.trash[id] = trashed{store.Trashed{ID: id, Name: name, Removed: now, Size: int64(c.end)}, c}
			return
		}
		now = now.Add(1)
	}
}

func (t trash) List(ctx context.Context) ([]store.Trashed, error) {
	if err := t.store.ready(ctx, "list trash", ""); err != nil {
		return nil, err
	}
	t.store.mu.RLock()
	defer t.store.mu.RUnlock()
	var all []store.Trashed
	for _, item := range t.store.trash {
		all = append(all, item.Trashed)
	}
	slices.SortFunc(all, func(a, b store.Trashed) int { return b.Removed.Compare(a.Removed) })
	return all, nil
}

func (t trash) Restore(ctx context.Context, id string) error {
	const op = "restore"
	if err := t.store.admit(ctx, op, id); err != nil {
		return err
	}
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	item, ok := t.store.trash[id]
	switch {
	case !ok && !strings.Contains(id, "."):
		return &store.Error{Op: op, Kind: store.ErrInvalid, Err: fmt.Errorf("%.80q does not name a removal", id)}
	case !ok:
		return &store.Error{Op: op, Kind: store.ErrNotExist, Err: fmt.Errorf("the trash has no %q", id)}
	case t.store.logs[item.Name] != nil:
		return &store.Error{Op: op, Name: item.Name, Kind: store.ErrExist}
	}
	delete(t.store.trash, id)
	t.store.logs[item.Name] = item.content.clone()
	return nil
}

func (t trash) Empty(ctx context.Context, before time.Time) ([]store.Trashed, error) {
	all, err := t.List(ctx)
	if err != nil {
		return nil, err
	}
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	var gone []store.Trashed
	for _, item := range all {
		if _, there := t.store.trash[item.ID]; there && item.Removed.Before(before) {
			delete(t.store.trash, item.ID)
			gone = append(gone, item)
		}
	}
	return gone, nil
}

// Read returns a copy: nothing that happens to the trash later can be seen in it.
func (t trash) Read() (store.Store, error) {
	t.store.mu.RLock()
	defer t.store.mu.RUnlock()
	if closed(t.store.done) {
		return nil, &store.Error{Op: "read trash", Kind: store.ErrClosed}
	}
	s := New(&Options{MaxLine: t.store.limits.Entry})
	s.blobs = maps.Clone(t.store.blobs)
	for id, item := range t.store.trash {
		s.logs[id] = item.content.clone()
	}
	return s, nil
}
