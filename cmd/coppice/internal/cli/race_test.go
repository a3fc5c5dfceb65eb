//go:build race

package cli

// raced says that the race detector watches the tests, and the programs they start.
const raced = true
