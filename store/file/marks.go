package file

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// # Marks
//
// An index wants to know which logs have changed since it last looked. Looking at every file
// takes 0.6 s for 100,000 logs. So writers leave marks:
//
//	.coppice/changed/<name>   the log of that name may have changed; empty
//	.coppice/changed/.stamp   made by the reader of the marks; random
//
// The rules:
//
//  1. Taking the lock of a name marks it, before anything else. Nothing changes a log
//     without that lock, so there is no change without a mark before it. Under a lease
//     the mark stays where it is, by rule 2.
//  2. A mark is removed only with the lock, and only if the log then is exactly
//     what the index has on record. So no writer is between a mark and its change
//     at that moment, and no change goes unnoticed; the next writer takes the lock,
//     and marks again.
//  3. Marks are not synced. A power cut may lose one and keep the change, so the
//     epoch names the boot: after another one, an index trusts no mark.
//  4. A directory of marks that was deleted, or copied while logs were written, is worth
//     nothing. Its stamp was deleted with it, or is now another file: the epoch names the
//     stamp, too.
//  5. An index removes marks once it has seen the change, and a second index would
//     miss it. Only the index at IndexPath gets the marks.
//  6. A writer that creates many logs at once need not mark each of them: see
//     dropStamp.
//
// Programs that do not know marks are not covered. The times of the directories show
// that logs came or went; what such a program wrote into an existing file is found when
// an index looks at everything.

const (
	marksRoom = "changed"
	stampFile = ".stamp" // no log can have this name
)

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, name string) (stat store.Stat, err error) {
	if err := s.check(ctx, "describe", name); err != nil {
		return stat, err
	}
	err = s.find(name, func() error {
		stat, err = s.statLocked(name)
		return err
	})
	if err != nil {
		return stat, s.fail("describe", name, err)
	}
	return stat, nil
}

// markPath returns where the mark of a log is, or "" for the lock of something else.
func (s *Store) markPath(name string) string {
	if store.CheckName(name) != nil {
		return ""
	}
	return s.housePath(marksRoom, name)
}

// mark leaves a mark that the log may change from now on: rule 1. Nearly always the mark
// exists already, and then this costs one look.
func (l *nameLock) mark() error {
	if l.markPath == "" || l.unmarked {
		return nil
	}
	if _, err := l.store.fs.Stat(l.markPath); err == nil {
		return nil
	}
	err := l.makeMark()
	if errors.Is(err, fs.ErrNotExist) {
		if err = l.store.fs.MkdirAll(l.store.housePath(marksRoom), dirPerm); err == nil {
			err = l.makeMark()
		}
	}
	return err
}

func (l *nameLock) makeMark() error {
	f, err := l.store.fs.OpenFile(l.markPath, os.O_WRONLY|os.O_CREATE, filePerm)
	if err != nil {
		return err
	}
	return f.Close()
}

// Changes implements store.Store.
func (s *Store) Changes(ctx context.Context, reader string) (store.Changes, error) {
	var c store.Changes
	if err := s.check(ctx, "list", ""); err != nil {
		return c, err
	}
	boot, ok := s.fs.(interface{ Boot() string })
	if !ok || reader != s.IndexPath() {
		return c, nil
	}
	// All of this comes before the marks are read. A log that comes later leaves a mark,
	// which is read now or the next time.
	c.Listing = s.listing()
	stamp, err := s.stamp()
	if err != nil || boot.Boot() == "" {
		return store.Changes{}, nil // without a stamp an index must look at everything
	}
	entries, err := s.fs.ReadDir(s.housePath(marksRoom))
	if err != nil {
		return store.Changes{}, s.fail("list", "", err)
	}
	for _, e := range entries {
		if store.CheckName(e.Name()) == nil {
			c.Names = append(c.Names, e.Name())
		}
	}
	c.Epoch = boot.Boot() + " " + stamp
	return c, nil
}

// listing returns when logs last came, went or were replaced.
func (s *Store) listing() string {
	var times [2]time.Time
	for i, dir := range []string{s.dir, s.housePath("archive")} {
		if info, err := s.fs.Lstat(dir); err == nil {
			times[i] = info.ModTime()
		}
	}
	return fmt.Sprint(times[0].UnixNano(), times[1].UnixNano())
}

// stamp returns what identifies the directory of marks, and creates the directory if it does
// not exist: see rule 4.
func (s *Store) stamp() (string, error) {
	path := s.housePath(marksRoom, stampFile)
	data, err := readFile(s.fs, path)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = s.makeStamp(path)
	}
	if err != nil {
		return "", err
	}
	stat, err := s.fs.Stat(path)
	if err == nil && len(data) == 0 {
		err = errors.New("another process is writing the stamp of the change marks")
	}
	return fmt.Sprintf("%s %v", data, stat.File), err
}

// dropStamp starts another epoch, so that an index looks at everything. A writer of many logs
// calls it once they have their names, before reporting success. An index that read the old
// stamp no longer trusts it, and one that reads the next stamp finds the logs in place.
func (s *Store) dropStamp() error {
	err := s.fs.Remove(s.housePath(marksRoom, stampFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *Store) makeStamp(path string) ([]byte, error) {
	// Without logs there is nothing to mark, and reading must not create a store.
	if _, err := s.fs.Lstat(s.housePath()); err != nil {
		return nil, err
	}
	if err := s.fs.MkdirAll(s.housePath(marksRoom), dirPerm); err != nil {
		return nil, err
	}
	f, err := s.fs.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return nil, err
	}
	data := []byte(rand.Text())
	_, err = f.Write(data)
	return data, errors.Join(err, f.Close())
}

// Settle implements store.Store, by rule 2. The reader's name does not matter: by rule 5
// there is only one.
func (s *Store) Settle(ctx context.Context, _ string, seen map[string]*store.Stat) error {
	var failed []error
	for name, was := range seen {
		failed = append(failed, s.removeMark(ctx, name, was))
	}
	return errors.Join(failed...)
}

func (s *Store) removeMark(ctx context.Context, name string, was *store.Stat) error {
	if err := s.check(ctx, "settle", name); err != nil {
		return err
	}
	l := &nameLock{store: s, name: name}
	defer l.release()
	if ok, err := l.try(); !ok || err != nil {
		return err
	}
	now, err := s.statLocked(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && was == nil:
		// Taking the lock has created its file, which must go as it would with its log.
		err = s.fs.Remove(l.path)
		if errors.Is(err, fs.ErrNotExist) || openFilesKeepNames {
			err = nil
		}
	case err == nil && (was == nil || now.Size != was.Size || !now.Modified.Equal(was.Modified) || now.Archived != was.Archived):
		return nil // it has changed since
	}
	if err == nil {
		err = s.fs.Remove(l.markPath)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.fail("settle", name, err)
	}
	return nil
}

// try takes both locks of a log if they are free, without leaving a mark, and
// reports whether they were.
func (l *nameLock) try() (bool, error) {
	if err := l.open(); err != nil {
		return false, err
	}
	if ok, err := l.file.TryLock(); !ok || err != nil {
		return false, err
	}
	if named, err := vfs.HasName(l.store.fs, l.file, l.path); !named || err != nil || openFilesKeepNames {
		return named, err
	}
	// A writer under a lease whose lock file was deleted has the log's own lock.
	f, err := l.store.fs.OpenFile(l.store.Path(l.name), os.O_RDWR, 0)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist), nil
	}
	l.log = f
	return f.TryLock()
}
