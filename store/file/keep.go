package file

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Kept is a file that a backup must have.
type Kept struct {
	store.Part
	Below string // its path below the store's directory, with slashes
	Room  Area
}

// IsKept reports whether a backup must have the file at a path below the store's directory,
// with slashes, and in which room it is. Locks, marks, temporary files and the index are not
// kept. Neither is anything outside the store's own directories, such as a path that leads
// elsewhere.
func IsKept(below string) (Area, bool) {
	if below != path.Clean(below) || !filepath.IsLocal(below) || strings.ContainsAny(below, "\\:\x00") {
		return "", false
	}
	room, _ := areaOf(below)
	first, _, deeper := strings.Cut(below, "/")
	switch room {
	case AreaLog:
		return room, !deeper && first != house && strings.HasSuffix(strings.TrimSuffix(below, ".bak"), logSuffix)
	case AreaArchive, AreaTrash, AreaQuarantine, AreaBlob, AreaNote:
		return room, deeper
	}
	return room, false
}

// KeptLog returns the name of the log that a kept file is, plain or archived. It is "" for
// copies of logs and files of other rooms.
func KeptLog(below string) string {
	room, kept := IsKept(below)
	if !kept || room != AreaLog && room != AreaArchive || strings.HasSuffix(below, ".bak") {
		return ""
	}
	_, name := areaOf(below)
	return name
}

// Keep yields every file that a backup must have. Directories are read when the
// iteration gets there, and the blobs come last. So a caller that reads each file
// before the next gets every blob that the logs name, because a blob exists before the
// line that names it. The archive of a log that has a plain file does not count and is
// left out; but an empty plain file does not count beside an archive. A file that moves
// during the iteration may be missed or yielded twice.
func (s *Store) Keep(ctx context.Context) iter.Seq2[Kept, error] {
	return func(yield func(Kept, error) bool) {
		if err := s.check(ctx, "list", ""); err != nil {
			yield(Kept{}, err)
			return
		}
		plain := make(map[string]bool) // the logs that have a plain file
		each := func(p store.Part, err error) bool {
			k := Kept{Part: p}
			if err != nil && p.Place == "" {
				return yield(k, err)
			}
			k.Below = s.below(p.Place)
			var kept bool
			if k.Room, kept = IsKept(k.Below); !kept {
				return true
			}
			switch {
			case k.Room == AreaArchive && plain[p.Name], k.Room == AreaLog && err == nil && p.Size == 0 && s.hasArchive(p):
				return true
			case k.Room == AreaLog && p.Kind == store.PartLog:
				plain[p.Name] = true
			}
			return yield(k, err)
		}
		blobs := s.housePath(string(AreaBlob))
		inHouse := func(dir string) bool {
			_, kept := IsKept(s.below(dir) + "/x")
			return kept && dir != blobs
		}
		everywhere := func(string) bool { return true }
		_ = parts{s}.in(ctx, s.dir, func(string) bool { return false }, each) &&
			parts{s}.in(ctx, s.housePath(), inHouse, each) && parts{s}.in(ctx, blobs, everywhere, each)
	}
}

// hasArchive reports whether the log of a plain file is archived, too.
func (s *Store) hasArchive(p store.Part) bool {
	if p.Kind != store.PartLog {
		return false
	}
	_, err := s.fs.Lstat(s.archivePath(p.Name))
	return err == nil
}

// below returns a path below the store's directory, with slashes.
func (s *Store) below(path string) string {
	rel, _ := filepath.Rel(s.dir, path) // both are absolute
	return filepath.ToSlash(rel)
}

// OpenKept opens a file for reading, or returns store.ErrNotExist. Its content stays the same
// however the store changes, except that it may grow.
func (s *Store) OpenKept(k Kept) (vfs.File, error) {
	f, err := s.fs.OpenFile(k.Place, os.O_RDONLY, 0)
	return f, parts{s}.failPart("read", k.Part, err)
}

// StatKept describes what is at the path of a file now, or returns
// store.ErrNotExist.
func (s *Store) StatKept(k Kept) (vfs.Stat, error) {
	stat, err := s.fs.Stat(k.Place)
	return stat, parts{s}.failPart("look at", k.Part, err)
}

// KeptAside returns the path in quarantine, below the store's directory, of the file of a log that
// is damaged, where the backup has a better one.
func KeptAside(below string, at time.Time) string {
	aside := fmt.Sprintf("%s/%s/%s.0.%d.replaced", house, AreaQuarantine, KeptLog(below), at.UnixNano())
	if strings.HasSuffix(below, ".zst") {
		aside += ".zst"
	}
	return aside
}

// maxLook is the size of the largest archive that KeptLines looks into: it holds it in memory.
const maxLook = 1 << 30

// KeptLines calls each with the lines of a file of a backup, without their line ends, if it
// is a log in any room; other files have no lines. whole is false for a line that is longer
// than DefaultMaxLine or lacks its line end. The data is valid until each returns.
//
// An archive is read as a store reads it, around what is damaged. If anything is, the error matches
// store.ErrCorrupt, or store.ErrTooLarge if a store would not open it. So it is with an archive that
// was cut off, even if all that is left of it unpacks.
func KeptLines(below string, r io.Reader, each func(line []byte, whole bool) error) error {
	if room, _ := IsKept(below); room != AreaLog && room != AreaArchive && room != AreaTrash {
		return nil
	}
	if !strings.HasSuffix(below, ".zst") {
		return eachLine(r, each)
	}
	packed, err := io.ReadAll(io.LimitReader(r, maxLook+1))
	if err != nil {
		return err
	}
	if len(packed) > maxLook {
		return fmt.Errorf("the archive has more than %d bytes", maxLook)
	}
	z, err := openSeekable(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return err
	}
	defer z.Close()
	if err := eachLine(io.NewSectionReader(z, 0, z.size), each); err != nil || !z.isDamaged() {
		return err
	}
	return errPartOfArchive
}

func isTable(footer []byte) bool {
	return len(footer) == footerSize && binary.LittleEndian.Uint32(footer[5:]) == seekTableMagic && footer[4] == 0
}

func eachLine(r io.Reader, each func(line []byte, whole bool) error) error {
	lines := bufio.NewReaderSize(r, wholeChunk)
	var line []byte
	for tooLong := false; ; {
		part, err := lines.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > DefaultMaxLine; !tooLong {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case err != nil && len(line) == 0:
			return nil
		}
		whole := err == nil && !tooLong
		if eachErr := each(bytes.TrimSuffix(line, newline), whole); eachErr != nil || err != nil {
			return eachErr
		}
		line, tooLong = line[:0], false
	}
}
