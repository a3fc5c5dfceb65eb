//go:build race

package redact_test

// The race detector makes everything slow, and there is nothing here that runs
// side by side: a part of the hostile texts is enough.
func init() { stride = 16 }
