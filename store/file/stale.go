package file

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// StaleAfter is how long no writer needs for a temporary file.
const StaleAfter = time.Hour

// Stale is a file that a program left when it was interrupted. It holds nothing
// that was ever acknowledged.
type Stale struct {
	Path string
	Size int64
	Name string // of the log that it is the lock of and that does not exist; "" for a temporary file
}

// Stale returns the temporary files that are older than StaleAfter, and the locks
// of logs that do not exist.
func (s *Store) Stale(ctx context.Context) ([]Stale, error) {
	if err := s.check(ctx, "list", ""); err != nil {
		return nil, err
	}
	var stale []Stale
	for _, room := range []string{"tmp", "locks"} {
		entries, err := s.fs.ReadDir(s.room(room))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, s.fail("look for stale files", "", err)
		}
		for _, e := range entries {
			info, err := s.fs.Lstat(s.room(room, e.Name()))
			if err != nil || !info.Mode().IsRegular() {
				continue // removed meanwhile, or none of ours
			}
			name, isLock := strings.CutSuffix(e.Name(), lockSuffix)
			switch {
			case room == "tmp" && time.Since(info.ModTime()) >= StaleAfter:
				stale = append(stale, Stale{Path: s.room(room, e.Name()), Size: info.Size()})
			case room == "locks" && isLock && name != countLock && s.isMissing(name):
				stale = append(stale, Stale{Path: s.room(room, e.Name()), Size: info.Size(), Name: name})
			}
		}
	}
	return stale, nil
}

func (s *Store) isMissing(name string) bool {
	_, err := s.exists(name)
	return errors.Is(err, fs.ErrNotExist)
}

// RemoveStale deletes a file that Stale returned, unless it is in use by now. A
// lock is removed by whoever holds it, as with its log: who waited for it then
// finds that it leads nowhere and makes another.
func (s *Store) RemoveStale(ctx context.Context, f Stale) error {
	if f.Name == "" {
		return s.removeTemporary(ctx, filepath.Base(f.Path))
	}
	if err := s.check(ctx, "remove stale lock", f.Name); err != nil {
		return err
	}
	lock, err := s.lockName(ctx, f.Name)
	if err != nil {
		return s.fail("remove stale lock", f.Name, err)
	}
	defer lock.release()
	if _, err := s.existsLocked(f.Name); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := s.fs.Remove(s.lockPath(f.Name)); err != nil && runtime.GOOS != "windows" {
		return s.fail("remove stale lock", f.Name, err)
	}
	return nil
}

func (s *Store) removeTemporary(ctx context.Context, name string) error {
	if err := s.check(ctx, "list", ""); err != nil {
		return err
	}
	if err := s.fs.Remove(s.room("tmp", name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.fail("remove stale file", "", err)
	}
	return nil
}
