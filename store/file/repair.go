package file

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// repairTail deals with bytes after the last line end, which only a writer that
// died, a disk that was full, or a block that was lost can have left. A line in the sense of
// store.IsLine gets its line end; anything else is moved to quarantine/ before it is cut off.
// So a lost block stays in the log, where every reader names it. It returns the log's end. The caller holds the lock.
func (l *Log) repairTail(file *plain, size int64) (store.Pos, error) {
	end, err := lastLineEnd(file, size)
	if err != nil || end == size {
		return store.Pos(end), err
	}
	isLine, err := l.store.isLine(file, end, size)
	if err != nil {
		return 0, err
	}
	if isLine {
		return l.completeTail(file, end, size)
	}
	return store.Pos(end), l.quarantineTail(file, end, size)
}

// isLine is store.IsLine for the bytes between two offsets. They can be many, so it reads them
// as a whole only if they may be an entry.
func (s *Store) isLine(file io.ReaderAt, from, to int64) (bool, error) {
	if lost, err := hasNUL(file, from, to); lost || err != nil || from == to || to-from > s.opts.MaxLine {
		return lost, err
	}
	ends := make([]byte, 1) // the last byte usually shows a torn line
	if _, err := io.ReadFull(io.NewSectionReader(file, to-1, 1), ends); err != nil || !bytes.Contains([]byte("} \t\r"), ends) {
		return false, err
	}
	tail := make([]byte, to-from)
	if _, err := io.ReadFull(io.NewSectionReader(file, from, to-from), tail); err != nil {
		return false, err
	}
	return store.IsLine(tail), nil
}

func hasNUL(file io.ReaderAt, from, to int64) (bool, error) {
	buf := make([]byte, min(to-from, wholeChunk))
	for from < to {
		n, err := io.ReadFull(io.NewSectionReader(file, from, to-from), buf[:min(to-from, int64(len(buf)))])
		if err != nil || bytes.IndexByte(buf[:n], 0) >= 0 {
			return err == nil, err
		}
		from += int64(n)
	}
	return false, nil
}

func (l *Log) completeTail(file *plain, end, size int64) (store.Pos, error) {
	if _, err := file.Write(newline); err != nil {
		return 0, err
	}
	if err := l.syncRepair(file); err != nil {
		return 0, err
	}
	l.store.opts.Logger.Warn("completed a last line whose line end was missing", "log", l.name, "offset", end, "bytes", size-end)
	return store.Pos(size + 1), nil
}

// quarantineTail copies first and cuts afterwards: a crash in between leaves
// the bytes in both places, never in none.
func (l *Log) quarantineTail(file *plain, end, size int64) error {
	path := l.store.housePath("quarantine", fmt.Sprintf("%s.%d.%d.torn", l.name, end, time.Now().UnixNano()))
	torn := io.NewSectionReader(file, end, size-end)
	err := l.store.publish(path, func(w io.Writer) error {
		_, err := io.Copy(w, torn)
		return err
	})
	if err != nil {
		return fmt.Errorf("moving the torn end to quarantine: %w", err)
	}
	// A program that ignores the lock, such as cp, may be writing: then the torn end is
	// a file that is still growing.
	stat, err := file.Stat()
	if err == nil && stat.Size != size {
		err = l.fail("repair", store.Pos(end), store.ErrConflict, fmt.Errorf("its size changed from %d to %d bytes during the repair", size, stat.Size))
	}
	if err == nil {
		err = file.Truncate(end)
	}
	if err != nil {
		return fmt.Errorf("cutting off the torn end: %w", err)
	}
	if err := l.syncRepair(file); err != nil {
		return err
	}
	l.store.opts.Logger.Warn("moved a torn end to quarantine", "log", l.name, "offset", end, "bytes", size-end, "quarantine", path)
	return nil
}

func (l *Log) syncRepair(file vfs.File) error {
	if l.store.opts.Sync == Never {
		return nil
	}
	if err := file.Sync(); err != nil {
		l.noteUnsynced(err)
		l.sync.poison(err)
		return fmt.Errorf("syncing the repair: %w", err)
	}
	return nil
}

// rewriteLocked rewrites the log's file, so that all of it is known to be on
// the disk. The caller holds the lock.
func (s *Store) rewriteLocked(name string) error { return s.copyLog(name, s.Path(name)) }

// copyLog publishes a copy of the log's file at a path, which may be its own.
func (s *Store) copyLog(name, path string) error {
	src, err := s.openPlain(name)
	if err != nil {
		return err
	}
	defer src.Close()
	stat, err := src.Stat()
	if err != nil {
		return err
	}
	return s.publish(path, func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(src, 0, stat.Size))
		return err
	})
}
