package vfs

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrNotDurable says that a change has happened but a power cut may undo it.
var ErrNotDurable = errors.New("a power cut may undo it")

// Replacement adjusts Replace. The zero value is a private file that survives a
// power cut.
type Replacement struct {
	// Perm are the permissions of the file, whatever the umask. Default: 0600.
	Perm fs.FileMode
	// Umask applies the umask to Perm.
	Umask bool
	// Like is a file whose owner and mode the new one gets, instead of Perm.
	Like fs.FileInfo
	// Temp is the name under which the file is written first. It must be on the same
	// file system and still be free. Default: a hidden name beside the file. In a
	// directory of In on Linux, the file gets that name only when it is complete, so
	// that a program that is killed leaves nothing behind.
	Temp string
	// New requires that the name is free: otherwise Replace returns fs.ErrExist.
	New bool
	// Before, if it is set, is called when the new file is complete and the old
	// one is still there. An error leaves the old file alone.
	Before func() error
	// NoSync leaves it to the operating system when the file reaches the disk: a power
	// cut may then leave anything. It is for data that can be computed again.
	NoSync bool
}

// Replace writes a file in place of the one at path. Other programs see the old file or
// the new one, even after a crash or a power cut: the file is written and synced under
// another name and renamed, and the rename is synced. If only the last step fails, the
// error matches ErrNotDurable; after any other error the old file is still there. The
// directory must exist.
func Replace(fsys FS, path string, o Replacement, write func(io.Writer) error) (err error) {
	if o.Perm == 0 {
		o.Perm = 0o600
	}
	dir := filepath.Dir(path)
	f, give, err := create(fsys, path, &o)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = fsys.Remove(o.Temp) // gone after the rename; otherwise a leftover is harmless
		}
	}()
	if err = fill(f, write); err == nil {
		err = permit(fsys, f, &o, give != nil)
	}
	if err == nil && !o.NoSync {
		err = f.Sync()
	}
	if err == nil && o.Before != nil {
		err = o.Before()
	}
	isNamed := err == nil && give != nil && o.New // at once: no other name is needed
	switch {
	case isNamed:
		err = give(path)
	case err == nil && give != nil:
		err = give(o.Temp)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	place := fsys.Rename
	switch {
	case isNamed:
		place = func(string, string) error { return nil }
	case o.New:
		place = func(temp, path string) error { return MoveNew(fsys, temp, path, nil) }
	}
	if err := place(o.Temp, path); err != nil || o.NoSync {
		return err
	}
	if err := fsys.SyncDir(dir); err != nil {
		return fmt.Errorf("%s was replaced, but %w: %w", path, ErrNotDurable, err)
	}
	return nil
}

// create makes the file that is written first. If it has no name yet, give gives it one.
func create(fsys FS, path string, o *Replacement) (f File, give func(name string) error, err error) {
	if o.Temp == "" {
		o.Temp = tempFor(path)
		if r, ok := fsys.(rootFS); ok {
			if f, give, err := r.unnamed(filepath.Dir(path), o.Perm); err == nil {
				return f, give, nil
			}
		}
	}
	f, err = fsys.OpenFile(o.Temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, o.Perm)
	return f, nil, err
}

// MoveNew renames a file and replaces nothing: if the new name is taken, it returns
// fs.ErrExist. Where a file cannot have two names, it can only check first, which is
// not safe against a race. A crash may leave the old name too.
//
// If the old name is durable, pass both: it runs while the file has both names, and makes
// the new one durable. Otherwise a power cut could keep only the removal of the old name.
func MoveNew(fsys FS, from, to string, both func() error) error {
	err := fsys.Link(from, to)
	switch {
	case err == nil:
		if both != nil {
			if err := both(); err != nil {
				return errors.Join(err, fsys.Remove(to))
			}
		}
		_ = fsys.Remove(from) // the file has its new name, which counts
		return nil
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist):
		return err
	}
	if _, err := fsys.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, fs.ErrExist)
	}
	return fsys.Rename(from, to)
}

// tempFor returns an unused name beside a file.
func tempFor(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text()[:10])
}

func fill(f File, write func(io.Writer) error) error {
	buf := bufio.NewWriterSize(f, 256<<10)
	if err := write(buf); err != nil {
		return err
	}
	return buf.Flush()
}

// permit gives a file that is written the permissions that it was asked for. Before that, it has
// no more of them: writing would take a set-user-ID bit away again.
func permit(fsys FS, f File, o *Replacement, unnamed bool) error {
	switch own, ok := f.(*osFile); {
	case o.Like != nil && ok:
		return adopt(own.f, o.Like)
	case o.Perm&0o077 == 0 || o.Umask:
		return nil
	case unnamed:
		return own.f.Chmod(o.Perm)
	default: // the umask may have taken some of these away
		return fsys.Chmod(o.Temp, o.Perm)
	}
}

// Data writes bytes: it is for Replace.
func Data(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// Mkdir makes a directory and its missing parents, and makes them durable. That
// includes those that already existed: their maker may have been killed before it
// synced them.
func Mkdir(fsys FS, dir string, perm fs.FileMode) error {
	if err := fsys.MkdirAll(dir, perm); err != nil {
		return err
	}
	return SyncUp(fsys, dir, perm)
}

// SyncUp makes the name of a directory durable, and those of the parents that Mkdir
// with the same permissions may have made. It stops at the first directory with other
// permissions: Mkdir did not make that one, nor any above it.
func SyncUp(fsys FS, dir string, perm fs.FileMode) error {
	for dir = filepath.Clean(dir); ; {
		info, err := fsys.Lstat(dir)
		parent := filepath.Dir(dir)
		if err != nil || parent == dir || info.Mode().Perm() != perm {
			return err
		}
		// A process cannot have made directories where it may not even look.
		if err := fsys.SyncDir(parent); err != nil && !cannotSync(err) {
			return err
		}
		dir = parent
	}
}

func cannotSync(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EINVAL)
}
