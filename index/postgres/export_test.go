package postgres

import "time"

// SetPatience says how long to wait for another program that writes.
func (r *Room) SetPatience(d time.Duration) { r.patience = d }
