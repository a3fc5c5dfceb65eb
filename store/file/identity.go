package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// # The file at the path is the log
//
// A handle keeps a file open, and its name may pass to another file: archiving, redaction and
// repair do that, and so do editors, sed -i, restores from a backup and mv. A write to a file
// that lost its name succeeds and is lost. That the open file still has *a* name proves
// nothing: a backup made of hard links gives every file a second one. So each append checks
// which file is at the path, and compares it with the open one:
//
//   - Before it writes, with the log's locks held (see nameLock). Programs that take them
//     (all of ours) cannot exchange the file between the check and the write.
//   - After the sync and before it is acknowledged, because of programs that do not
//     take the lock. (With Sync: Never there is no sync and no second check; the next
//     append checks.)
//
// If another file has the name, the handle moves to it, but only if that file
// begins with every line of the open one: then it is the same log in another
// form, or restored from a copy, and all positions that callers know still hold.
// If not, the log was rewritten, and the handle cannot know what became of the
// lines its callers rely on. It returns store.ErrReplaced, to readers too: what was
// removed from a log must not come back through a handle that still has the old file
// open.

// isCurrent reports whether a source is what the store would open under the
// log's name, and describes the file that has the name.
func (s *Store) isCurrent(name string, src source) (vfs.Stat, bool, error) {
	var stat vfs.Stat
	var err error
	if file, ok := src.(*plain); ok {
		stat, err = s.fs.Stat(file.path)
	} else {
		stat, err = s.fs.Stat(s.Path(name))
		if !errors.Is(err, fs.ErrNotExist) && (err != nil || stat.Size > 0) {
			return stat, false, err // a plain file counts, and an archive beside it does not
		}
		stat, err = s.fs.Stat(s.archivePath(name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return stat, false, nil
	}
	return stat, err == nil && stat.File == src.id(), err
}

// writable locks the file to append to and returns it, and how it is. The caller
// has the lock of the name. fresh and dirty are what acquiring that returned.
func (l *Log) writable(ctx context.Context, fresh, dirty bool) (*plain, vfs.Stat, error) {
	for {
		file, ok := l.source.(*plain)
		if ok && !dirty && file.readonly == nil {
			if err := l.store.lockFile(ctx, l.name, file); err != nil {
				return nil, vfs.Stat{}, err
			}
			stat, current, err := l.store.isCurrent(l.name, file)
			if current && fresh {
				if err = l.store.putAsideArchive(l.name); err == nil {
					err = l.syncName()
				}
			}
			if current || err != nil {
				return file, stat, err
			}
		}
		if err := l.lookUp(ctx, dirty); err != nil {
			return nil, vfs.Stat{}, err
		}
		fresh, dirty = true, false
	}
}

// lookUp moves the log to the file that has its name now, restoring it from the archive first
// if there is none.
func (l *Log) lookUp(ctx context.Context, dirty bool) error {
	_, ours, err := l.store.isCurrent(l.name, l.source)
	if err == nil {
		err = l.store.restorePlain(context.WithoutCancel(ctx), l.name) // the append waits for this
	}
	if err == nil && dirty {
		err = l.writeAgain(ctx)
	}
	if err != nil {
		return err
	}
	src, err := l.store.openPlain(l.name)
	if err != nil {
		return err
	}
	if err := l.goOn(src.(*plain), ours); err != nil {
		return errors.Join(err, src.Close())
	}
	l.swap(src)
	return nil
}

// writeAgain writes the log's file again after a failed sync.
func (l *Log) writeAgain(ctx context.Context) error {
	locked, err := l.store.lockPlain(ctx, l.name)
	if err != nil {
		return err
	}
	defer closeIf(locked)
	if err := l.store.rewriteLocked(l.name); err != nil {
		return fmt.Errorf("writing the log again after a failed sync: %w", err)
	}
	return l.lock.clearUnsynced()
}

// goOn checks that the log can continue in a file. ours means that the file at the path was
// the open one when we took the lock, so we made the present file from it.
func (l *Log) goOn(file *plain, ours bool) error {
	if !ours {
		if err := l.mustContinue(file); err != nil {
			return err
		}
	}
	if file.readonly != nil {
		return file.readonly
	}
	return l.syncName()
}

// syncName makes the log's name durable. The process that gave the file its name may
// have been killed before that was durable, and an append is lost without the name.
func (l *Log) syncName() error { return l.store.syncDir(l.store.dir) }

// mustContinue makes sure that a file which has the log's name begins with every line of the
// open one. The caller holds writing, or mu shared: either keeps the open file open.
func (l *Log) mustContinue(other source) error {
	if l.source.id() == other.id() {
		return nil
	}
	same, err := l.store.beginsWith(other, l.source)
	if err != nil {
		return fmt.Errorf("comparing the log with the file that has its name now: %w", err)
	}
	if !same {
		return store.ErrReplaced
	}
	return nil
}

// beginsWith reports whether a log has every line of an older one, at the same place. A torn
// end of the older one is not a line.
func (s *Store) beginsWith(newer, older source) (bool, error) {
	was, err := older.Stat()
	if err != nil {
		return false, err
	}
	is, err := newer.Stat()
	if err != nil {
		return false, err
	}
	end, isLine, err := s.lastLine(older, was.Size)
	if isLine {
		end = was.Size
	}
	if err != nil || is.Size < end {
		return false, err
	}
	a, b := make([]byte, wholeChunk), make([]byte, wholeChunk)
	for at := int64(0); at < end; {
		n := min(end-at, wholeChunk)
		for _, side := range []struct {
			src source
			buf []byte
		}{{older, a[:n]}, {newer, b[:n]}} {
			if _, err := io.ReadFull(io.NewSectionReader(side.src, at, n), side.buf); err != nil {
				return false, err
			}
		}
		if !bytes.Equal(a[:n], b[:n]) {
			return false, nil
		}
		at += n
	}
	return true, nil
}

// swap moves the log to another file. That releases the lock on the old file, so a lease
// ends.
func (l *Log) swap(src source) {
	if l.lock.kept {
		l.lock.unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source.Close()
	l.source = src
}

// stillNamed checks after a sync that the synced file is still the log that others open. If
// no file has the name, the log was removed or moved away with all its lines, which is no
// different from a removal a moment later.
func (l *Log) stillNamed() error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	_, current, err := l.store.isCurrent(l.name, l.source)
	if current || err != nil {
		return err
	}
	now, err := l.store.openSource(l.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer now.Close()
	return l.mustContinue(now)
}

// follow moves the log to the file that has its name now, if that is another file and
// continues where the open one ends: writers no longer append to the open one. A log that was
// deleted stays readable as it was.
func (l *Log) follow() error {
	l.mu.RLock()
	src, closed := l.source, l.closed
	l.mu.RUnlock()
	if closed {
		return nil // reading reports it
	}
	if _, current, err := l.store.isCurrent(l.name, src); current || err != nil {
		return nil // without an answer, assume that nothing changed
	}
	now, err := l.store.openSource(l.name)
	if err != nil {
		return nil
	}
	if !l.writing.TryLock() { // a writer is at work, and will follow by itself
		return now.Close()
	}
	defer l.writing.Unlock()
	return l.moveTo(now)
}

// moveTo moves the log to a file that has its name, or closes that file. The caller holds
// writing.
func (l *Log) moveTo(now source) error {
	if l.isClosed() || l.source.id() == now.id() {
		return now.Close()
	}
	if err := l.mustContinue(now); err != nil {
		return errors.Join(err, now.Close())
	}
	l.swap(now)
	return nil
}

// stillThere follows the log when its file was replaced, and reports when it
// was removed or cut short.
func (l *Log) stillThere(from store.Pos) error {
	l.mu.RLock()
	src, closed := l.source, l.closed
	l.mu.RUnlock()
	if closed {
		return l.fail("watch", from, store.ErrClosed, nil)
	}
	stat, current, err := l.store.isCurrent(l.name, src)
	if err != nil {
		return l.failRead("watch", int64(from), err)
	}
	if !current {
		now, err := l.store.openSource(l.name)
		if errors.Is(err, fs.ErrNotExist) {
			return l.fail("watch", from, store.ErrNotExist, nil)
		}
		if err != nil {
			return l.failRead("watch", int64(from), err)
		}
		l.writing.Lock() // the writer does not expect the file to change
		defer l.writing.Unlock()
		if err := l.moveTo(now); err != nil {
			return l.failRead("watch", int64(from), err)
		}
		return nil
	}
	// A last line that lacks its line end was read as if it had one.
	if _, plain := src.(*plain); plain && stat.Size+1 < int64(from) {
		return l.fail("watch", from, store.ErrConflict, fmt.Errorf("the log was cut back to %d bytes", stat.Size))
	}
	return nil
}
