//go:build !linux && !darwin

package lease

// machine returns "": which process a number means is not known.
func machine() string { return "" }

// started returns "": when a process began is not known.
func started(int) string { return "" }
