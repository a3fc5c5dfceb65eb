package memory

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// note is immutable.
type note struct {
	data     []byte
	modified time.Time
}

// notes is a room of notes. The keys in the store have the room's name before the note's.
type notes struct {
	store *Store
	room  string
}

// Notes implements store.Store.
func (s *Store) Notes(room string) store.Notes { return &notes{s, room} }

func (n *notes) key(name string) string {
	if n.room == "" {
		return name
	}
	return n.room + "/" + name
}

// admit returns nil if an operation on a note of that name may proceed.
func (n *notes) admit(ctx context.Context, op, name string) error {
	if err := store.CheckRoom(n.room); err != nil {
		return err
	}
	return n.store.admit(ctx, op, name)
}

func (n *notes) Read(ctx context.Context, name string) ([]byte, error) {
	if err := n.admit(ctx, "read note", name); err != nil {
		return nil, err
	}
	n.store.mu.RLock()
	defer n.store.mu.RUnlock()
	found, ok := n.store.notes[n.key(name)]
	if !ok {
		return nil, &store.Error{Op: "read note", Name: name, Kind: store.ErrNotExist}
	}
	return bytes.Clone(found.data), nil
}

func (n *notes) List(ctx context.Context) ([]store.Note, error) {
	if err := n.admit(ctx, "list notes", "list"); err != nil {
		return nil, err
	}
	n.store.mu.RLock()
	defer n.store.mu.RUnlock()
	var all []store.Note
	for key, found := range n.store.notes {
		if name, ok := strings.CutPrefix(key, n.key("")); ok && !strings.Contains(name, "/") {
			all = append(all, store.Note{Name: name, Size: int64(len(found.data)), Modified: found.modified})
		}
	}
	slices.SortFunc(all, func(a, b store.Note) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func (n *notes) Write(ctx context.Context, name string, data []byte) error {
	if err := n.admit(ctx, "write note", name); err != nil {
		return err
	}
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	if closed(n.store.done) {
		return &store.Error{Op: "write note", Name: name, Kind: store.ErrClosed}
	}
	n.store.notes[n.key(name)] = note{append([]byte{}, data...), time.Now()}
	return nil
}

func (n *notes) WriteHint(ctx context.Context, name string, data []byte) error {
	return n.Write(ctx, name, data)
}

func (n *notes) Change(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	if err := n.admit(ctx, "change note", name); err != nil {
		return err
	}
	if err := n.store.changing.LockContext(ctx); err != nil {
		return &store.Error{Op: "change note", Name: name, Err: err}
	}
	defer n.store.changing.Unlock()
	n.store.mu.RLock()
	old := bytes.Clone(n.store.notes[n.key(name)].data)
	n.store.mu.RUnlock()
	changed, err := change(old)
	if err != nil {
		return err
	}
	return n.Write(ctx, name, changed)
}

func (n *notes) Remove(ctx context.Context, name string) error {
	if err := n.admit(ctx, "remove note", name); err != nil {
		return err
	}
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	delete(n.store.notes, n.key(name))
	return nil
}
