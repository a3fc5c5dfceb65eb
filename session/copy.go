package session

import (
	"context"

	"github.com/coppice-dev/coppice/store"
)

// CopyAs copies all of a session, with all its branches, into a session with
// another header, in the same or another store. Lines are copied as they are, so
// entries keep their ids. It is for giving a session another id: to begin a new
// conversation from this one, use Fork. The session itself does not change. The
// limits of the store that the copy goes to hold for it too: what is over one is
// refused with ErrTooLarge, and nothing is copied.
func (s *Session) CopyAs(ctx context.Context, to store.Store, h Header, o *Options) (*Session, error) {
	release, err := s.holdForCopy(ctx, to)
	if err != nil {
		return nil, err
	}
	defer release()
	if to != s.store { // so that no blob is copied in vain
		for _, err := range limited(to, s.name, s.linesToFork(ctx, nil)) {
			if err != nil {
				return nil, err
			}
		}
	}
	return create(ctx, to, h, o, s.linesToFork(ctx, to), s.log)
}

// Remove removes the session from its store, and closes it. It returns
// ErrConflict, and removes nothing, if somebody has appended what this session
// has not read yet: call Refresh and decide again.
func (s *Session) Remove(ctx context.Context) error {
	s.mu.RLock()
	end := s.tree.end
	s.mu.RUnlock()
	if err := store.RemoveAt(ctx, s.store, s.name, end); err != nil {
		return err
	}
	return s.Close()
}
