package file

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// stale returns what interrupted programs left behind: temporary files older than store.StaleAfter,
// and the locks of logs that do not exist. They hold nothing that was ever acknowledged.
func (s *Store) stale(ctx context.Context) ([]store.Fault, error) {
	if err := s.check(ctx, "list", ""); err != nil {
		return nil, err
	}
	var stale []store.Fault
	for _, room := range []string{"tmp", "locks"} {
		entries, err := s.fs.ReadDir(s.housePath(room))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, s.fail("look for stale files", "", err)
		}
		for _, e := range entries {
			info, err := s.fs.Lstat(s.housePath(room, e.Name()))
			if err != nil || !info.Mode().IsRegular() {
				continue // removed in the meantime, or not ours
			}
			f := store.Fault{Path: s.housePath(room, e.Name()), Size: info.Size()}
			name, isLock := strings.CutSuffix(e.Name(), lockSuffix)
			switch {
			case room == "tmp" && time.Since(info.ModTime()) >= store.StaleAfter:
				f.Kind = store.FaultTemporary
			case room == "locks" && isLock && name != countLock && s.isMissing(name):
				f.Kind, f.Name = store.FaultLock, name
			default:
				continue
			}
			stale = append(stale, f)
		}
	}
	return stale, nil
}

func (s *Store) isMissing(name string) bool {
	_, err := s.exists(name)
	return errors.Is(err, fs.ErrNotExist)
}

// removeLock deletes the lock of a log that does not exist, unless the log exists by now. The
// holder removes the lock, as with its log: a waiter then finds that its file has no name and
// makes another.
func (s *Store) removeLock(ctx context.Context, name string) error {
	if err := s.check(ctx, "remove stale lock", name); err != nil {
		return err
	}
	lock, err := s.lockName(ctx, name)
	if err != nil {
		return s.fail("remove stale lock", name, err)
	}
	defer lock.release()
	if _, err := s.existsLocked(name); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := s.fs.Remove(s.lockPath(name)); err != nil && runtime.GOOS != "windows" {
		return s.fail("remove stale lock", name, err)
	}
	return nil
}

func (s *Store) removeTemporary(ctx context.Context, name string) error {
	if err := s.check(ctx, "list", ""); err != nil {
		return err
	}
	if err := s.fs.Remove(s.housePath("tmp", name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.fail("remove stale file", "", err)
	}
	return nil
}
