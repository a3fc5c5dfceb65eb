package home

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/store"
)

// Changes calls changed whenever something may have changed in the sessions of the home, whatever
// program did it, until the context ends, which is not an error. Of a home on another machine it
// learns only what is appended. It costs nothing while nothing happens.
func (h *Home) Changes(ctx context.Context, changed func()) error {
	if h.remote != nil {
		_, err := h.Entries.Follow(ctx, FollowRequest{}, func(Arrival) error { changed(); return nil })
		return err
	}
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
