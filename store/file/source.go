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
	// id names the file. It is that of no other as long as this one is open.
	id() vfs.FileID
}

// plain is a log's file.
type plain struct {
	vfs.File
	path     string // so that no append has to make it up
	file     vfs.FileID
	readonly error // why it could not be opened for writing, or nil
}

func (p *plain) id() vfs.FileID { return p.file }

// openSource opens the log wherever it is. The plain file comes first: an
// archive beside it is left over from an archiving that a crash interrupted.
func (s *Store) openSource(name string) (src source, err error) {
	err = s.find(name, func() error {
		src, err = s.openSourceLocked(name)
		return err
	})
	return src, err
}

// openSourceLocked is openSource for whoever has the name's lock.
func (s *Store) openSourceLocked(name string) (source, error) {
	f, err := s.openPlain(name)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	a, err := s.openArchive(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errGone
	}
	return a, err
}

// openPlain opens for reading and appending if it may, and for reading if not.
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
