package storetest

import "time"

// SetPatience keeps the tests of stores that hang short.
func SetPatience(d time.Duration) { patience = d }
