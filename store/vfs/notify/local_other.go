//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package notify

import "os"

// canTell returns why there can be no notices of a directory.
func canTell(dir string) error {
	_, err := os.Stat(dir)
	return err
}
