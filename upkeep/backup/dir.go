package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

const (
	objectsName  = "objects"
	lockName     = "lock"
	incomingName = "incoming" // a directory for files before they have their names
)

// dirTarget is a backup in a directory.
type dirTarget struct {
	fs      vfs.FS
	dir     string
	lock    vfs.File
	old     *manifest // what can be read of the one that is there
	had     bool      // there is one
	doubted bool      // it cannot be trusted
	shelves map[string]bool
	later   *later
	count   int              // of puts, for names
	have    map[string]int64 // the sizes of the objects that are whole, or will be soon
	rotten  map[string]bool  // the objects that were not what their names say
	done    bool             // the new manifest is in place
}

func openDir(fsys vfs.FS, dir string) (*dirTarget, error) {
	if err := mustBeBackup(fsys, dir); err != nil {
		return nil, err
	}
	if err := vfs.Mkdir(fsys, filepath.Join(dir, objectsName), dirPerm); err != nil {
		return nil, err
	}
	lock, err := fsys.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return nil, err
	}
	if ok, err := lock.TryLock(); !ok || err != nil {
		if err == nil {
			err = locked(dir)
		}
		return nil, errors.Join(err, lock.Close())
	}
	d := &dirTarget{fs: fsys, dir: dir, lock: lock, shelves: make(map[string]bool), later: newLater(), have: make(map[string]int64), rotten: make(map[string]bool)}
	d.old, err = readManifestIn(fsys, dir) // even if it is damaged, the next one will be right
	d.had = !errors.Is(err, fs.ErrNotExist)
	d.doubted = d.had && err != nil
	err = removeAll(fsys, filepath.Join(dir, incomingName)) // of a process that was killed
	if err == nil {
		err = fsys.MkdirAll(filepath.Join(dir, incomingName), dirPerm)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

// mustBeBackup refuses a directory that holds anything else: a backup deletes what it
// does not need.
func mustBeBackup(fsys vfs.FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case manifestName:
			return nil
		case objectsName, lockName, incomingName:
		default:
			return invalid(dir, errors.New("the directory has other files in it"), "name an empty or a new directory, or an older backup")
		}
	}
	return nil
}

func readManifestIn(fsys vfs.FS, dir string) (*manifest, error) {
	f, err := fsys.OpenFile(filepath.Join(dir, manifestName), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := whole(f)
	if err != nil {
		return nil, err
	}
	return readManifest(r)
}

func (d *dirTarget) older() bool { return d.had }

func (d *dirTarget) shelf(sum string) string { return filepath.Join(d.dir, objectsName, sum[:2]) }

func objectPath(dir, sum string) string { return filepath.Join(dir, objectsName, sum[:2], sum) }

func (d *dirTarget) has(ctx context.Context, sum string) (int64, bool) {
	if _, ok := store.Ref("sha256:" + sum).Hex(); !ok {
		return 0, false
	}
	if size, ok := d.have[sum]; ok {
		return size, true
	}
	size, ok := d.whole(ctx, sum)
	if ok {
		// A process that was killed may have made it and not made its name durable.
		d.shelves[d.shelf(sum)], d.have[sum] = true, size
	}
	return size, ok
}

// whole reads an object and returns its size if it is what its name says.
func (d *dirTarget) whole(ctx context.Context, sum string) (int64, bool) {
	path := objectPath(d.dir, sum)
	info, err := d.fs.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	f, err := d.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	is, err := (&content{ctx: ctx, file: f, size: info.Size(), path: path}).hash()
	if ok := err == nil && is == sum; ok || ctx.Err() != nil {
		return info.Size(), ok
	}
	d.rotten[sum] = true
	return 0, false
}

func (d *dirTarget) damaged() int { return len(d.rotten) }

// put writes an object. It gets its name when it is on the disk.
func (d *dirTarget) put(_ string, _ time.Time, c *content) (err error) {
	d.count++
	incoming := filepath.Join(d.dir, incomingName, strconv.Itoa(d.count))
	f, err := d.fs.OpenFile(incoming, os.O_RDWR|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return err
	}
	if err := c.copyTo(f); err != nil {
		return errors.Join(err, f.Close(), d.fs.Remove(incoming))
	}
	shelf, object := d.shelf(c.sum), objectPath(d.dir, c.sum)
	if err := d.fs.MkdirAll(shelf, dirPerm); err != nil {
		return errors.Join(err, f.Close())
	}
	d.shelves[shelf], d.have[c.sum] = true, c.size
	return d.later.do(func() error {
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
		return d.fs.Rename(incoming, object)
	})
}

// publish makes all objects durable, then puts the manifest into place, and then
// deletes the objects that are no longer needed.
func (d *dirTarget) publish(m *manifest) error {
	if err := d.later.wait(); err != nil {
		return err
	}
	if err := d.syncShelves(); err != nil {
		return err
	}
	temp := filepath.Join(d.dir, incomingName, manifestName)
	err := vfs.Replace(d.fs, filepath.Join(d.dir, manifestName), vfs.Replacement{Temp: temp}, m.write)
	if errors.Is(err, vfs.ErrNotDurable) {
		d.done = true // a power cut may bring back the older one, so both keep their objects
	}
	if err != nil {
		return err
	}
	d.done, d.old = true, m
	return d.sweep()
}

func (d *dirTarget) syncShelves() error {
	for shelf := range d.shelves {
		if err := d.fs.SyncDir(shelf); err != nil {
			return err
		}
	}
	return d.fs.SyncDir(filepath.Join(d.dir, objectsName))
}

// sweep deletes the objects that the manifest in place does not name. They may hold
// content that was redacted since, so their deletion is made durable too.
func (d *dirTarget) sweep() error {
	needed := d.old.sums()
	objects := filepath.Join(d.dir, objectsName)
	shelves, err := d.fs.ReadDir(objects)
	for _, shelf := range shelves {
		path := filepath.Join(objects, shelf.Name())
		files, readErr := d.fs.ReadDir(path)
		err = errors.Join(err, readErr)
		removed := 0
		for _, f := range files {
			if !needed[f.Name()] {
				removed++
				err = errors.Join(err, d.fs.Remove(filepath.Join(path, f.Name())))
			}
		}
		if removed > 0 {
			err = errors.Join(err, d.fs.SyncDir(path))
		}
	}
	return err
}

// abort deletes what was put in vain, where possible: the next backup does the rest.
func (d *dirTarget) abort() error {
	_ = d.later.wait()
	_ = removeAll(d.fs, filepath.Join(d.dir, incomingName))
	if !d.done && !d.doubted { // otherwise it is not known what the older backup needs
		_ = d.sweep()
	}
	return d.lock.Close()
}
