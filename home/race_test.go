//go:build race

package home_test

// The race detector makes everything slow, and nothing that answers a probe runs side by
// side. They are all tried without it.
func init() { fewProbes = true }
