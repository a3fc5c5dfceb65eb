package session

import "context"

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
