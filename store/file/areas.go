package file

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-dev/coppice/store"
)

// house is the name of the housekeeping directory. Only this package knows it: other packages ask here
// for paths in it.
const house = ".coppice"

// housePath returns a path in the housekeeping directory.
func (s *Store) housePath(elem ...string) string {
	return filepath.Join(append([]string{s.dir, house}, elem...)...)
}

func (s *Store) lockPath(name string) string { return s.housePath("locks", name+lockSuffix) }
func (s *Store) archivePath(name string) string {
	return filepath.Join(s.archives(), name+archiveSuffix)
}

// archives returns the directory of the archives. In the trash they are beside the plain
// logs.
func (s *Store) archives() string {
	if s.isTrash {
		return s.dir
	}
	return s.housePath("archive")
}

// IsStore reports whether a directory is a store that has been written to.
func IsStore(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, house))
	return err == nil && info.IsDir()
}

// IndexPath returns where an index of the store belongs, if that place is writable. The store
// itself does not need an index.
func (s *Store) IndexPath() string { return s.housePath(indexFile) }

const indexFile = "index.db"

// Area says what a file of a store is for.
type Area string

// The areas.
const (
	AreaLog        Area = "log"        // a log's plain file, or a file beside one
	AreaArchive    Area = "archive"    // an archived log
	AreaTrash      Area = "trash"      // a removed log
	AreaQuarantine Area = "quarantine" // bytes that were torn off a log, or replaced
	AreaLock       Area = "locks"      // the lock of a log, of the blobs or of the notes
	AreaBlob       Area = "blobs"      // content that lines refer to
	AreaTemp       Area = "tmp"        // a file on its way to another area
	AreaMark       Area = "changed"    // a mark on a log: see marks.go
	AreaIndex      Area = "index"      // the index, or what SQLite keeps beside it
	AreaNote       Area = "note"       // a note: see store.Notes
)

// areaOf returns the area of a file, given its path below the store's directory with
// slashes, and the name of the log that the file holds, copies or locks.
func areaOf(below string) (Area, string) {
	parts := strings.Split(below, "/")
	base := parts[len(parts)-1]
	if parts[0] != house || len(parts) < 2 {
		name, ok := strings.CutSuffix(strings.TrimSuffix(base, ".bak"), logSuffix)
		return AreaLog, nameIf(name, ok && len(parts) == 1)
	}
	switch area := Area(parts[1]); area {
	case AreaArchive:
		name, ok := strings.CutSuffix(base, archiveSuffix)
		return area, nameIf(name, ok)
	case AreaLock:
		name, ok := strings.CutSuffix(base, lockSuffix)
		return area, nameIf(name, ok)
	case AreaTrash:
		item, ok := parseTrashed(base)
		return area, nameIf(item.Name, ok)
	case AreaQuarantine:
		q, ok := parseQuarantined(base)
		return area, nameIf(q.Name, ok)
	case AreaMark:
		return area, nameIf(base, true)
	case AreaBlob, AreaTemp:
		return area, ""
	}
	switch {
	case strings.HasPrefix(parts[1], indexFile):
		return AreaIndex, ""
	case strings.HasSuffix(parts[1], lockSuffix): // of blobs, of notes
		return AreaLock, ""
	}
	return AreaNote, ""
}

func nameIf(name string, ok bool) string {
	if !ok || store.CheckName(name) != nil {
		return ""
	}
	return name
}
