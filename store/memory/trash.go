package memory

import (
	"context"
	"fmt"
	"iter"
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

// removedFormat is how a removal's ID ends: the log's name, a dot, and this.
const removedFormat = "20060102T150405.000000000Z"

// discard puts a log into the trash. The caller holds the store's mutex.
func (s *Store) discard(name, id string, c *content) {
	now := time.Now().UTC()
	if id != "" {
		_, now, _ = store.ParseRemoval(id)
		s.trash[id] = trashed{store.Trashed{ID: id, Name: name, Removed: now, Size: int64(c.end)}, c}
		return
	}
	for { // each removal has a time of its own
		id := name + "." + now.Format(removedFormat)
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

func (t trash) Add(ctx context.Context, id string, lines iter.Seq2[[]byte, error]) error {
	const op = "add to trash"
	name, removed, ok := store.ParseRemoval(id)
	if !ok {
		return &store.Error{Op: op, Kind: store.ErrInvalid, Err: fmt.Errorf("%.80q does not name a removal", id)}
	}
	if err := t.store.ready(ctx, op, name); err != nil {
		return err
	}
	c, err := t.store.gather(ctx, op, name, lines)
	if err != nil {
		return err
	}
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	if _, taken := t.store.trash[id]; taken {
		return &store.Error{Op: op, Name: name, Kind: store.ErrExist}
	}
	t.store.trash[id] = trashed{store.Trashed{ID: id, Name: name, Removed: removed, Size: int64(c.end)}, c}
	return nil
}

// Take implements store.Trash.
func (t trash) Take(ctx context.Context, id string, end store.Pos) error {
	const op = "remove"
	name, _, ok := store.ParseRemoval(id)
	if !ok {
		return &store.Error{Op: op, Kind: store.ErrInvalid, Err: fmt.Errorf("%.80q does not name a removal", id)}
	}
	return t.store.remove(ctx, name, id, func(c *content) error {
		if _, taken := t.store.trash[id]; taken {
			return store.ErrExist
		}
		return c.endsAt(end)
	})
}

func (t trash) Restore(ctx context.Context, id string) error {
	const op = "restore"
	if err := t.store.admit(ctx, op, id); err != nil {
		return err
	}
	t.store.mu.RLock()
	_, there := t.store.trash[id]
	t.store.mu.RUnlock()
	if there {
		if err := store.NoteRemovals(ctx, t.store, id); err != nil {
			return err
		}
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
	t.store.news.logChanged(item.Name)
	return nil
}

func (t trash) Empty(ctx context.Context, before time.Time) ([]store.Trashed, error) {
	all, err := t.List(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(item store.Trashed) bool { return !item.Removed.Before(before) })
	if err := store.NoteRemovals(ctx, t.store, store.RemovalIDs(all)...); err != nil {
		return nil, err
	}
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	var gone []store.Trashed
	for _, item := range all {
		if _, there := t.store.trash[item.ID]; there {
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
