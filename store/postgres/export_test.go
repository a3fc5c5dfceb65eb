package postgres

import "time"

// SetPatience says how long a server may be away.
func (s *Store) SetPatience(d time.Duration) { s.patience = d }
