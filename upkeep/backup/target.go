package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

const (
	objectsName  = "objects"
	lockName     = "lock"
	incomingName = "incoming" // a directory for files before they have their names
	// maxGuarded is the size of the largest file in which a guard looks for redacted secrets: it
	// is in memory meanwhile.
	maxGuarded = 1 << 30
)

// target is a directory that a home is copied into. It is the backup, or what is packed into
// one and then deleted.
type target struct {
	fs         vfs.FS
	dir        string
	archive    string // the file that the directory is packed into, or ""
	lock       vfs.File
	old        *manifest         // what can be read of the one that is there
	had        bool              // there is a backup
	doubted    bool              // its manifest cannot be trusted, or is lost
	logs       map[string]*entry // the files of the older backup that have a log, plain or archived
	blobs      map[string]entry  // and those that have a blob
	objectDirs map[string]bool
	later      *background
	count      int              // of puts, for names
	have       map[string]int64 // the sizes of the objects that are whole, or will be soon
	rotten     map[string]bool  // the objects that were not what their names say
	done       bool             // the new manifest is in place
}

func openTarget(fsys vfs.FS, path string, packed bool) (*target, error) {
	t := &target{fs: fsys, dir: path, objectDirs: make(map[string]bool), later: newBackground(), have: make(map[string]int64), rotten: make(map[string]bool)}
	if packed {
		t.archive, t.dir = path, filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".incoming")
	}
	if err := mustBeBackup(fsys, t.dir); err != nil {
		return nil, err
	}
	if err := vfs.Mkdir(fsys, filepath.Join(t.dir, objectsName), dirPerm); err != nil {
		return nil, err
	}
	lockPath := filepath.Join(t.dir, lockName)
	lock, err := fsys.OpenFile(lockPath, os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return nil, err
	}
	t.lock = lock
	ok, err := lock.TryLock()
	if ok && err == nil { // the one that packed an archive may just have deleted its lock
		ok, err = vfs.HasName(fsys, lock, lockPath)
	}
	if err == nil && !ok {
		err = locked(path)
	}
	if err == nil {
		err = t.look()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return t, nil
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

// look reads the older backup's manifest, and removes the files that a killed process left.
func (t *target) look() error {
	old, err := t.openOld()
	t.had = !errors.Is(err, fs.ErrNotExist)
	if err == nil {
		t.old, err = old.list() // even if it is damaged, the next one will be right
		err = errors.Join(err, old.close())
	}
	if errors.Is(err, store.ErrInvalid) {
		return err // a newer program made it
	}
	shelves, objectsErr := t.fs.ReadDir(filepath.Join(t.dir, objectsName))
	t.doubted = err != nil && (t.had || objectsErr != nil || len(shelves) > 0) // or the manifest is lost
	t.logs, t.blobs = t.old.logs(), t.old.blobs()
	incoming := filepath.Join(t.dir, incomingName)
	if err := removeAll(t.fs, incoming); err != nil {
		return err
	}
	return t.fs.MkdirAll(incoming, dirPerm)
}

func (t *target) openOld() (source, error) {
	if t.archive != "" {
		return openTar(t.fs, t.archive)
	}
	return openDir(t.fs, t.dir)
}

func (t *target) objectDir(sum string) string { return filepath.Join(t.dir, objectsName, sum[:2]) }

func objectPath(dir, sum string) string { return filepath.Join(dir, objectsName, sum[:2], sum) }

// has returns the size of content that is there and whole, and need not be written again.
func (t *target) has(ctx context.Context, sum string) (int64, bool) {
	if _, ok := store.Ref("sha256:" + sum).Hex(); !ok {
		return 0, false
	}
	if size, ok := t.have[sum]; ok {
		return size, true
	}
	size, ok := t.whole(ctx, sum)
	if ok {
		// A process that was killed may have made it and not made its name durable.
		t.objectDirs[t.objectDir(sum)], t.have[sum] = true, size
	}
	return size, ok
}

// whole reads an object and returns its size if it is what its name says.
func (t *target) whole(ctx context.Context, sum string) (int64, bool) {
	path := objectPath(t.dir, sum)
	info, err := t.fs.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	f, err := t.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	is, err := (&content{ctx: ctx, file: f, size: info.Size(), path: path}).hash()
	if ok := err == nil && is == sum; ok || ctx.Err() != nil {
		return info.Size(), ok
	}
	if t.archive == "" { // otherwise it was left by a process that was killed
		t.rotten[sum] = true
	}
	return 0, false
}

// put writes an object. It gets its name when it is on the disk. Content may be put that the
// manifest does not have in the end.
func (t *target) put(c *content) error {
	t.count++
	incoming := filepath.Join(t.dir, incomingName, strconv.Itoa(t.count))
	f, err := t.fs.OpenFile(incoming, os.O_RDWR|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return err
	}
	if err := c.copyTo(f); err != nil {
		return errors.Join(err, f.Close(), t.fs.Remove(incoming))
	}
	shelf, object := t.objectDir(c.sum), objectPath(t.dir, c.sum)
	if err := t.fs.MkdirAll(shelf, dirPerm); err != nil {
		return errors.Join(err, f.Close())
	}
	t.objectDirs[shelf], t.have[c.sum] = true, c.size
	return t.later.do(func() error {
		var err error
		if t.archive == "" {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		return t.fs.Rename(incoming, object)
	})
}

// readOld calls use with files of the older backup, in the order of its manifest, and returns those
// that are whole.
func (t *target) readOld(ctx context.Context, files []entry, use func(e *entry, r io.Reader) error) (whole []entry, err error) {
	old, err := t.openOld()
	if err != nil {
		return nil, err
	}
	reading := newReading(old, nil)
	for i := range files {
		_, wrong, oneErr := reading.one(ctx, &files[i], func(e *entry, r io.Reader) error {
			err := use(e, r)
			if _, unread := errors.AsType[*readError](err); unread {
				return nil // that is what is wrong
			}
			return err
		})
		if oneErr != nil {
			return nil, errors.Join(oneErr, old.close())
		}
		if wrong == nil {
			whole = append(whole, files[i])
		}
	}
	return whole, old.close()
}

// keep makes sure that the content of files of the older backup is there, unless it has what a
// guard knows, which may be nil. The files are in the order of the manifest, and those are
// returned that are there.
func (t *target) keep(ctx context.Context, guard *clean.Guard, files ...entry) ([]entry, error) {
	secret := make(map[string]bool)
	kept, err := t.readOld(ctx, files, func(e *entry, r io.Reader) error {
		if guard != nil {
			data, err := io.ReadAll(io.LimitReader(r, maxGuarded+1))
			if err != nil {
				return err
			}
			has, err := guard.Has(data)
			if secret[e.Path] = has || err != nil || len(data) > maxGuarded; secret[e.Path] {
				return nil
			}
			r = bytes.NewReader(data)
		}
		if _, ok := t.has(ctx, e.SHA256); ok {
			return nil
		}
		err := t.put(&content{ctx: ctx, from: r, size: e.Size, path: e.Path})
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // the older backup has only a part of it, so it is not whole
		}
		return err
	})
	return slices.DeleteFunc(kept, func(e entry) bool { return secret[e.Path] }), err
}

// publish makes the manifest, and what it names, the backup: it packs them into the archive, or
// makes all objects durable, then puts the manifest into place, and then deletes the objects that
// are no longer needed.
func (t *target) publish(ctx context.Context, m *manifest, progress func(done, total int64)) error {
	if err := t.later.wait(); err != nil {
		return err
	}
	path, write := filepath.Join(t.dir, manifestName), m.write
	if t.archive != "" {
		path, write = t.archive, func(w io.Writer) error { return t.pack(ctx, m, progress, w) }
	} else if err := t.syncObjectDirs(); err != nil {
		return err
	}
	err := vfs.Replace(t.fs, path, vfs.Replacement{Temp: filepath.Join(t.dir, incomingName, "whole")}, write)
	if errors.Is(err, vfs.ErrNotDurable) {
		t.done = true // a power cut may bring back the older one, so both keep their objects
	}
	if err != nil || t.archive != "" {
		return err
	}
	t.done, t.old = true, m
	return t.sweep()
}

func (t *target) syncObjectDirs() error {
	for shelf := range t.objectDirs {
		if err := t.fs.SyncDir(shelf); err != nil {
			return err
		}
	}
	return t.fs.SyncDir(filepath.Join(t.dir, objectsName))
}

// sweep deletes the objects that the manifest in place does not name. They may hold
// content that was redacted since, so their deletion is made durable too.
func (t *target) sweep() error {
	needed := t.old.sums()
	objects := filepath.Join(t.dir, objectsName)
	shelves, err := t.fs.ReadDir(objects)
	for _, shelf := range shelves {
		path := filepath.Join(objects, shelf.Name())
		files, readErr := t.fs.ReadDir(path)
		err = errors.Join(err, readErr)
		removed := 0
		for _, f := range files {
			if !needed[f.Name()] {
				removed++
				err = errors.Join(err, t.fs.Remove(filepath.Join(path, f.Name())))
			}
		}
		if removed > 0 {
			err = errors.Join(err, t.fs.SyncDir(path))
		}
	}
	return err
}

// close ends the backup. It deletes the files that no backup needs, if it can; the next one
// deletes the rest.
func (t *target) close() error {
	_ = t.later.wait()
	err := removeAll(t.fs, filepath.Join(t.dir, incomingName))
	if t.archive != "" {
		return t.removeDir(err)
	}
	if !t.done && !t.doubted { // otherwise it is not known what the older backup needs
		_ = t.sweep()
	}
	return t.lock.Close()
}

// removeDir deletes the directory. The lock goes last, so that nobody else works in it before. What
// cannot be deleted is named, because it has the home in the clear.
func (t *target) removeDir(left error) error {
	left = cmp.Or(left, removeAll(t.fs, filepath.Join(t.dir, objectsName)))
	if left != nil {
		left = &store.Error{
			Op: "delete the copy of the home beside the backup", Path: t.dir, Err: left,
			Hint: "delete that directory: it has what the home had, and is not a backup",
		}
	}
	free := func() {
		if t.fs.Remove(filepath.Join(t.dir, lockName)) == nil {
			_ = t.fs.Remove(t.dir)
		}
	}
	if runtime.GOOS == "windows" { // where nobody removes a file that is open, here or elsewhere
		defer free()
	} else {
		free()
	}
	return errors.Join(left, t.lock.Close())
}
