package postgres

import "time"

// SetPatience says how long to wait for another program that writes.
func (r *Room) SetPatience(d time.Duration) { r.patience = d }

// SetLookedInto says into how many texts a search for a phrase looks.
func (r *Room) SetLookedInto(n int) { r.conns.lookedInto = n }
