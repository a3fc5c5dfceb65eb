package file

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// repairTail deals with bytes after the last line end, which only a writer that
// died, or a disk that was full, can have left. A whole entry gets its line end;
// anything else is moved to quarantine/ before it is cut off. It returns the
// log's end. The caller holds the lock.
func (l *Log) repairTail(file *plain, size int64) (store.Pos, error) {
	end, err := lastLineEnd(file, size)
	if err != nil || end == size {
		return store.Pos(end), err
	}
	whole, err := l.isWhole(file, end, size)
	if err != nil {
		return 0, err
	}
	if whole {
		return l.completeTail(file, end, size)
	}
	return store.Pos(end), l.quarantineTail(file, end, size)
}

// isWhole reports whether what stands between two offsets is an entry that lacks
// only its line end.
func (l *Log) isWhole(file io.ReaderAt, from, to int64) (bool, error) {
	if to-from > l.store.opts.MaxLine {
		return false, nil
	}
	tail := make([]byte, to-from)
	if _, err := io.ReadFull(io.NewSectionReader(file, from, to-from), tail); err != nil {
		return false, err
	}
	return isWholeEntry(tail), nil
}

// Settle implements store.Settler. It looks first and takes the lock only if
// there is something to do, which is hardly ever.
func (l *Log) Settle(ctx context.Context) (bool, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	file, ok := l.source.(*plain)
	if !ok || l.closed {
		return false, nil // an archive ends with a whole line
	}
	if lacking, err := l.lacksLineEnd(file); err != nil || !lacking {
		return false, err
	}
	file, stat, err := l.hold(ctx)
	if err != nil {
		return false, l.explain("settle", 0, err)
	}
	defer l.unlock()
	// Without the lock it may have been a line on its way.
	lacking, err := l.lacksLineEnd(file)
	if err == nil && lacking {
		_, err = l.repairTail(file, stat.Size)
	}
	if err != nil {
		l.lock.close() // what we know of the log stays out of date: look again next time
		return false, l.explain("settle", 0, err)
	}
	return lacking, nil
}

func (l *Log) lacksLineEnd(file *plain) (bool, error) {
	stat, err := file.Stat()
	if err != nil {
		return false, err
	}
	end, err := lastLineEnd(file, stat.Size)
	if err != nil || end == stat.Size {
		return false, err
	}
	return l.isWhole(file, end, stat.Size)
}

// isWholeEntry reports whether the bytes are one JSON object, so that only the
// line end is missing. A NUL is what a lost block reads as.
func isWholeEntry(b []byte) bool {
	b = bytes.TrimSpace(b)
	return len(b) > 0 && b[0] == '{' && bytes.IndexByte(b, 0) < 0 && json.Valid(b)
}

func (l *Log) completeTail(file *plain, end, size int64) (store.Pos, error) {
	if _, err := file.Write(newline); err != nil {
		return 0, err
	}
	if err := l.syncRepair(file); err != nil {
		return 0, err
	}
	l.store.opts.Logger.Warn("completed an entry whose line end was missing", "log", l.name, "offset", end, "bytes", size-end)
	return store.Pos(size + 1), nil
}

// quarantineTail copies first and cuts afterwards: a crash in between leaves
// the bytes in both places, never in none.
func (l *Log) quarantineTail(file *plain, end, size int64) error {
	path := l.store.room("quarantine", fmt.Sprintf("%s.%d.%d.torn", l.name, end, time.Now().UnixNano()))
	torn := io.NewSectionReader(file, end, size-end)
	err := l.store.publish(path, func(w io.Writer) error {
		_, err := io.Copy(w, torn)
		return err
	})
	if err != nil {
		return fmt.Errorf("moving the torn end to quarantine: %w", err)
	}
	// Somebody who takes no lock may be writing, cp for example: then what looked
	// torn was half of what is to be there.
	stat, err := file.Stat()
	if err == nil && stat.Size != size {
		err = l.fail("repair", store.Pos(end), store.ErrConflict, fmt.Errorf("it has %d bytes now, and had %d", stat.Size, size))
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
