package adk

import (
	"context"
	"errors"
	"fmt"

	coppice "github.com/coppice-dev/coppice/session"
)

// State that sessions share, of an app or of a user, is kept in a separate session. Each
// change is an entry, so writers in several processes never overwrite each other's keys; for
// one key, the last change wins.

// sharedState returns the shared state of a key. If there is none, it is empty.
func (s *Service) sharedState(ctx context.Context, parts ...string) (map[string]any, error) {
	shared, err := s.openShared(ctx, parts, false)
	if errors.Is(err, coppice.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer shared.Close()
	state, _, err := foldShared(shared)
	return state, err
}

// change is a change of shared state that was written.
type change struct {
	parts  []string
	marker string
}

// changeShared changes the state of an app and of a user. If it returns an error, nothing
// changed. Otherwise undo takes the changes back, unless another writer has repeated the
// whole state in the meantime. That takes two coincidences within a few milliseconds, and has
// the same effect as a crash at that moment.
func (s *Service) changeShared(ctx context.Context, p place, app, user map[string]any) (undo func() error, err error) {
	var made []change
	undo = func() error {
		var errs []error
		for _, c := range made { // even if the caller's context has ended
			errs = append(errs, s.appendShared(context.WithoutCancel(ctx), c.parts, record{Marker: c.marker, Undo: true}))
		}
		return errors.Join(errs...)
	}
	for _, to := range []struct {
		parts []string
		delta map[string]any
	}{{[]string{p.app}, app}, {[]string{p.app, p.user}, user}} {
		if len(to.delta) == 0 {
			continue
		}
		c := change{to.parts, coppice.NewID()}
		if err := s.appendShared(ctx, c.parts, record{Delta: to.delta, Marker: c.marker}); err != nil {
			return nil, errors.Join(err, undo())
		}
		made = append(made, c)
	}
	return undo, nil
}

// appendShared appends a change, wherever the shared state is by then.
func (s *Service) appendShared(ctx context.Context, parts []string, r record) error {
	entry, err := custom(customDelta, r)
	if err != nil {
		return err
	}
	shared, err := s.openShared(ctx, parts, true)
	if err != nil {
		return err
	}
	defer shared.Close()
	return shared.Update(ctx, func(tx *coppice.Tx) error {
		state, since, err := foldShared(shared)
		if err != nil {
			return err
		}
		var again []coppice.Entry
		if !r.Undo { // otherwise the state still has what the entry takes back
			for k, v := range r.Delta {
				state[k] = v
			}
			if again, err = repeated(state, since+1, entry.Timestamp); err != nil {
				return err
			}
		}
		for _, e := range append([]coppice.Entry{entry}, again...) {
			tx.Append(e)
		}
		return nil
	})
}

// foldShared returns a shared state, and how many changes there are since it was last
// repeated.
func foldShared(shared *coppice.Session) (state map[string]any, since int, err error) {
	state = make(map[string]any)
	undone := make(map[string]bool)
	for e, err := range shared.Path("") {
		if err != nil {
			return nil, 0, err
		}
		r, err := recordOf(e.Extra)
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("session %s, entry %s: %w", shared.ID(), e.ID, err)
		case r == nil: // for example a tag
		case r.State != nil:
			addMissing(state, r.State)
			return state, since, nil
		case r.Undo:
			undone[r.Marker] = true
			since++
		case !undone[r.Marker]:
			addMissing(state, r.Delta)
			since++
		}
	}
	return state, since, nil
}

// openShared opens the session of a shared state, and creates it if create is set.
func (s *Service) openShared(ctx context.Context, parts []string, create bool) (*coppice.Session, error) {
	h, err := sharedHeader(parts)
	if err != nil {
		return nil, err
	}
	shared, err := s.open(ctx, h.ID)
	if !create || !errors.Is(err, coppice.ErrNotExist) {
		return shared, err
	}
	shared, err = coppice.Create(ctx, s.store, h, s.sessions())
	if errors.Is(err, coppice.ErrExist) { // another writer has created it
		return s.open(ctx, h.ID)
	}
	if err != nil {
		return nil, err
	}
	shared = shared.WithContext(ctx)
	// It has no messages, so retention would take it for abandoned.
	err = shared.Update(ctx, func(tx *coppice.Tx) error {
		tx.Append(coppice.Pinned(true))
		tx.Append(coppice.Name(sharedTitle(parts)))
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, shared.Close())
	}
	return shared, nil
}

func sharedTitle(parts []string) string {
	if len(parts) == 1 {
		return fmt.Sprintf("ADK state of the app %s", parts[0])
	}
	return fmt.Sprintf("ADK state of the user %s of %s", parts[1], parts[0])
}
