//go:build unix

package vfs

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// adopt gives a file the owner and the mode of another one. The group is kept where the
// system lets the user do that.
func adopt(f *os.File, like fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	want, ok := like.Sys().(*syscall.Stat_t)
	have, ok2 := info.Sys().(*syscall.Stat_t)
	if ok && ok2 && (have.Uid != want.Uid || have.Gid != want.Gid) {
		err = f.Chown(int(want.Uid), int(want.Gid))
		if err != nil && have.Uid != want.Uid {
			return fmt.Errorf("it belongs to another user, and what is put in its place would not: %w", err)
		}
	}
	return f.Chmod(like.Mode())
}
