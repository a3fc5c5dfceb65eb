//go:build race && unix

package postgres_test

// The race detector looks at every byte of a line that is sent as text, as it is behind
// PgBouncer, and only one goroutine has it. Lines of the default length are tried without it.
func init() { longest = 8 << 20 }
