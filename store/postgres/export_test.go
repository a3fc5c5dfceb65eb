package postgres

import "time"

// SetPatience says how long a server may be away.
func (s *Store) SetPatience(d time.Duration) { s.patience = d }

// Hears reports whether a store that is watched hears of changes.
func Hears(s *Store) bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.hub.listening != nil
}
