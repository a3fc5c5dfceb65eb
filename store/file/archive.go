package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Archive compresses a log. It can be read as before, without being unpacked as
// a whole; the first append to it brings the plain file back.
func (s *Store) Archive(ctx context.Context, name string) error {
	return s.changeForm(ctx, "archive", name, s.archiveLocked)
}

// Unarchive brings an archived log's plain file back. A log that is not
// archived is left alone.
func (s *Store) Unarchive(ctx context.Context, name string) error {
	return s.changeForm(ctx, "unarchive", name, func(ctx context.Context, lock *nameLock) error {
		if lock.log != nil || openFilesKeepNames && s.isThere(s.Path(name)) {
			return s.putAsideArchive(name)
		}
		return s.restorePlain(ctx, name)
	})
}

func (s *Store) changeForm(ctx context.Context, op, name string, change func(context.Context, *nameLock) error) error {
	if err := s.check(ctx, op, name); err != nil {
		return err
	}
	if _, err := s.exists(name); err != nil {
		return s.fail(op, name, err)
	}
	lock, err := s.lockName(ctx, name)
	if err != nil {
		return s.fail(op, name, err)
	}
	defer lock.release()
	if err := change(ctx, lock); err != nil {
		return s.fail(op, name, err)
	}
	return nil
}

// # Moving a log without losing it
//
// The lock file decides whose turn it is. But a user may delete it (rm, a restored
// directory), and then two programs hold a lock of the same name. So the lock file alone
// never suffices to delete or replace something that counts:
//
//   - Only the holder of the lock on a plain file changes, packs, replaces or removes it,
//     and only as long as the file has its name.
//   - A new plain file gets its name by a link, which replaces nothing, and is locked
//     before that (publishLog).
//   - Only a process that has the plain file locked deletes an archive beside it, or puts
//     it aside. An archiver holds that lock until the plain file is gone.

// archiveLocked writes the archive, reads it back, and only then deletes the
// plain file. A crash in between leaves both, and the plain one counts.
func (s *Store) archiveLocked(ctx context.Context, lock *nameLock) error {
	name := lock.name
	if err := lock.relock(ctx); err != nil {
		return err
	}
	was, sum, err := s.pack(ctx, lock)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = s.fs.Lstat(s.archivePath(name))
		return err // nil if it is archived already
	}
	if err != nil {
		return err
	}
	packed, err := s.verifyArchive(ctx, name, was.Size, sum)
	if err == nil {
		err = s.mustBeUnchanged(name, was)
	}
	if err != nil {
		return errors.Join(err, s.discard(s.archivePath(name)))
	}
	if err := s.mustBeArchived(name, packed); err != nil {
		return err
	}
	return s.discard(s.Path(name))
}

// mustBeArchived makes sure that the archive which was read back still has its name.
func (s *Store) mustBeArchived(name string, packed vfs.FileID) error {
	is, err := s.fs.Stat(s.archivePath(name))
	if err == nil && is.File != packed {
		err = &store.Error{
			Op: "archive", Name: name, Path: s.archivePath(name), Kind: store.ErrConflict,
			Err: errors.New("another program replaced the archive"),
		}
	}
	return err
}

// discardArchive deletes an archive, unless another one has its name by now.
func (s *Store) discardArchive(name string, id vfs.FileID) error {
	is, err := s.fs.Stat(s.archivePath(name))
	if errors.Is(err, fs.ErrNotExist) || err == nil && is.File != id {
		return nil
	}
	return errors.Join(err, s.discard(s.archivePath(name)))
}

// mustBeUnchanged makes sure that the plain file has not changed since it was packed: compressing
// takes a while, and some programs ignore the lock.
func (s *Store) mustBeUnchanged(name string, was vfs.Stat) error {
	is, err := s.fs.Stat(s.Path(name))
	if err == nil && (is.File != was.File || is.Size != was.Size) {
		err = &store.Error{
			Op: "archive", Name: name, Path: s.Path(name), Kind: store.ErrConflict,
			Err: errors.New("a program that does not take the lock has changed it"),
		}
	}
	return err
}

// pack writes the archive and returns the file that it was made from, and the hash of its content.
func (s *Store) pack(ctx context.Context, lock *nameLock) (was vfs.Stat, sum []byte, err error) {
	name := lock.name
	src, err := s.openPlain(name)
	if err != nil {
		return was, nil, err
	}
	defer src.Close()
	was, err = src.Stat()
	if err == nil {
		err = lock.mustBeLocked(src.(*plain))
	}
	if err != nil {
		return was, nil, err
	}
	if was.Size > s.opts.MaxUnpacked {
		return was, nil, s.tooLarge(was.Size)
	}
	hash := sha256.New()
	plain := io.TeeReader(section(ctx, src, was.Size), hash)
	err = s.publish(s.archivePath(name), func(w io.Writer) error { return compressSeekable(w, plain) })
	s.keepTime(s.Path(name), s.archivePath(name))
	return was, hash.Sum(nil), err
}

// verifyArchive reads an archive back, and returns which file it was.
func (s *Store) verifyArchive(ctx context.Context, name string, size int64, want []byte) (vfs.FileID, error) {
	a, err := s.openArchive(name)
	if err != nil {
		return vfs.FileID{}, err
	}
	defer a.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, section(ctx, a, size))
	if err != nil {
		return a.id(), fmt.Errorf("reading the archive back: %w", err)
	}
	if n != size || !bytes.Equal(sum.Sum(nil), want) {
		return a.id(), fmt.Errorf("the archive does not read back as what was written: %w", store.ErrCorrupt)
	}
	return a.id(), nil
}

// restorePlain restores the plain file of an archived log, if it has none. The caller has the
// name's lock.
func (s *Store) restorePlain(ctx context.Context, name string) error {
	err := s.mustBeAbsent(name)
	if info, err2 := s.fs.Lstat(s.Path(name)); err2 == nil && s.isStray(name, info.Size()) {
		var locked vfs.File
		locked, err = s.lockPlain(ctx, name) // this puts a stray file aside
		defer closeIf(locked)
		if err == nil {
			err = s.mustBeAbsent(name)
		}
	}
	if err == nil {
		err = s.unpack(ctx, name)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil // there is a plain file: it counts
	}
	return err
}

func (s *Store) mustBeAbsent(name string) error {
	_, err := s.fs.Lstat(s.Path(name))
	switch {
	case err == nil:
		return fs.ErrExist
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// putAsideArchive moves the archive of a log that has a plain file to quarantine/.
// It is left over from an interrupted archiving, and does not count; but if another
// program moves the plain file away, even for a moment, as sed -i.bak does, it would
// bring back an old state of the log. The caller has the plain file locked, so it is
// not being archived.
func (s *Store) putAsideArchive(name string) error {
	_, err := s.fs.Lstat(s.archivePath(name))
	if err == nil {
		err = s.putAside(s.archivePath(name), name, ".zst")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is hardly ever one
	}
	return err
}

// putAside moves a file of a log that does not count to quarantine/.
func (s *Store) putAside(path, name, suffix string) error {
	if err := s.mkdir(s.housePath("quarantine")); err != nil {
		return err
	}
	return s.move(path, s.housePath("quarantine", fmt.Sprintf("%s.0.%d.replaced%s", name, time.Now().UnixNano(), suffix)))
}

// unpack replaces an archive by its plain file, if the archive is still what counts
// when the file is about to get its name: a program that ignores the lock may have put
// a plain file there, or moved the whole store away.
func (s *Store) unpack(ctx context.Context, name string) error {
	a, err := s.openArchive(name)
	if err != nil {
		return err
	}
	defer a.Close()
	stat, err := a.Stat()
	if err != nil {
		return err
	}
	locked, err := s.publishLog(ctx, name, true, func(w io.Writer) error {
		_, err := io.Copy(w, section(ctx, a, stat.Size))
		return err
	}, func() error {
		if _, current, err := s.isCurrent(name, a); err != nil || current {
			return err
		}
		if err := s.mustBeAbsent(name); err != nil {
			return err
		}
		return fmt.Errorf("the archive was moved while it was unpacked: %w", fs.ErrNotExist)
	})
	if err != nil {
		return err
	}
	defer closeIf(locked)
	s.keepTime(s.archivePath(name), s.Path(name))
	if packed := a.(*archived); packed.isDamaged() {
		s.opts.Logger.Warn("brought back what could be read of a damaged archive, which is in quarantine now", "log", name)
		if packed.hasLost() && s.opts.OnLoss != nil {
			s.opts.OnLoss(ctx, name)
		}
		return s.putAsideArchive(name)
	}
	if err := s.discardArchive(name, stat.File); err != nil {
		// It no longer counts; a reader may still have it open.
		s.opts.Logger.Warn("could not delete an archive after unpacking it", "log", name, "cause", err)
	}
	return nil
}

// keepTime gives a file the time of the one that it replaces: a log is not newer because its
// form changed. An error here does not matter.
func (s *Store) keepTime(old, path string) {
	if info, err := s.fs.Lstat(old); err == nil {
		_ = s.fs.Chtimes(path, info.ModTime())
	}
}

// archived is a log's archive: a source whose offsets are those of the plain
// file.
type archived struct {
	*seekable
	file vfs.File
	same vfs.FileID
	path string
}

func (a *archived) id() vfs.FileID { return a.same }

func (s *Store) openArchive(name string) (source, error) {
	f, err := s.fs.OpenFile(s.archivePath(name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	stat, err := f.Stat()
	if err == nil {
		var z *seekable
		if z, err = openSeekable(f, stat.Size); err == nil {
			if z.size <= s.opts.MaxUnpacked {
				return &archived{z, f, stat.File, s.archivePath(name)}, nil
			}
			z.Close()
			err = s.tooLarge(z.size)
		}
	}
	f.Close()
	return nil, fmt.Errorf("archive %s: %w", s.archivePath(name), err)
}

func (s *Store) tooLarge(size int64) error {
	return fmt.Errorf("the log has %d bytes unpacked, the limit (MaxUnpacked) is %d: %w", size, s.opts.MaxUnpacked, store.ErrTooLarge)
}

// section reads the first bytes of a source, and stops when the context is done: an archive
// can take long to unpack.
func section(ctx context.Context, src io.ReaderAt, size int64) io.Reader {
	return io.NewSectionReader(readerFunc(func(p []byte, off int64) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return src.ReadAt(p, off)
	}), 0, size)
}

// ReadAt implements source.
func (a *archived) ReadAt(p []byte, off int64) (int, error) {
	n, err := a.seekable.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("archive %s: %w", a.path, err)
	}
	return n, err
}

// Stat gives the size of the log, not of the archive.
func (a *archived) Stat() (vfs.Stat, error) {
	stat, err := a.file.Stat()
	stat.Size = a.size
	return stat, err
}

func (a *archived) Close() error {
	a.seekable.Close()
	return a.file.Close()
}
