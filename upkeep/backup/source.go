package backup

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// source reads a backup.
type source interface {
	// list returns the manifest, or nil, and what is wrong with it.
	list() (*manifest, error)
	// open opens a file of the manifest. Files are opened in its order, and each is read
	// before the next.
	open(e *entry) (io.Reader, error)
	// rest reads what follows, and returns what should not be there at all.
	rest() []Fault
	close() error
}

var errMissing = errors.New("it is missing")

// openSource opens a backup that nobody may write to meanwhile.
func openSource(fsys vfs.FS, path string) (source, error) {
	info, err := fsys.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &store.Error{
			Op: "open backup", Path: path, Kind: store.ErrNotExist,
			Hint: "name the directory, or the " + Ending + " file, of a backup",
		}
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return openTar(fsys, path)
	}
	lock, err := fsys.OpenFile(filepath.Join(path, lockName), os.O_RDONLY, 0)
	if err != nil {
		lock = nil // as on a medium that cannot be written to
	} else if ok, err := lock.TryRLock(); err == nil && !ok {
		return nil, errors.Join(locked(path), lock.Close())
	}
	d, err := openDir(fsys, path)
	d.lock = lock
	if err != nil {
		return nil, errors.Join(noManifest(fsys, path), d.close())
	}
	return d, nil
}

// dirSource is a backup in a directory.
type dirSource struct {
	fs   vfs.FS
	dir  string
	lock vfs.File // may be nil
	file vfs.File // that was opened last, or nil
	m    *manifest
	err  error
}

// openDir opens a directory without locking it. Its error is fs.ErrNotExist: there is no
// manifest.
func openDir(fsys vfs.FS, dir string) (*dirSource, error) {
	d := &dirSource{fs: fsys, dir: dir}
	f, r, err := openWhole(fsys, filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	if d.err = err; err == nil {
		d.m, d.err = readManifest(dir, r)
		d.err = errors.Join(d.err, f.Close())
	}
	return d, nil
}

func (d *dirSource) list() (*manifest, error) { return d.m, d.err }

func (d *dirSource) open(e *entry) (r io.Reader, err error) {
	if err := d.closeFile(); err != nil {
		return nil, err
	}
	d.file, r, err = openWhole(d.fs, objectPath(d.dir, e.SHA256))
	if errors.Is(err, fs.ErrNotExist) {
		err = errMissing
	}
	return r, err
}

func (d *dirSource) closeFile() (err error) {
	if d.file != nil {
		err, d.file = d.file.Close(), nil
	}
	return err
}

func (d *dirSource) rest() []Fault { return nil }

func (d *dirSource) close() error {
	err := d.closeFile()
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	return err
}

// openWhole opens a file and returns a reader of everything in it.
func openWhole(fsys vfs.FS, path string) (vfs.File, io.Reader, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	stat, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, io.NewSectionReader(f, 0, stat.Size), nil
}
