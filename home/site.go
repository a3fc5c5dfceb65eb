package home

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
)

// site is where a home is: on this machine (local), or on another one (away). It has all that
// differs between the two.
type site interface {
	// perform performs an operation: with here, or on the other machine.
	perform(ctx context.Context, op string, request any, send func(any) error, here func() (any, error)) (any, error)
	// changes is Home.Changes.
	changes(ctx context.Context, changed func()) error
	// subagents lists the sessions that tool calls of a session started. Without build, it
	// leaves out those that only an index would know which is still to be built.
	subagents(ctx context.Context, id string, build bool) ([]string, error)
	// dropIndexes makes all indexes forget what the sessions no longer say, and returns where
	// those of the home are that are files or rooms of this machine.
	dropIndexes(ctx context.Context) (had []string, err error)
	// finishRedaction finishes a redaction that was interrupted, if there is one.
	finishRedaction(ctx context.Context) (*clean.Receipt, error)
	// redactKnown returns what takes out of sessions what was redacted in the home before, for
	// transcript.Importer.Elsewhere. It is nil where an importer can do so itself.
	redactKnown() func(ctx context.Context, sessions []string) error
}

// Every operation that needs the index, or that should be one step for other readers of
// the home, goes through call, ask or follow: it runs here or, for a home on another machine,
// there. The other operations (those about files of this machine) always run here, on the
// home's store, wherever that is.

func call[R, T any](ctx context.Context, h *Home, op string, r R, here func(context.Context, R) (*T, error)) (*T, error) {
	return perform(ctx, h, op, &r, nil, func() (*T, error) { return here(ctx, r) })
}

func ask[T any](ctx context.Context, h *Home, op string, here func(context.Context) (*T, error)) (*T, error) {
	return perform(ctx, h, op, &struct{}{}, nil, func() (*T, error) { return here(ctx) })
}

func follow[R, E, T any](ctx context.Context, h *Home, op string, r R, send func(E) error, here func(context.Context, R, func(E) error) (*T, error)) (*T, error) {
	var untyped func(any) error
	if send != nil {
		untyped = func(event any) error { return send(event.(E)) }
	}
	return perform(ctx, h, op, &r, untyped, func() (*T, error) { return here(ctx, r, send) })
}

func perform[T any](ctx context.Context, h *Home, op string, request any, send func(any) error, here func() (*T, error)) (*T, error) {
	if err := h.checkOpen(op); err != nil {
		return nil, err
	}
	result, err := h.site.perform(ctx, op, request, send, func() (any, error) { return orNil(here()) })
	if result == nil {
		return nil, err
	}
	t, ok := result.(*T)
	if !ok {
		return nil, fmt.Errorf("%s: the answer is a %T, not a %T", op, result, t)
	}
	return t, err
}

// checkOpen refuses an operation of a home that is closed.
func (h *Home) checkOpen(op string) error {
	if h.isClosed() {
		return &store.Error{Op: op, Path: h.Dir(), Kind: store.ErrClosed}
	}
	return nil
}

// local is the site of a home on this machine.
type local struct{ *Home }

func (h local) perform(_ context.Context, _ string, _ any, _ func(any) error, here func() (any, error)) (any, error) {
	return here()
}

// Changes calls changed whenever something may have changed in the sessions of the home, whatever
// program did it, until the context ends, which is not an error. Of a home on another machine it
// learns only what is appended. It costs nothing while nothing happens.
func (h *Home) Changes(ctx context.Context, changed func()) error {
	return h.site.changes(ctx, changed)
}

func (h local) redactKnown() func(context.Context, []string) error { return nil }

func (h local) changes(ctx context.Context, changed func()) error {
	for name, err := range store.Watch(ctx, h.store) {
		switch {
		case err != nil && !errors.Is(err, store.ErrUntold):
			return err
		case name != "":
			changed()
		}
	}
	return nil
}
