package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/coppice-dev/coppice/store"
)

// InspectLog implements store.Mender.
func (s *Store) InspectLog(ctx context.Context, name string) iter.Seq2[store.Fault, error] {
	return func(yield func(store.Fault, error) bool) {
		if err := s.check(ctx, "inspect", name); err != nil {
			yield(store.Fault{}, err)
			return
		}
		for _, f := range s.faultsOf(name) {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// faultsOf returns the faults of a log's files that show without reading them.
func (s *Store) faultsOf(name string) []store.Fault {
	var all []store.Fault
	if info, err := s.fs.Lstat(s.Path(name)); err == nil && info.Size() > 0 && s.isThere(s.archivePath(name)) {
		all = append(all, store.Fault{Kind: store.FaultLeftover, Name: name, Path: s.archivePath(name)})
	}
	if info, err := s.fs.Lstat(s.lockPath(name)); err == nil && info.Size() > 0 {
		all = append(all, store.Fault{Kind: store.FaultUnsynced, Name: name, Path: s.lockPath(name)})
	}
	for _, path := range []string{s.Path(name), s.backupPath(name), s.archivePath(name), s.lockPath(name)} {
		if f, wide := s.wideMode(path); wide {
			f.Name = name
			all = append(all, f)
		}
	}
	return all
}

func (s *Store) isThere(path string) bool {
	_, err := s.fs.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// wideMode reports whether a file has more permissions than it should. Permissions on Windows
// work differently and are not checked.
func (s *Store) wideMode(path string) (store.Fault, bool) {
	info, err := s.fs.Lstat(path)
	if err != nil || runtime.GOOS == "windows" {
		return store.Fault{}, false
	}
	f := store.Fault{Kind: store.FaultPermissions, Path: path, Mode: info.Mode().Perm(), Fit: 0o600}
	switch {
	case info.IsDir():
		f.Fit = 0o700
	case !info.Mode().IsRegular():
		return f, false
	}
	return f, f.Mode&^f.Fit != 0
}

// InspectRest implements store.Mender.
func (s *Store) InspectRest(ctx context.Context) iter.Seq2[store.Fault, error] {
	return func(yield func(store.Fault, error) bool) {
		for _, look := range []func(context.Context) ([]store.Fault, error){s.ignored, s.wideModes, s.stale} {
			found, err := look(ctx)
			for _, f := range found {
				if !yield(f, nil) {
					return
				}
			}
			if err != nil {
				yield(store.Fault{}, err)
				return
			}
		}
	}
}

// ignored returns the files that look like logs and are not listed.
func (s *Store) ignored(ctx context.Context) ([]store.Fault, error) {
	if err := s.check(ctx, "list", ""); err != nil {
		return nil, err
	}
	entries, err := s.fs.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the first log creates the store
		return nil, s.fail("inspect", "", err)
	}
	var all []store.Fault
	for _, e := range entries {
		name, isLog := strings.CutSuffix(e.Name(), logSuffix)
		var why error
		switch {
		case !isLog:
		case !e.Type().IsRegular():
			why = errors.New("it is not a regular file, so it does not count as a session")
		case store.CheckName(name) != nil:
			why = fmt.Errorf("a session cannot have this name: %w", store.CheckName(name))
		}
		if why != nil {
			all = append(all, store.Fault{Kind: store.FaultIgnored, Path: filepath.Join(s.dir, e.Name()), Err: why})
		}
	}
	return all, nil
}

// wideModes returns the files and directories, except those of single logs, that
// others than their owner can get at.
func (s *Store) wideModes(context.Context) ([]store.Fault, error) {
	var all []store.Fault
	if f, wide := s.wideMode(s.dir); wide {
		all = append(all, f)
	}
	err := s.wideModesIn(s.housePath(), &all)
	return all, err
}

func (s *Store) wideModesIn(dir string, all *[]store.Fault) error {
	entries, err := s.fs.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed in the meantime, or never created
	}
	if f, wide := s.wideMode(dir); wide {
		*all = append(*all, f)
	}
	if err != nil {
		return s.fail("inspect", "", err)
	}
	ofLogs := dir == s.housePath("archive") || dir == s.housePath("locks") // InspectLog looks at these
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			if err := s.wideModesIn(path, all); err != nil {
				return err
			}
		} else if f, wide := s.wideMode(path); wide && !ofLogs {
			*all = append(*all, f)
		}
	}
	return nil
}

// Mend implements store.Mender.
func (s *Store) Mend(ctx context.Context, f store.Fault) error {
	switch f.Kind {
	case store.FaultPermissions:
		return s.narrow(ctx, f)
	case store.FaultTemporary:
		return s.removeTemporary(ctx, filepath.Base(f.Path))
	case store.FaultLock:
		return s.removeLock(ctx, f.Name)
	}
	return &store.Error{Op: "mend", Name: f.Name, Path: f.Path, Err: errors.ErrUnsupported}
}

// narrow removes permissions that are too wide.
func (s *Store) narrow(ctx context.Context, f store.Fault) error {
	if err := s.check(ctx, "list", ""); err != nil {
		return err
	}
	below, err := filepath.Rel(s.dir, f.Path)
	if err != nil || !filepath.IsLocal(below) {
		return &store.Error{Op: "mend", Path: f.Path, Kind: store.ErrInvalid, Err: errors.New("it is not a file of the store")}
	}
	if err := s.fs.Chmod(f.Path, f.Mode&f.Fit); err != nil {
		return s.fail("mend", f.Name, err)
	}
	return nil
}
