package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coppice-dev/coppice/session"
)

// writeFile makes a file: all of it or none. It is private, as the sessions are.
// A file that is there already is replaced only with force.
func writeFile(path string, force bool, write func(io.Writer) error) (err error) {
	if _, err := os.Lstat(path); !force && !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return err
		}
		return &session.Error{Op: "write", Path: path, Kind: session.ErrExist, Hint: "--force overwrites it"}
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Unwrap(err))
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name()) // what went wrong is said already
		}
	}()
	w := bufio.NewWriter(temp)
	err = errors.Join(write(w), w.Flush())
	if err == nil {
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
