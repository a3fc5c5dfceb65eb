//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package notify

import (
	"fmt"

	"github.com/coppice-dev/coppice/store/vfs"
)

// maxOpen is how many files a directory may have. These systems tell only of open files, and a
// process may have few of them.
const maxOpen = 500

// canTell returns why there can be no notices of a directory.
func canTell(dir string) error {
	files, err := vfs.OS{}.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(files) > maxOpen {
		return fmt.Errorf("this system tells only of open files, and %s has more than %d", dir, maxOpen)
	}
	return nil
}
