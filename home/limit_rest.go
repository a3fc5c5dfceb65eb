package home

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// viewTrash is the trash of a view: the removed sessions that were inside.
type viewTrash struct {
	view *view

	mu   sync.Mutex          // guards what follows
	read map[string]*removed // by the id of the removal: they never change
}

// removed is what a removed session says about itself.
type removed struct {
	own    bool // it is in the limit itself
	inside bool // it is, or one that it continues or is continued by
	link   session.Link
}

// List implements store.Trash.
func (t *viewTrash) List(ctx context.Context) ([]store.Trashed, error) {
	items, err := t.view.real.Trash().List(ctx)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	sealed, err := t.view.real.Trash().Read()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	latest, _ := latestOf(items, func(store.Trashed) bool { return true })
	for _, item := range items {
		if t.read[item.ID] == nil {
			t.read[item.ID] = t.describe(ctx, sealed, item)
		}
	}
	t.join(items, latest)
	inside := slices.DeleteFunc(slices.Clone(items), func(item store.Trashed) bool { return !t.read[item.ID].inside })
	return inside, errors.Join(ctx.Err(), sealed.Close())
}

// describe reads a removed session. One that cannot be read is outside.
func (t *viewTrash) describe(ctx context.Context, sealed store.Store, item store.Trashed) *removed {
	r := &removed{}
	s, err := session.Open(ctx, byName{sealed, map[string]store.Trashed{item.Name: item}}, item.Name, nil)
	if err != nil {
		return r
	}
	defer s.Close() // we only read
	header := s.Header()
	remarks, err := s.Remarks()
	if err != nil {
		return r
	}
	r.own = t.view.limit.has(&header, remarks.Tags)
	r.link, _ = session.ReadLink(ctx, byName{sealed, map[string]store.Trashed{item.Name: item}}, item.Name)
	return r
}

// join finds out which removed sessions are inside because others are. The caller holds mu.
func (t *viewTrash) join(items []store.Trashed, latest map[string]store.Trashed) {
	for _, item := range items {
		r := t.read[item.ID]
		r.inside = r.own
	}
	for again := true; again; {
		again = false
		for _, item := range items {
			r := t.read[item.ID]
			before, ok := latest[r.link.Continues]
			if !ok || r.link.Continues == "" || t.read[before.ID].link.ContinuedTo != item.Name {
				continue
			}
			if first := t.read[before.ID]; first.inside != r.inside {
				first.inside, r.inside, again = true, true, true
			}
		}
	}
}

// isKnown reports whether a removal was found inside.
func (t *viewTrash) isKnown(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.read[id]
	return r != nil && r.inside
}

// check returns an error unless there is a removal of that id in the view.
func (t *viewTrash) check(ctx context.Context, id string) error {
	items, err := t.List(ctx)
	if err == nil && !slices.ContainsFunc(items, func(item store.Trashed) bool { return item.ID == id }) {
		err = missing("restore", id)
	}
	return err
}

// Restore implements store.Trash.
func (t *viewTrash) Restore(ctx context.Context, id string) error {
	if err := t.check(ctx, id); err != nil {
		return err
	}
	return t.view.real.Trash().Restore(ctx, id)
}

// Add implements store.Trash. Only a copy of a whole home adds to the trash.
func (t *viewTrash) Add(context.Context, string, iter.Seq2[[]byte, error]) error {
	return t.view.part.refuse("add to the trash")
}

// Empty implements store.Trash.
func (t *viewTrash) Empty(context.Context, time.Time) ([]store.Trashed, error) {
	return nil, t.view.part.refuse("empty the trash")
}

// Read implements store.Trash.
func (t *viewTrash) Read() (store.Store, error) {
	sealed, err := t.view.real.Trash().Read()
	if err != nil {
		return nil, err
	}
	return &sealedView{view: t.view, sealed: sealed}, nil
}

// sealedView is the trash of a view as a read-only store, with the blobs of the view.
type sealedView struct {
	*view
	sealed store.Store
}

// Open implements store.Store.
func (s *sealedView) Open(ctx context.Context, name string) (store.Log, error) {
	if err := s.trash.check(ctx, name); err != nil {
		return nil, err
	}
	log, err := s.sealed.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &sealedLog{log, s.view, name}, nil
}

// Stat implements store.Store.
func (s *sealedView) Stat(ctx context.Context, name string) (store.Stat, error) {
	if err := s.trash.check(ctx, name); err != nil {
		return store.Stat{}, err
	}
	return s.sealed.Stat(ctx, name)
}

// List implements store.Store.
func (s *sealedView) List(ctx context.Context) iter.Seq2[store.Stat, error] {
	return func(yield func(store.Stat, error) bool) {
		all, err := store.All(ctx, s.sealed)
		if err != nil {
			yield(store.Stat{}, err)
			return
		}
		for _, l := range all {
			if s.trash.check(ctx, l.Name) == nil && !yield(l.Stat, l.Err) {
				return
			}
		}
	}
}

// errSealed refuses changes to the trash: a line added to a removed session could give it
// blobs from outside.
var errSealed = session.Invalidf("what is in the trash can only be read: restore it first")

// Create implements store.Store.
func (*sealedView) Create(context.Context, string, iter.Seq2[[]byte, error]) (store.Log, error) {
	return nil, errSealed
}

// CreateCopy implements store.Store.
func (*sealedView) CreateCopy(context.Context, string, iter.Seq2[[]byte, error], store.Log) (store.Log, error) {
	return nil, errSealed
}

// Remove implements store.Store.
func (*sealedView) Remove(context.Context, string) error { return errSealed }

// RemoveAt implements store.Store.
func (*sealedView) RemoveAt(context.Context, string, store.Pos) error { return errSealed }

// Close implements store.Store.
func (s *sealedView) Close() error { return s.sealed.Close() }

// sealedLog is a log in the trash of a view.
type sealedLog struct {
	store.Log
	view *view
	name string
}

// Append implements store.Log.
func (*sealedLog) Append(context.Context, store.Pos, ...[]byte) (store.Pos, error) {
	return 0, errSealed
}

// Start implements store.Log.
func (*sealedLog) Start(context.Context, store.Pos, ...[]byte) (store.Pos, func() error, error) {
	return 0, nil, errSealed
}

// Forward implements store.Log.
func (l *sealedLog) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.lines(l.Log.Forward(ctx, from))
}

// Backward implements store.Log.
func (l *sealedLog) Backward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.lines(l.Log.Backward(ctx, from))
}

func (l *sealedLog) lines(lines iter.Seq2[store.Line, error]) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for line, err := range lines {
			if err == nil {
				l.view.blobs.note(l.name, line.Data)
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

// viewLeases are the leases of a view. It shares those of its sessions with the whole home,
// and has its own for others, so that it does not reveal who works on sessions outside.
type viewLeases struct {
	view        *view
	own, shared store.Notes
}

// of returns where the lease of a session is.
func (n *viewLeases) of(ctx context.Context, name string) (store.Notes, error) {
	inside, err := n.view.isInside(ctx, name)
	if inside {
		return n.shared, err
	}
	return n.own, err
}

// Read implements store.Notes.
func (n *viewLeases) Read(ctx context.Context, name string) ([]byte, error) {
	notes, err := n.of(ctx, name)
	if err != nil {
		return nil, err
	}
	return notes.Read(ctx, name)
}

// List implements store.Notes.
func (n *viewLeases) List(ctx context.Context) ([]store.Note, error) { return n.own.List(ctx) }

// Write implements store.Notes.
func (n *viewLeases) Write(ctx context.Context, name string, data []byte) error {
	notes, err := n.of(ctx, name)
	if err != nil {
		return err
	}
	return notes.Write(ctx, name, data)
}

// WriteHint implements store.Notes.
func (n *viewLeases) WriteHint(ctx context.Context, name string, data []byte) error {
	notes, err := n.of(ctx, name)
	if err != nil {
		return err
	}
	return notes.WriteHint(ctx, name, data)
}

// Change implements store.Notes.
func (n *viewLeases) Change(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
	notes, err := n.of(ctx, name)
	if err != nil {
		return err
	}
	return notes.Change(ctx, name, change)
}

// Remove implements store.Notes.
func (n *viewLeases) Remove(ctx context.Context, name string) error {
	notes, err := n.of(ctx, name)
	if err != nil {
		return err
	}
	return notes.Remove(ctx, name)
}

// noParts are the parts of a view: none, because the parts of a store serve to find or change
// something wherever it is.
type noParts struct{ view *view }

func (noParts) All(context.Context) iter.Seq2[store.Part, error] {
	return func(func(store.Part, error) bool) {}
}

func (noParts) Copies(context.Context, string) ([]store.Part, error) { return nil, nil }

func (p noParts) Open(context.Context, store.Part) (io.ReadCloser, error) {
	return nil, p.view.part.refuse("read parts")
}

func (p noParts) Lines(context.Context, store.Part) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) { yield(store.Line{}, p.view.part.refuse("read parts")) }
}

func (p noParts) Edit(context.Context, store.Part, func([]byte) ([]byte, error)) error {
	return p.view.part.refuse("edit parts")
}

func (p noParts) Remove(context.Context, store.Part) error { return p.view.part.refuse("delete parts") }

func (noParts) Where(store.PartKind, string) string { return "" }
