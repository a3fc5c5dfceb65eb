package file

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Create makes a log. It appears under its name only when all of it is on disk:
// it is written and synced in tmp/, then renamed.
func (s *Store) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	return s.createWhen(ctx, name, lines, nil)
}

// createWhen is Create, but calls ready, if it is not nil, before the log appears.
func (s *Store) createWhen(ctx context.Context, name string, lines iter.Seq2[[]byte, error], ready func() error) (store.Log, error) {
	if err := s.check(ctx, "create", name); err != nil {
		return nil, err
	}
	log, err := s.create(ctx, name, lines, ready)
	if err != nil {
		return nil, s.fail("create", name, err)
	}
	return s.adopt(log)
}

func (s *Store) create(ctx context.Context, name string, lines iter.Seq2[[]byte, error], ready func() error) (*Log, error) {
	reserved, err := s.reserve(ctx, name)
	if err != nil {
		return nil, err
	}
	if reserved != nil {
		defer reserved.release()
	}
	lock, err := s.lockName(ctx, name)
	if err != nil {
		return nil, err
	}
	defer lock.release()
	if err := s.mustNotExist(name); err != nil {
		return nil, err
	}
	write := func(w io.Writer) error { return s.writeLines(ctx, name, w, lines) }
	err = s.publishAs(s.Path(name), vfs.Replacement{New: true, Before: ready}, write)
	if errors.Is(err, fs.ErrExist) {
		err = store.ErrExist
	}
	if err != nil {
		return nil, err
	}
	source, err := s.openPlain(name)
	if err != nil { // it exists, but cannot be handed out
		return nil, &store.Error{Op: "create", Name: name, Path: s.Path(name), Kind: store.ErrUnknown, Err: err}
	}
	log := newLog(s, name, source)
	if s.opts.Sync == Never {
		log.sync.wrote(1, 0) // the lines that it begins with: Flush has to sync them
	}
	return log, nil
}

// mustNotExist returns an error if the log exists. The caller holds the name's lock.
func (s *Store) mustNotExist(name string) error {
	for _, path := range []string{s.Path(name), s.archivePath(name)} {
		_, err := s.fs.Lstat(path)
		if err == nil {
			return store.ErrExist
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (s *Store) writeLines(ctx context.Context, name string, w io.Writer, lines iter.Seq2[[]byte, error]) error {
	size := int64(0)
	for line, err := range lines {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = s.checkLine(name, line)
		}
		size += int64(len(line)) + 1
		if err == nil {
			err = store.MaxSession.Check("create", name, size, s.opts.MaxLog)
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
		if _, err := w.Write(newline); err != nil {
			return err
		}
	}
	return nil
}

// publish writes a file so that it is at path either whole or not at all, also
// after a power cut.
func (s *Store) publish(path string, write func(io.Writer) error) error {
	return s.publishAs(path, vfs.Replacement{}, write)
}

// publishAs is publish with a replacement of the caller's choice.
func (s *Store) publishAs(path string, how vfs.Replacement, write func(io.Writer) error) error {
	for _, dir := range []string{s.dir, s.housePath("tmp"), filepath.Dir(path)} {
		if err := s.mkdir(dir); err != nil {
			return err
		}
	}
	how.Perm, how.NoSync = filePerm, s.opts.Sync == Never
	if how.Temp == "" {
		how.Temp = s.temp()
	}
	err := vfs.Replace(s.fs, path, how, write)
	if errors.Is(err, vfs.ErrNotDurable) {
		return &store.Error{Op: "sync", Path: filepath.Dir(path), Kind: store.ErrUnknown, Err: err}
	}
	return err
}

// publishLog publishes the plain file of a log, locked from the moment it gets its name: no
// process archives or removes it before the caller is done. The caller has the lock of the
// name, whose file may have been deleted, and closes the returned file. If isNew, the name
// must be free. ready, if it is not nil, is called before the file gets its name.
func (s *Store) publishLog(ctx context.Context, name string, isNew bool, write func(io.Writer) error, ready func() error) (locked vfs.File, err error) {
	how := vfs.Replacement{New: isNew, Temp: s.temp()}
	how.Before = func() (err error) {
		if locked, err = s.lockFresh(ctx, name, how.Temp); err == nil && ready != nil {
			err = ready()
		}
		return err
	}
	if err = s.publishAs(s.Path(name), how, write); err != nil {
		closeIf(locked)
		return nil, err
	}
	return locked, nil
}

// lockFresh locks a file that is about to become a log's plain file.
func (s *Store) lockFresh(ctx context.Context, name, temp string) (vfs.File, error) {
	if openFilesKeepNames {
		return nil, nil
	}
	f, err := s.fs.OpenFile(temp, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := s.lockFile(ctx, name, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// temp returns the name of a file on its way to another.
func (s *Store) temp() string { return s.housePath("tmp", rand.Text()) }
