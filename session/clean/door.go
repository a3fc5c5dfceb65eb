package clean

import (
	"context"
	"errors"
	"iter"

	"github.com/coppice-dev/coppice/store"
)

// Door is a store for programs that write lines of their own, such as those on other machines:
// no secret comes back in that was taken out of the store before. It refuses and does not clean, because
// such a program counts on its lines being there as it wrote them. One that uses sessions cleans
// them itself: see session.Options.Clean.
//
// The list is read for each write, because another process may have taken something out.
type Door struct {
	unchecked
	st store.Store
}

// unchecked is the part of a store that adds no content, so it needs no check.
type unchecked interface {
	store.Lister
	Stat(ctx context.Context, name string) (store.Stat, error)
	Remove(ctx context.Context, name string) error
	RemoveAt(ctx context.Context, name string, end store.Pos) error
	Limits() store.Limits
	Where() string
}

// NewDoor returns the door of a store.
func NewDoor(st store.Store) *Door { return &Door{st, st} }

// check returns an error if some data has a secret that was taken out of the store.
func (d *Door) check(ctx context.Context, op, name string, data ...[]byte) error {
	g, err := LoadGuard(ctx, d.st)
	if err != nil {
		return err
	}
	return refuseKnown(g, op, name, data...)
}

func refuseKnown(g *Guard, op, name string, data ...[]byte) error {
	for _, one := range data {
		has, err := g.Has(one)
		if err != nil {
			return err
		}
		if has {
			return &store.Error{
				Op: op, Name: name, Kind: store.ErrInvalid, Err: errors.New("it has a secret that was redacted in this home; nothing was written"),
				Hint: "take the secret out, and write it again",
			}
		}
	}
	return nil
}

// Create is that of store.Store.
func (d *Door) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	g, err := LoadGuard(ctx, d.st)
	if err != nil {
		return nil, err
	}
	return d.opened(name)(d.st.Create(ctx, name, func(yield func([]byte, error) bool) {
		for line, err := range lines {
			if err == nil {
				err = refuseKnown(g, "create", name, line)
			}
			if !yield(line, err) {
				return
			}
		}
	}))
}

// Open is that of store.Store.
func (d *Door) Open(ctx context.Context, name string) (store.Log, error) {
	return d.opened(name)(d.st.Open(ctx, name))
}

func (d *Door) opened(name string) func(store.Log, error) (store.Log, error) {
	return func(log store.Log, err error) (store.Log, error) {
		if err != nil {
			return nil, err
		}
		return doorLog{log, d, name}, nil
	}
}

// Blobs is that of store.Store.
func (d *Door) Blobs() store.Blobs { return doorBlobs{d.st.Blobs(), d} }

// Notes is that of store.Store.
func (d *Door) Notes(room string) store.Notes { return doorNotes{d.st.Notes(room), d} }

type doorLog struct {
	store.Log
	door *Door
	name string
}

func (l doorLog) Append(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
	if err := l.door.check(ctx, "append", l.name, lines...); err != nil {
		return 0, err
	}
	return l.Log.Append(ctx, at, lines...)
}

func (l doorLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	if err := l.door.check(ctx, "append", l.name, lines...); err != nil {
		return 0, nil, err
	}
	return l.Log.Start(ctx, at, lines...)
}

type doorBlobs struct {
	store.Blobs
	door *Door
}

func (b doorBlobs) Put(ctx context.Context, data []byte) (store.Ref, error) {
	if err := b.door.check(ctx, "put blob", "", data); err != nil {
		return "", err
	}
	return b.Blobs.Put(ctx, data)
}

type doorNotes struct {
	store.Notes
	door *Door
}

func (n doorNotes) Write(ctx context.Context, name string, data []byte) error {
	if err := n.door.check(ctx, "write note", name, data); err != nil {
		return err
	}
	return n.Notes.Write(ctx, name, data)
}

func (n doorNotes) WriteHint(ctx context.Context, name string, data []byte) error {
	if err := n.door.check(ctx, "write note", name, data); err != nil {
		return err
	}
	return n.Notes.WriteHint(ctx, name, data)
}

func (n doorNotes) Change(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
	// The list is read before the change, during which the notes may be locked.
	g, err := LoadGuard(ctx, n.door.st)
	if err != nil {
		return err
	}
	return n.Notes.Change(ctx, name, func(old []byte) ([]byte, error) {
		data, err := change(old)
		if err == nil {
			err = refuseKnown(g, "change note", name, data)
		}
		return data, err
	})
}
