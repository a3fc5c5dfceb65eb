package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// Upkeep of a whole store is done where the store is.

func (s *Store) refuse(op string) error {
	return &store.Error{
		Op: op, Path: s.url, Err: fmt.Errorf("the store is on another machine: %w", errors.ErrUnsupported),
		Hint: "use the operations of the home, or do it on its machine",
	}
}

// Trash implements store.Store. Its methods return errors.ErrUnsupported.
func (s *Store) Trash() store.Trash { return trash{s} }

// Parts implements store.Store. Its methods return errors.ErrUnsupported, but for Where.
func (s *Store) Parts() store.Parts { return parts{s} }

type trash struct{ *Store }

func (t trash) List(context.Context) ([]store.Trashed, error) { return nil, t.refuse("list trash") }

func (t trash) Add(context.Context, string, iter.Seq2[[]byte, error]) error {
	return t.refuse("add to trash")
}

func (t trash) Take(context.Context, string, store.Pos) error { return t.refuse("remove") }
func (t trash) Restore(context.Context, string) error         { return t.refuse("restore") }
func (t trash) Read() (store.Store, error)                    { return nil, t.refuse("read trash") }

func (t trash) Empty(context.Context, time.Time) ([]store.Trashed, error) {
	return nil, t.refuse("empty trash")
}

type parts struct{ *Store }

func (p parts) Where(kind store.PartKind, name string) string {
	return p.url + "/" + string(kind) + "/" + name
}

func (p parts) All(context.Context) iter.Seq2[store.Part, error] {
	return func(yield func(store.Part, error) bool) { yield(store.Part{}, p.refuse("list parts")) }
}

func (p parts) Copies(context.Context, string) ([]store.Part, error) {
	return nil, p.refuse("list copies")
}

func (p parts) Open(context.Context, store.Part) (io.ReadCloser, error) {
	return nil, p.refuse("read part")
}

func (p parts) Lines(context.Context, store.Part) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) { yield(store.Line{}, p.refuse("read part")) }
}

func (p parts) Edit(context.Context, store.Part, func([]byte) ([]byte, error)) error {
	return p.refuse("edit")
}

func (p parts) Remove(context.Context, store.Part) error { return p.refuse("remove part") }

// All implements store.Blobs. It returns errors.ErrUnsupported.
func (b blobs) All(context.Context) iter.Seq2[store.Ref, error] {
	return func(yield func(store.Ref, error) bool) { yield("", b.refuse("list blobs")) }
}

// Unreferenced implements store.Blobs. It returns errors.ErrUnsupported.
func (b blobs) Unreferenced(context.Context) ([]store.Part, error) {
	return nil, b.refuse("look for references")
}

// Collect implements store.Blobs. It returns errors.ErrUnsupported.
func (b blobs) Collect(context.Context, ...store.Ref) (*store.Collected, error) {
	return &store.Collected{}, b.refuse("remove blobs")
}
