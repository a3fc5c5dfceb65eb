package backup

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// RestoreRequest says which backup becomes a home, and where.
type RestoreRequest struct {
	From string
	// Dir is the directory of the home. It must be empty, or not exist.
	Dir string
	// Partial restores what can be read of a damaged backup: all whole files, and
	// damaged sessions as they are.
	Partial  bool
	Progress func(done, total int64) // may be nil
	FS       vfs.FS                  // default: the operating system's
}

// Restore turns a backup into a home. The home appears when all of it is on the disk.
// If the backup is damaged, the error is a *DamagedError and there is no home, unless
// the request is for a part; then the damage is in the result.
func Restore(ctx context.Context, r RestoreRequest) (*Contents, error) {
	if r.FS == nil {
		r.FS = vfs.OS{KeepOwner: true}
	}
	dir, err := filepath.Abs(r.Dir)
	if err != nil {
		return nil, err
	}
	src, err := openSource(r.FS, r.From)
	if err != nil {
		return nil, err
	}
	if err := mustBeEmpty(r.FS, dir); err != nil {
		return nil, errors.Join(err, src.close())
	}
	parent := filepath.Dir(dir)
	n := &newHome{fs: r.FS, dirs: make(map[string]bool), sizes: make(map[string]int64), later: newBackground(), dir: filepath.Join(parent, "."+filepath.Base(dir)+".restore-"+rand.Text()[:10])}
	c, err := n.fill(ctx, src, r)
	if waitErr := n.later.wait(); err == nil {
		err = waitErr // otherwise there is an earlier error, or it no longer matters
	}
	err = errors.Join(err, src.close())
	if err == nil {
		err = n.publish(dir)
	}
	if err != nil {
		return c, errors.Join(err, removeAll(r.FS, n.dir))
	}
	return c, nil
}

// mustBeEmpty makes sure that nothing is overwritten.
func mustBeEmpty(fsys vfs.FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err == nil {
		err = errors.New("it is not empty; nothing was changed")
	}
	return &store.Error{
		Op: "restore to", Path: dir, Kind: store.ErrExist, Err: err,
		Hint: "choose another directory, or move this one away first",
	}
}

// newHome is a home that is being made, beside the place where it will be.
type newHome struct {
	fs   vfs.FS
	dir  string
	dirs map[string]bool // those that were made
	// sizes are those of the files that were written.
	sizes map[string]int64
	// later makes the files durable.
	later *background
}

func (n *newHome) fill(ctx context.Context, src source, r RestoreRequest) (*Contents, error) {
	if err := vfs.Mkdir(n.fs, filepath.Dir(n.dir), dirPerm); err != nil {
		return nil, err
	}
	if err := n.mkdir("."); err != nil {
		return nil, err
	}
	v := newReading(src, r.Progress)
	if err := v.run(ctx, n.write); err != nil {
		return nil, err
	}
	if err := n.later.wait(); err != nil { // some systems do not remove open files
		return nil, err
	}
	c := &v.Contents
	if len(c.Damaged) > 0 && !r.Partial {
		return c, &DamagedError{r.From, c.Damaged}
	}
	for _, d := range c.Damaged {
		if _, there := n.sizes[d.Path]; there && d.Lost {
			delete(n.sizes, d.Path)
			if err := n.fs.Remove(n.path(d.Path)); err != nil {
				return c, err
			}
		}
	}
	c.Sessions, c.Files, c.Size = 0, 0, 0 // of the home, which may lack some
	for below, size := range n.sizes {
		c.count(below, size)
	}
	return c, nil
}

func (n *newHome) path(below string) string { return filepath.Join(n.dir, filepath.FromSlash(below)) }

// mkdir makes a directory below the home. It is durable when publish has synced it.
func (n *newHome) mkdir(below string) error {
	if n.dirs[below] {
		return nil
	}
	if below != "." {
		if err := n.mkdir(path.Dir(below)); err != nil {
			return err
		}
	}
	n.dirs[below] = true
	return n.fs.MkdirAll(n.path(below), dirPerm)
}

// write writes a file. Its path was checked: it leads into the home, whose directories
// we made.
func (n *newHome) write(e *entry, r io.Reader) error {
	if err := n.mkdir(path.Dir(e.Path)); err != nil {
		return err
	}
	to := n.path(e.Path)
	f, err := n.fs.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return err
	}
	n.sizes[e.Path], err = io.Copy(f, r)
	var unread *readError
	if errors.As(err, &unread) {
		err = nil // the caller has the error
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return n.later.do(func() error {
		err := errors.Join(f.Sync(), f.Close())
		_ = n.fs.Chtimes(to, e.Modified) // not worth failing for
		return err
	})
}

// publish gives the home its name.
func (n *newHome) publish(dir string) error {
	for below := range n.dirs {
		if err := n.fs.SyncDir(n.path(below)); err != nil {
			return err
		}
	}
	// An empty directory of that name goes; one that is not empty by now stays.
	if err := n.fs.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return mustBeEmptyNow(n.fs, dir, err)
	}
	if err := n.fs.Rename(n.dir, dir); err != nil {
		return err
	}
	if err := n.fs.SyncDir(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("%s was made, but %w: %w", dir, vfs.ErrNotDurable, err)
	}
	return nil
}

func mustBeEmptyNow(fsys vfs.FS, dir string, err error) error {
	if full := mustBeEmpty(fsys, dir); full != nil {
		return full
	}
	return &store.Error{Op: "restore to", Path: dir, Err: err, Hint: "choose a new directory inside of it"}
}

// removeAll removes a directory and everything in it that it can.
func removeAll(fsys vfs.FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			err = cmp.Or(err, removeAll(fsys, path))
		} else {
			err = cmp.Or(err, fsys.Remove(path))
		}
	}
	return cmp.Or(err, fsys.Remove(dir))
}
