package file

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-dev/coppice/store"
)

// house is the name of the housekeeping directory. Only this package knows it: other packages
// ask here for a place in it.
const house = ".coppice"

// room returns a place in the housekeeping directory.
func (s *Store) room(elem ...string) string {
	return filepath.Join(append([]string{s.dir, house}, elem...)...)
}

func (s *Store) lockPath(name string) string { return s.room("locks", name+lockSuffix) }
func (s *Store) archivePath(name string) string {
	return filepath.Join(s.archives(), name+archiveSuffix)
}

// archives returns the directory of the archives. In the trash they are beside the plain
// logs.
func (s *Store) archives() string {
	if s.isTrash {
		return s.dir
	}
	return s.room("archive")
}

// IsStore reports whether a directory is a store that has been written to.
func IsStore(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, house))
	return err == nil && info.IsDir()
}

// IndexPath returns where an index of the store belongs, if that place is writable. The store
// itself does not need an index.
func (s *Store) IndexPath() string { return s.room(indexFile) }

const indexFile = "index.db"

// Room says what a file of a store is for.
type Room string

// The rooms.
const (
	RoomLog        Room = "log"        // a log's plain file, or a file beside one
	RoomArchive    Room = "archive"    // an archived log
	RoomTrash      Room = "trash"      // a removed log
	RoomQuarantine Room = "quarantine" // what was torn off a log, or replaced
	RoomLock       Room = "locks"      // the lock of a log, of the blobs or of the notes
	RoomBlob       Room = "blobs"      // content that lines refer to
	RoomTemp       Room = "tmp"        // a file on its way to another room
	RoomMark       Room = "changed"    // a mark on a log: see marks.go
	RoomIndex      Room = "index"      // the index, or what SQLite keeps beside it
	RoomNote       Room = "note"       // a note: see store.Notes
)

// placeBelow returns the room of a file, given its path below the store's directory with
// slashes, and the name of the log that the file holds, copies or locks.
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
