package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
)

// writeFile makes a file: all of it or none. It is private, as the sessions are.
// A file that is there already is replaced only with force.
func writeFile(path string, force bool, write func(io.Writer) error) error {
	if _, err := os.Lstat(path); !force && !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return err
		}
		return &session.Error{Op: "write", Path: path, Kind: session.ErrExist, Hint: "--force overwrites it"}
	}
	err := vfs.Replace(vfs.OS{}, path, vfs.Replacement{}, write)
	if missing := (*fs.PathError)(nil); errors.As(err, &missing) && missing.Path != path {
		err = missing.Err // the name of the temporary file would tell nobody anything
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
