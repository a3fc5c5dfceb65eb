package session

import (
	"context"

	"github.com/coppice-dev/coppice/store"
)

// CopyAs copies all of a session, with all branches, into a session with another header, in
// the same or another store. Lines are copied unchanged, so entries keep their ids. Use it
// to give a session another id; to begin a new conversation from this one, use Fork. The
// session itself does not change. The limits of the target store apply: a copy that exceeds
// one is refused with ErrTooLarge, and nothing is copied.
func (s *Session) CopyAs(ctx context.Context, to store.Store, h Header, o *Options) (*Session, error) {
	release, err := s.holdForCopy(ctx, to)
	if err != nil {
		return nil, err
	}
	defer release()
	if to != s.store { // check the limits first, before any blob is copied
		for _, err := range limited(to, s.name, s.linesToFork(ctx, nil)) {
			if err != nil {
				return nil, err
			}
		}
	}
	return create(ctx, to, h, o, s.linesToFork(ctx, to), s.log)
}

// Remove removes the session from its store and closes it. If another writer has appended
// entries that this session has not read, it removes nothing and returns ErrConflict: call
// Refresh and decide again.
func (s *Session) Remove(ctx context.Context) error {
	s.mu.RLock()
	end := s.tree.end
	s.mu.RUnlock()
	if err := s.store.RemoveAt(ctx, s.name, end); err != nil {
		return err
	}
	return s.Close()
}
