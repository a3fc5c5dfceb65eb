package file

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/coppice-dev/coppice/store/vfs"
)

// source is what a log reads from: the plain file, or an archive that answers
// with the same bytes at the same offsets.
type source interface {
	ReadAt(p []byte, off int64) (int, error)
	Stat() (vfs.Stat, error)
	Close() error
	// id identifies the file: no other file has it as long as this one is open.
	id() vfs.FileID
}

// plain is a log's file.
type plain struct {
	vfs.File
	path     string // kept so that no append has to build it
	file     vfs.FileID
	readonly error // why it could not be opened for writing, or nil
}

func (p *plain) id() vfs.FileID { return p.file }

// openSource opens the log wherever it is. The plain file comes first: an
// archive beside it is left over from an archiving that a crash interrupted. Only
// an empty one does not hide an archive: see isStray.
func (s *Store) openSource(name string) (src source, err error) {
	err = s.find(name, func() error {
		src, err = s.openSourceLocked(name)
		return err
	})
	return src, err
}

// openSourceLocked is openSource for a caller that has the name's lock.
func (s *Store) openSourceLocked(name string) (source, error) {
	f, err := s.openPlain(name)
	if err == nil {
		stat, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if !s.isStray(name, stat.Size) {
			return f, nil
		}
		f.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	a, err := s.openArchive(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errGone
	}
	return a, err
}

// isStray reports whether a plain file is not ours: an empty one beside an archive. Our files
// get their names after their content, so an archive with only an empty file beside it is the
// log. A touch, or a command whose output went there and failed, must not hide a whole
// session.
func (s *Store) isStray(name string, size int64) bool {
	return size == 0 && s.isThere(s.archivePath(name))
}

// putAsideStray moves a stray file to quarantine/, because a program that takes no lock may
// still write to it, and reports whether there was one. The caller has the lock of the name,
// and that on the file if the file can be locked.
func (s *Store) putAsideStray(name string) (bool, error) {
	info, err := s.fs.Lstat(s.Path(name))
	if err != nil || !info.Mode().IsRegular() || !s.isStray(name, info.Size()) {
		return false, nil // opening it reports what is wrong
	}
	return true, s.putAside(s.Path(name), name, "")
}

// openPlain opens the file for reading and appending, or for reading only if it must.
func (s *Store) openPlain(name string) (source, error) {
	var readonly error
	path := s.Path(name)
	f, err := s.fs.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		readonly = err
		f, err = s.fs.OpenFile(path, os.O_RDONLY, 0)
	}
	if err != nil {
		return nil, err
	}
	stat, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &plain{f, path, stat.File, readonly}, nil
}
