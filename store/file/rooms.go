package file

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// house is the name of the house keeping directory. Only this package knows it: other
// packages ask here for a place in it.
const house = ".coppice"

// room returns a place in the house keeping directory.
func (s *Store) room(elem ...string) string {
	return filepath.Join(append([]string{s.dir, house}, elem...)...)
}

func (s *Store) lockPath(name string) string { return s.room("locks", name+lockSuffix) }
func (s *Store) archivePath(name string) string {
	return filepath.Join(s.archives(), name+archiveSuffix)
}

// archives returns the directory of the archives. In the trash they lie beside the
// plain logs.
func (s *Store) archives() string {
	if s.isTrash {
		return s.dir
	}
	return s.room("archive")
}

// House returns the directory in which everything is that is not a log's plain
// file.
func (s *Store) House() string { return s.room() }

// IsStore reports whether a directory is a store that has been written to.
func IsStore(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, house))
	return err == nil && info.IsDir()
}

// ArchivePath returns where the archive of the log of that name is or would be.
func (s *Store) ArchivePath(name string) string { return s.archivePath(name) }

// LockPath returns where the lock of the log of that name is or would be.
func (s *Store) LockPath(name string) string { return s.lockPath(name) }

// IndexPath returns where an index of the store belongs, if one may write there.
// The store itself does not need one.
func (s *Store) IndexPath() string { return s.room(indexFile) }

const indexFile = "index.db"

// BlobPath returns where a blob is or would be, or "" for anything but a blob's name.
func (s *Store) BlobPath(ref store.Ref) string {
	digits, ok := ref.Hex()
	if !ok {
		return ""
	}
	return blobs{s}.path(digits)
}

// ReadTrash implements store.Trash.
func (s *Store) ReadTrash() (store.Store, error) {
	trashed, err := Open(s.room("trash"), &s.opts)
	if err != nil {
		return nil, err
	}
	trashed.isTrash = true
	return trashed, nil
}

// Room says what a file of a store is for.
type Room string

// The rooms.
const (
	RoomLog        Room = "log"        // a log's plain file, or what lies beside one
	RoomArchive    Room = "archive"    // an archived log
	RoomTrash      Room = "trash"      // a removed log
	RoomQuarantine Room = "quarantine" // what was torn off a log, or replaced
	RoomLock       Room = "locks"      // the lock of a log, of the blobs or of the notes
	RoomBlob       Room = "blobs"      // content that lines refer to
	RoomTemp       Room = "tmp"        // a file on its way to another room
	RoomMark       Room = "changed"    // a mark on a log: see Tracker
	RoomIndex      Room = "index"      // the index, or what SQLite keeps beside it
	RoomNote       Room = "note"       // a note: see Notes
)

// Found is a file of a store.
type Found struct {
	Path     string
	Room     Room
	Name     string // of the log that it is, or is a copy or the lock of; else ""
	Size     int64
	Modified time.Time
}

// Files yields every regular file of the store. Files that vanish during the iteration
// are left out.
func (s *Store) Files(ctx context.Context) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		if err := s.check(ctx, "list", ""); err != nil {
			yield(Found{}, err)
			return
		}
		s.filesIn(ctx, s.dir, yield)
	}
}

func (s *Store) filesIn(ctx context.Context, dir string, yield func(Found, error) bool) bool {
	entries, err := s.fs.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		yield(Found{}, s.fail("list", "", err))
		return false
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if !s.filesIn(ctx, path, yield) {
				return false
			}
		case e.Type().IsRegular():
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			f := Found{Path: path}
			f.Room, f.Name = s.placeOf(path)
			if err == nil {
				f.Size, f.Modified = info.Size(), info.ModTime()
			}
			if !yield(f, err) {
				return false
			}
		}
	}
	return true
}

// placeOf says what a file is, by its path.
func (s *Store) placeOf(path string) (Room, string) {
	below, _ := filepath.Rel(s.dir, path) // both are absolute
	return placeBelow(filepath.ToSlash(below))
}

// placeBelow is placeOf for a path below the store's directory, with slashes.
func placeBelow(below string) (Room, string) {
	parts := strings.Split(below, "/")
	base := parts[len(parts)-1]
	if parts[0] != house || len(parts) < 2 {
		name, ok := strings.CutSuffix(strings.TrimSuffix(base, ".bak"), logSuffix)
		return RoomLog, nameIf(name, ok && len(parts) == 1)
	}
	switch room := Room(parts[1]); room {
	case RoomArchive:
		name, ok := strings.CutSuffix(base, archiveSuffix)
		return room, nameIf(name, ok)
	case RoomLock:
		name, ok := strings.CutSuffix(base, lockSuffix)
		return room, nameIf(name, ok)
	case RoomTrash:
		item, ok := parseTrashed(base)
		return room, nameIf(item.Name, ok)
	case RoomQuarantine:
		q, ok := parseQuarantined(base)
		return room, nameIf(q.Name, ok)
	case RoomMark:
		return room, nameIf(base, true)
	case RoomBlob, RoomTemp:
		return room, ""
	}
	switch {
	case strings.HasPrefix(parts[1], indexFile):
		return RoomIndex, ""
	case strings.HasSuffix(parts[1], lockSuffix): // of blobs, of notes
		return RoomLock, ""
	}
	return RoomNote, ""
}

func nameIf(name string, ok bool) string {
	if !ok || store.CheckName(name) != nil {
		return ""
	}
	return name
}

// OpenFound opens a file for reading.
func (s *Store) OpenFound(f Found) (io.ReadCloser, error) {
	file, err := s.fs.OpenFile(f.Path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	stat, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(file, 0, stat.Size), file}, nil
}

// ReplaceFound replaces a note by other content. Files of other rooms have methods
// of their own for that.
func (s *Store) ReplaceFound(f Found, data []byte) error {
	return s.changeFound("replace", f, RoomNote, func() error { return s.publish(f.Path, vfs.Data(data)) })
}

// RemoveFound deletes a temporary file, durably.
func (s *Store) RemoveFound(f Found) error {
	return s.changeFound("remove", f, RoomTemp, func() error { return s.discard(f.Path) })
}

func (s *Store) changeFound(op string, f Found, room Room, change func() error) error {
	if f.Room != room {
		return &store.Error{Op: op, Path: f.Path, Kind: store.ErrInvalid, Err: errors.New("it is in the room " + string(f.Room))}
	}
	if err := change(); err != nil {
		return &store.Error{Op: op, Path: f.Path, Err: err}
	}
	return nil
}
