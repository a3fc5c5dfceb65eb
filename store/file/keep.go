package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Kept is a file that a backup must have.
type Kept struct {
	Path     string
	Below    string // its path below the store's directory, with slashes
	Room     Room
	Name     string // of the log that it is or copies; otherwise ""
	Size     int64
	Modified time.Time
}

// IsKept reports whether a backup must have the file at a path below the store's directory,
// with slashes, and in which room it is. Locks, marks, temporary files and the index are not
// kept. Neither is anything outside the store's own directories, such as a path that leads
// elsewhere.
func IsKept(below string) (Room, bool) {
	if below != path.Clean(below) || !filepath.IsLocal(below) || strings.ContainsAny(below, "\\:\x00") {
		return "", false
	}
	room, _ := placeBelow(below)
	first, _, deeper := strings.Cut(below, "/")
	switch room {
	case RoomLog:
		return room, !deeper && first != house && strings.HasSuffix(strings.TrimSuffix(below, ".bak"), logSuffix)
	case RoomArchive, RoomTrash, RoomQuarantine, RoomBlob, RoomNote:
		return room, deeper
	}
	return room, false
}

// KeptLog returns the name of the log that a kept file is, plain or archived. It is "" for
// copies of logs and files of other rooms.
func KeptLog(below string) string {
	room, kept := IsKept(below)
	if !kept || room != RoomLog && room != RoomArchive || strings.HasSuffix(below, ".bak") {
		return ""
	}
	_, name := placeBelow(below)
	return name
}

// Keep yields every file that a backup must have. Directories are read when the
// iteration gets there, and the blobs come last. So a caller that reads each file
// before the next gets every blob that the logs name, because a blob exists before the
// line that names it. The archive of a log that has a plain file does not count and is
// left out. A file that moves during the iteration may be missed or yielded twice.
func (s *Store) Keep(ctx context.Context) iter.Seq2[Kept, error] {
	return func(yield func(Kept, error) bool) {
		if err := s.check(ctx, "list", ""); err != nil {
			yield(Kept{}, err)
			return
		}
		k := keeper{store: s, yield: yield, plain: make(map[string]bool)}
		if !k.dir(ctx, s.dir, func(e fs.DirEntry) bool { return !e.IsDir() }) {
			return
		}
		inHouse := func(e fs.DirEntry) bool { return e.Name() != string(RoomBlob) }
		if k.dir(ctx, s.room(), inHouse) {
			k.dir(ctx, s.room(string(RoomBlob)), func(fs.DirEntry) bool { return true })
		}
	}
}

// keeper is one listing.
type keeper struct {
	store *Store
	yield func(Kept, error) bool
	plain map[string]bool // the logs that have a plain file
}

// dir yields the kept files of a directory and those below it, and reports whether to
// continue.
func (k *keeper) dir(ctx context.Context, dir string, wanted func(fs.DirEntry) bool) bool {
	entries, err := k.store.fs.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		k.yield(Kept{}, k.store.fail("list", "", err))
		return false
	}
	for _, e := range entries {
		if wanted(e) && !k.entry(ctx, filepath.Join(dir, e.Name()), e) {
			return false
		}
	}
	return true
}

func (k *keeper) entry(ctx context.Context, path string, e fs.DirEntry) bool {
	below, _ := filepath.Rel(k.store.dir, path) // both are absolute
	below = filepath.ToSlash(below)
	if e.IsDir() {
		if _, kept := IsKept(below + "/x"); !kept {
			return true
		}
		return k.dir(ctx, path, func(fs.DirEntry) bool { return true })
	}
	_, kept := IsKept(below)
	if !kept || !e.Type().IsRegular() {
		return true
	}
	f := Kept{Path: path, Below: below}
	f.Room, f.Name = placeBelow(below)
	switch {
	case f.Room == RoomLog && strings.HasSuffix(below, logSuffix):
		k.plain[f.Name] = true
	case f.Room == RoomArchive && k.plain[f.Name]:
		return true
	}
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err == nil {
		f.Size, f.Modified = info.Size(), info.ModTime()
	}
	return k.yield(f, err)
}

// OpenKept opens a file for reading, or returns store.ErrNotExist. Its content stays the same
// however the store changes, except that it may grow.
func (s *Store) OpenKept(k Kept) (vfs.File, error) {
	f, err := s.fs.OpenFile(k.Path, os.O_RDONLY, 0)
	if err != nil {
		return nil, s.failKept("read", k, err)
	}
	return f, nil
}

// StatKept describes what is at the path of a file now, or returns
// store.ErrNotExist.
func (s *Store) StatKept(k Kept) (vfs.Stat, error) {
	stat, err := s.fs.Stat(k.Path)
	if err != nil {
		return stat, s.failKept("look at", k, err)
	}
	return stat, nil
}

func (s *Store) failKept(op string, k Kept, err error) error {
	e := &store.Error{Op: op, Path: k.Path, Err: err}
	if errors.Is(err, fs.ErrNotExist) {
		e.Kind = store.ErrNotExist
	}
	return e
}

// KeptLines calls each with the lines of a file of a backup, without their line ends, if it
// is a log in any room; other files have no lines. whole is false for a line that is longer
// than DefaultMaxLine or lacks its line end. The data is valid until each returns.
func KeptLines(below string, r io.Reader, each func(line []byte, whole bool) error) error {
	if room, _ := IsKept(below); room != RoomLog && room != RoomArchive && room != RoomTrash {
		return nil
	}
	if strings.HasSuffix(below, ".zst") {
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxFrame))
		if err != nil {
			return err
		}
		defer z.Close()
		r = z
	}
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
