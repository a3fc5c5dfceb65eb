package clean

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/coppice-dev/coppice/store"
)

// Door returns a store for programs that write lines of their own, such as those on other
// machines: nothing comes in that was taken out of the store before. It refuses and does not
// clean, because such a program counts on its lines being there as it wrote them. One that uses
// sessions cleans them itself: see session.Options.Clean.
//
// The list is read for each write, because another process may have taken something out.
func Door(st store.Store) store.Store { return door{st} }

type door struct{ store.Store }

// Unwrap implements store.Wrapper.
func (d door) Unwrap() store.Store { return d.Store }

// check returns an error if some data has what was taken out of the store.
func (d door) check(ctx context.Context, op, name string, data ...[]byte) error {
	g, err := LoadGuard(ctx, d.Store)
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

// lines checks lines on their way into the store.
func (d door) lines(ctx context.Context, op, name string, lines iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		g, failed := LoadGuard(ctx, d.Store)
		if failed != nil {
			yield(nil, failed)
			return
		}
		for line, err := range lines {
			if err == nil {
				err = refuseKnown(g, op, name, line)
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

func (d door) opened(name string, log store.Log, err error) (store.Log, error) {
	if err != nil {
		return nil, err
	}
	return doorLog{log, d, name}, nil
}

func (d door) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	log, err := d.Store.Create(ctx, name, d.lines(ctx, "create", name, lines))
	return d.opened(name, log, err)
}

func (d door) CreateCopy(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of store.Log) (store.Log, error) {
	if wrapped, ok := of.(doorLog); ok {
		of = wrapped.Log
	}
	log, err := d.Store.CreateCopy(ctx, name, d.lines(ctx, "create", name, lines), of)
	return d.opened(name, log, err)
}

func (d door) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := d.Store.Open(ctx, name)
	return d.opened(name, log, err)
}

func (d door) Batch() store.Batch { return doorBatch{d.Store.Batch(), d} }

func (d door) Trash() store.Trash { return doorTrash{d.Store.Trash(), d} }

func (d door) Blobs() store.Blobs { return doorBlobs{d.Store.Blobs(), d} }

func (d door) Notes(room string) store.Notes { return doorNotes{d.Store.Notes(room), d} }

func (d door) Parts() store.Parts { return doorParts{d.Store.Parts(), d} }

type doorLog struct {
	store.Log
	door door
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

type doorBatch struct {
	store.Batch
	door door
}

func (b doorBatch) Add(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) error {
	return b.Batch.Add(ctx, name, b.door.lines(ctx, "create", name, lines))
}

type doorTrash struct {
	store.Trash
	door door
}

func (t doorTrash) Add(ctx context.Context, id string, lines iter.Seq2[[]byte, error]) error {
	return t.Trash.Add(ctx, id, t.door.lines(ctx, "add to trash", id, lines))
}

type doorBlobs struct {
	store.Blobs
	door door
}

func (b doorBlobs) Put(ctx context.Context, data []byte) (store.Ref, error) {
	if err := b.door.check(ctx, "put blob", "", data); err != nil {
		return "", err
	}
	return b.Blobs.Put(ctx, data)
}

type doorNotes struct {
	store.Notes
	door door
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
	g, err := LoadGuard(ctx, n.door.Store)
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

type doorParts struct {
	store.Parts
	door door
}

func (p doorParts) Edit(ctx context.Context, part store.Part, edit func([]byte) ([]byte, error)) error {
	g, err := LoadGuard(ctx, p.door.Store)
	if err != nil {
		return err
	}
	return p.Parts.Edit(ctx, part, func(line []byte) ([]byte, error) {
		was := bytes.Clone(line) // edit may write into it
		now, err := edit(line)
		if err == nil && !bytes.Equal(was, now) {
			err = refuseKnown(g, "edit", part.Name, now)
		}
		return now, err
	})
}
