//go:build !linux

package process

// hideSecrets does nothing where the system keeps no copy of the environment, or none
// that can be changed.
func hideSecrets() {}
