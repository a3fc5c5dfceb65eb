package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// PinnedError means that a session was not removed because it is pinned, or because
// that cannot be determined.
type PinnedError struct {
	Session string
	Err     error // why it cannot be determined; nil if it is pinned
}

func (e *PinnedError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("session %q is pinned", e.Session)
	}
	return fmt.Sprintf("cannot tell whether session %q is pinned: %v", e.Session, e.Err)
}

// Unwrap returns the cause.
func (e *PinnedError) Unwrap() error { return e.Err }

// mustNotBePinned returns a *PinnedError if a session is pinned, or if that cannot be
// determined. A session that cannot be read at all has no entry that pins it.
func mustNotBePinned(ctx context.Context, st store.Store, name string) error {
	s, err := session.Open(ctx, st, name, nil)
	if errors.Is(err, session.ErrNotExist) {
		return err
	}
	pinned := false
	if err == nil {
		var now session.Remarks
		now, err = s.Remarks()
		pinned, err = now.Pinned, errors.Join(err, s.Close())
	}
	if !pinned && errors.Is(err, session.ErrCorrupt) {
		return nil
	}
	if pinned || err != nil {
		return &PinnedError{Session: name, Err: err}
	}
	return nil
}

// RemoveRequest says what to remove.
type RemoveRequest struct {
	// Sessions are removed together. Those that continue each other must be in order.
	Sessions []string
	// Force also removes pinned sessions, and those that are too damaged to check.
	Force bool
}

// Remove moves sessions to the trash. It returns the names of the removals in the order
// of the sessions. If one of the sessions is pinned, it removes nothing and returns a *PinnedError, unless forced.
// After any other error, it also returns the removals of the sessions that are gone,
// which are the last ones.
func Remove(ctx context.Context, st store.Store, r RemoveRequest) ([]string, error) {
	if err := r.Check(ctx, st); err != nil {
		return nil, err
	}
	// The last session goes first: if the removal is interrupted, the conversation lacks its
	// end, but has no hole.
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

// Check returns the error with which Remove would refuse the request.
func (r RemoveRequest) Check(ctx context.Context, st store.Store) error {
	if r.Force {
		return nil
	}
	for _, name := range r.Sessions {
		if err := mustNotBePinned(ctx, st, name); err != nil {
			return err
		}
	}
	return nil
}

// remove removes one session and returns the name of the removal.
func remove(ctx context.Context, st store.Store, name string) (string, error) {
	if err := st.Remove(ctx, name); err != nil {
		return "", err
	}
	// The session is gone now, so report that even if the context ends.
	items, err := st.Trash().List(context.WithoutCancel(ctx))
	if err != nil {
		return name, nil // it can be restored by that name, too
	}
	for _, item := range items { // the latest first
		if item.Name == name {
			return item.ID, nil
		}
	}
	return name, nil // the trash was emptied in between
}
