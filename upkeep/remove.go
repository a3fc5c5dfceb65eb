package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// PinnedError says that a session was not removed because it is pinned, or
// because nobody can tell whether it is.
type PinnedError struct {
	Session string
	Err     error // why nobody can tell, or nil if it is pinned
}

func (e *PinnedError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("session %q is pinned", e.Session)
	}
	return fmt.Sprintf("cannot tell whether session %q is pinned: %v", e.Session, e.Err)
}

// Unwrap returns the cause.
func (e *PinnedError) Unwrap() error { return e.Err }

// mustNotBePinned returns a *PinnedError if a session is pinned, or if nobody can
// tell. One that is beyond reading has no entry that pins it.
func mustNotBePinned(ctx context.Context, st store.Store, name string) error {
	s, err := session.Open(ctx, st, name, nil)
	if errors.Is(err, session.ErrCorrupt) {
		return nil
	}
	if errors.Is(err, session.ErrNotExist) {
		return err
	}
	pinned := false
	if err == nil {
		pinned, err = s.Pinned()
		err = errors.Join(err, s.Close())
	}
	if pinned || err != nil {
		return &PinnedError{Session: name, Err: err}
	}
	return nil
}

// RemoveRequest says what to remove.
type RemoveRequest struct {
	// Sessions are removed in one go. Those that continue each other come in
	// their order.
	Sessions []string
	// Force removes pinned sessions too, and those that are too damaged to check.
	Force bool
}

// Remove moves sessions to the trash, and returns the names of the removals in
// the order of the sessions; where the store has no trash, the sessions' own
// names. Unless it is forced, it removes nothing if one of them is pinned: the
// error is then a *PinnedError. Beside another error it returns the removals of
// those that are gone, which are the last of the sessions.
func Remove(ctx context.Context, st store.Store, r RemoveRequest) ([]string, error) {
	if !r.Force {
		for _, name := range r.Sessions {
			if err := mustNotBePinned(ctx, st, name); err != nil {
				return nil, err
			}
		}
	}
	// The last goes first: what is left of a removal that is cut short is then a
	// conversation without its end, not one with a hole.
	var removals []string
	for _, name := range slices.Backward(r.Sessions) {
		removal, err := remove(ctx, st, name)
		if err != nil {
			slices.Reverse(removals)
			return removals, err
		}
		removals = append(removals, removal)
	}
	slices.Reverse(removals)
	return removals, nil
}

// remove removes one session and returns the name of the removal.
func remove(ctx context.Context, st store.Store, name string) (string, error) {
	if err := st.Remove(ctx, name); err != nil {
		return "", err
	}
	trash, ok := st.(store.Trash)
	if !ok {
		return name, nil
	}
	// It is gone, whatever becomes of the rest: nobody may be told otherwise.
	items, err := trash.Trash(context.WithoutCancel(ctx))
	if err != nil {
		return name, nil // by which it can be restored, too
	}
	for _, item := range items { // the latest first
		if item.Name == name {
			return item.ID, nil
		}
	}
	return name, nil // somebody has emptied the trash
}
