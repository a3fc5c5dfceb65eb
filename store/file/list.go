package file

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// # Finding a log that moves
//
// A log is in one of two places: its plain file, or its archive. Archiving makes the archive
// and then deletes the plain file; bringing back makes the plain file and then deletes the
// archive. So at every moment it is in one of them, and yet a reader that looks at one and
// then at the other can miss it: it may move from the second to the first between the looks.
// Looking more often makes that less likely, never impossible.
//
// The name's lock settles it. Moving a log needs it, and its file stays until the log
// is removed. Hence, after a look at both places that found nothing:
//
//   - There is no lock file: the log did not move between the looks, since that
//     would have left one. It does not exist. (A user may have deleted the file, so we
//     look once more.)
//   - There is one, and we get the lock: nothing moves while we look once more.
//   - There is one, and another has it: we look again, a few times. A log that is
//     in neither place each time is being created or removed, and either answer
//     is right.
//
// This writes nothing, and a log that did not move needs no lock.

// looks is how often a log is looked for while another holds its lock.
const looks = 10

// errGone is what a look returns when the log is in neither place.
var errGone = fs.ErrNotExist

// find calls look, which looks at both places of a log, until its answer is reliable. The
// caller does not have the name's lock; a caller that has it calls look directly.
func (s *Store) find(name string, look func() error) error {
	for n := 0; ; n++ {
		err := look()
		if !errors.Is(err, errGone) {
			return err
		}
		settled, err := s.lookLocked(name, look)
		if settled || n == looks {
			return err
		}
		time.Sleep(pollMax)
	}
}

// lookLocked looks once more with the name's lock, if it is free, and reports whether the
// answer is final.
func (s *Store) lookLocked(name string, look func() error) (settled bool, err error) {
	f, err := s.fs.OpenFile(s.lockPath(name), os.O_RDONLY, 0)
	if err != nil {
		// A path that may not be read, or is not a file, is not a lock.
		return true, look()
	}
	defer f.Close()
	ok, err := f.TryLock()
	if err != nil {
		return true, look()
	}
	if !ok {
		return false, errGone
	}
	if named, err := vfs.HasName(s.fs, f, s.lockPath(name)); err != nil || !named {
		return false, errGone // it was removed with its log, which may exist again by now
	}
	return true, look()
}

// exists returns the path at which the log is, or fs.ErrNotExist.
func (s *Store) exists(name string) (path string, err error) {
	err = s.find(name, func() error {
		path, err = s.existsLocked(name)
		return err
	})
	return path, err
}

// existsLocked is exists for a caller that has the name's lock.
func (s *Store) existsLocked(name string) (string, error) {
	for _, path := range []string{s.Path(name), s.archivePath(name)} {
		info, err := s.fs.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && path == s.Path(name) && s.isStray(name, info.Size()) {
			continue
		}
		return path, err
	}
	return "", errGone
}

// List yields every log once: the plain files, then those that are only archived, then those
// that moved between the two while they were listed. It cannot miss a log that exists
// throughout: if neither directory had it when it was read, the log moved, and so it has a
// lock file (see above).
func (s *Store) List(ctx context.Context) iter.Seq2[store.Stat, error] {
	return func(yield func(store.Stat, error) bool) {
		if err := s.check(ctx, "list", ""); err != nil {
			yield(store.Stat{}, err)
			return
		}
		l := lister{store: s, seen: make(map[string]bool)}
		if err := l.read(); err != nil {
			yield(store.Stat{}, s.fail("list", "", err))
			return
		}
		for _, c := range l.found {
			if err := ctx.Err(); err != nil {
				yield(store.Stat{}, err)
				return
			}
			stat, err := l.stat(c)
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed while we were listing
			}
			if err != nil {
				err = s.fail("list", c.name, err)
			}
			if !yield(stat, err) {
				return
			}
		}
	}
}

// lister is one listing.
type lister struct {
	store *Store
	found []candidate
	seen  map[string]bool
}

// candidate is a log, and where it was seen.
type candidate struct {
	name  string
	entry fs.DirEntry // nil: only its lock was seen
}

// read reads the directories. It reads all of them before anything is yielded: the
// caller may take its time over each log.
func (l *lister) read() error {
	s := l.store
	plain, err := s.fs.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) && !s.knows(s.dir) {
		return nil // nothing was ever created
	}
	if err != nil {
		return err
	}
	archived, err := s.fs.ReadDir(s.archives())
	if errors.Is(err, fs.ErrNotExist) {
		l.add(plain, logSuffix) // nothing was ever archived, so nothing has moved
		return nil
	}
	if err != nil {
		return err
	}
	// The locks come last: a log that moved between the two has one by now.
	locks, err := s.fs.ReadDir(s.housePath("locks"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.add(plain, logSuffix)
	l.add(archived, archiveSuffix)
	for _, entry := range locks {
		name, ok := strings.CutSuffix(entry.Name(), lockSuffix)
		if ok && !l.seen[name] && store.CheckName(name) == nil {
			l.found = append(l.found, candidate{name: name})
		}
	}
	return nil
}

func (l *lister) add(entries []fs.DirEntry, suffix string) {
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), suffix)
		if ok && !l.seen[name] && entry.Type().IsRegular() && store.CheckName(name) == nil {
			l.seen[name] = true
			l.found = append(l.found, candidate{name, entry})
		}
	}
}

// stat describes a log where it was seen, or wherever it is by now.
func (l *lister) stat(c candidate) (store.Stat, error) {
	if c.entry != nil {
		info, err := c.entry.Info()
		archived := strings.HasSuffix(c.entry.Name(), archiveSuffix)
		stray := err == nil && !archived && l.store.isStray(c.name, info.Size())
		if !stray && !errors.Is(err, fs.ErrNotExist) {
			return statOf(c.name, info, err, archived)
		}
	}
	var stat store.Stat
	err := l.store.find(c.name, func() (err error) {
		stat, err = l.store.statLocked(c.name)
		return err
	})
	return stat, err
}

// statLocked looks at both places of a log.
func (s *Store) statLocked(name string) (store.Stat, error) {
	for _, path := range []string{s.Path(name), s.archivePath(name)} {
		info, err := s.fs.Lstat(path)
		archived := path == s.archivePath(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || !archived && s.isStray(name, info.Size())) {
			continue
		}
		return statOf(name, info, err, archived)
	}
	return store.Stat{}, errGone
}

func statOf(name string, info fs.FileInfo, err error, archived bool) (store.Stat, error) {
	stat := store.Stat{Name: name, Archived: archived}
	if err == nil {
		stat.Size, stat.Modified = info.Size(), info.ModTime()
	}
	return stat, err
}
