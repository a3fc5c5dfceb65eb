package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// trash is the store's trash.
type trash struct{ *Store }

// Trash implements store.Store.
func (s *Store) Trash() store.Trash { return trash{s} }

// The form of an ID's time: sortable, fixed width, allowed in file names.
const trashTime = "20060102T150405.000000000Z"

// Remove moves the log to the trash. It is gone from the store at once, and
// from the disk when the trash is emptied.
func (s *Store) Remove(ctx context.Context, name string) error {
	return s.removeIf(ctx, name, "", func() error { return nil })
}

// RemoveAt implements store.Store. The log cannot grow between the check and the removal: an
// append needs the lock that is held for both.
func (s *Store) RemoveAt(ctx context.Context, name string, end store.Pos) error {
	return s.removeAs(ctx, name, "", end)
}

// Take implements store.Trash.
func (s trash) Take(ctx context.Context, id string, end store.Pos) error {
	item, err := removal("remove", id)
	if err != nil {
		return err
	}
	return s.removeAs(ctx, item.Name, id, end)
}

func (s *Store) removeAs(ctx context.Context, name, id string, end store.Pos) error {
	log, err := s.Open(ctx, name) // before the lock, which opening may need
	if err != nil {
		return err
	}
	defer log.Close()
	return s.removeIf(ctx, name, id, func() error {
		now, err := log.End(ctx)
		if err == nil && now != end {
			err = &store.Error{
				Op: "remove", Name: name, Path: s.Path(name), Offset: int64(end), At: true, Kind: store.ErrConflict,
				Err: fmt.Errorf("the log ends at byte %d", now),
			}
		}
		return err
	})
}

// removeIf removes a log unless may, called with the log's lock held, returns an
// error. If id is empty, the removal gets a new one.
func (s *Store) removeIf(ctx context.Context, name, id string, may func() error) error {
	if err := s.check(ctx, "remove", name); err != nil {
		return err
	}
	if _, err := s.exists(name); err != nil {
		return s.fail("remove", name, err) // without creating a lock file
	}
	lock, err := s.lockName(ctx, name)
	if err != nil {
		return s.fail("remove", name, err)
	}
	defer lock.release()
	if err := may(); err != nil {
		return s.fail("remove", name, err)
	}
	if lock.dirty { // the note goes with the lock file, so settle it now
		err = s.rewriteLocked(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // an archive was rewritten already
		return s.fail("remove", name, err)
	}
	if err := s.removeLocked(ctx, lock, id); err != nil {
		return s.fail("remove", name, err)
	}
	return nil
}

func (s *Store) removeLocked(ctx context.Context, lock *nameLock, id string) error {
	name := lock.name
	path, err := s.existsLocked(name)
	if err == nil && id != "" {
		err = s.notThrown(id)
	}
	if err == nil {
		err = lock.relock(ctx)
	}
	if err == nil {
		err = s.mkdir(s.housePath("trash"))
	}
	// A log in both forms is left over from an interrupted archiving. The archive, which does
	// not count, goes first: alone, it would bring back an old state of the log.
	switch {
	case err != nil:
		return err
	case path == s.Path(name):
		err = s.discard(s.archivePath(name))
	default: // the plain file is gone, and that must be durable too
		err = s.syncDir(s.dir)
	}
	if err != nil {
		return err
	}
	suffix := strings.TrimPrefix(filepath.Base(path), name)
	if id == "" {
		id = name + "." + time.Now().UTC().Format(trashTime)
	}
	if err := s.move(path, s.housePath("trash", id+suffix)); err != nil {
		return err
	}
	// Writers that have the log open find their lock gone and look for the log.
	// Where open files cannot be removed, the log cannot have been open.
	if err := s.fs.Remove(s.lockPath(name)); err != nil && runtime.GOOS != "windows" {
		return &store.Error{Op: "remove", Name: name, Path: s.lockPath(name), Kind: store.ErrUnknown, Err: err}
	}
	return nil
}

// move renames a file and makes both ends of the move durable, the new first:
// a crash in between may leave both names, not neither.
func (s *Store) move(from, to string) error {
	if err := s.fs.Rename(from, to); err != nil {
		return err
	}
	if err := s.syncDir(filepath.Dir(to)); err != nil {
		return err
	}
	return s.syncDir(filepath.Dir(from))
}

// moveBack is move to a name that must be free.
func (s *Store) moveBack(from, to string) error {
	durable := func() error { return s.syncDir(filepath.Dir(to)) }
	if err := vfs.MoveNew(s.fs, from, to, durable); err != nil {
		return err
	}
	// On a file system without hard links, the file was renamed.
	return errors.Join(durable(), s.syncDir(filepath.Dir(from)))
}

// discard deletes a file that may not be there, durably. If it is not there, the
// process that deleted it may have been killed before that was durable.
func (s *Store) discard(path string) error {
	err := s.fs.Remove(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = s.syncDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its directory does not exist either
	}
	return err
}

// List returns the removed logs, the latest removal first.
func (s trash) List(ctx context.Context) ([]store.Trashed, error) {
	all, err := listRoom(ctx, s.Store, "trash", parseTrashed, func(item *store.Trashed, size int64) { item.Size = size })
	sort.Slice(all, func(i, j int) bool { return all[i].Removed.After(all[j].Removed) })
	return all, err
}

// parseTrashed reads the name of a file in the trash.
func parseTrashed(file string) (store.Trashed, bool) {
	id, ok := strings.CutSuffix(file, archiveSuffix)
	if !ok {
		id, ok = strings.CutSuffix(file, logSuffix)
	}
	cut := len(id) - len(trashTime) - 1
	if !ok || cut <= 0 || id[cut] != '.' {
		return store.Trashed{}, false
	}
	removed, err := time.Parse(trashTime, id[cut+1:])
	if err != nil || store.CheckName(id[:cut]) != nil {
		return store.Trashed{}, false
	}
	return store.Trashed{ID: id, Name: id[:cut], Removed: removed}, true
}

// removal reads the ID of a removal.
func removal(op, id string) (store.Trashed, error) {
	item, ok := parseTrashed(id + logSuffix)
	if !ok {
		return item, &store.Error{Op: op, Kind: store.ErrInvalid, Err: fmt.Errorf("%.80q does not name a removal", id)}
	}
	return item, nil
}

// Add implements store.Trash.
func (s trash) Add(ctx context.Context, id string, lines iter.Seq2[[]byte, error]) error {
	const op = "add to trash"
	item, err := removal(op, id)
	if err != nil {
		return err
	}
	if err := s.check(ctx, op, item.Name); err != nil {
		return err
	}
	write := func(w io.Writer) error { return s.writeLines(ctx, item.Name, w, lines) }
	if err = s.notThrown(id); err == nil {
		err = s.publishAs(s.housePath("trash", id+logSuffix), vfs.Replacement{New: true}, write)
	}
	if errors.Is(err, fs.ErrExist) {
		err = store.ErrExist
	}
	if err != nil {
		return s.fail(op, item.Name, err)
	}
	return nil
}

// notThrown returns store.ErrExist if the trash has a removal.
func (s *Store) notThrown(id string) error {
	for _, suffix := range []string{logSuffix, archiveSuffix} {
		if _, err := s.fs.Lstat(s.housePath("trash", id+suffix)); !errors.Is(err, fs.ErrNotExist) {
			return cmp.Or(err, store.ErrExist)
		}
	}
	return nil
}

// Restore brings a removed log back under its name. It returns store.ErrExist
// if there is a log of that name again, and store.ErrNotExist if the trash has
// no such removal.
func (s trash) Restore(ctx context.Context, id string) error {
	item, err := removal("restore", id)
	if err != nil {
		return err
	}
	if err := s.check(ctx, "restore", item.Name); err != nil {
		return err
	}
	if s.notThrown(id) != nil {
		if err := store.NoteRemovals(ctx, s.Store, id); err != nil {
			return err
		}
	}
	lock, err := s.lockName(ctx, item.Name)
	if err != nil {
		return s.fail("restore", item.Name, err)
	}
	defer lock.release()
	if err := s.restoreLocked(item); err != nil {
		return s.fail("restore", item.Name, err)
	}
	return nil
}

func (s *Store) restoreLocked(item store.Trashed) error {
	if err := s.mustNotExist(item.Name); err != nil {
		return err
	}
	err := s.moveBack(s.housePath("trash", item.ID+logSuffix), s.Path(item.Name))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.mkdir(s.housePath("archive")); err != nil {
		return err
	}
	err = s.moveBack(s.housePath("trash", item.ID+archiveSuffix), s.archivePath(item.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return &store.Error{Op: "restore", Name: item.Name, Kind: store.ErrNotExist, Err: fmt.Errorf("the trash has no %q", item.ID)}
	}
	return err
}

// Empty permanently deletes the logs that were removed before a moment, and returns them.
func (s trash) Empty(ctx context.Context, before time.Time) ([]store.Trashed, error) {
	all, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(item store.Trashed) bool { return !item.Removed.Before(before) })
	if err := store.NoteRemovals(ctx, s.Store, store.RemovalIDs(all)...); err != nil {
		return nil, err
	}
	var gone []store.Trashed
	for _, item := range all {
		for _, suffix := range []string{logSuffix, archiveSuffix} {
			if err := s.discard(s.housePath("trash", item.ID+suffix)); err != nil {
				return gone, s.fail("empty trash", item.Name, err)
			}
		}
		gone = append(gone, item)
	}
	return gone, nil
}

// Read implements store.Trash.
func (s trash) Read() (store.Store, error) {
	removed, err := Open(s.housePath("trash"), &s.opts)
	if err != nil {
		return nil, err
	}
	removed.isTrash = true
	return removed, nil
}
