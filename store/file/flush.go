package file

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"

	"github.com/coppice-dev/coppice/store"
)

// Flush implements store.Log. It shares its sync with the appends that are under
// way, and with other flushes.
//
// The order is that of an append with Sync: Always: first the blobs, then the
// lines that name them, last the name under which the lines are found. A power
// cut in between leaves no durable line without its blob.
func (l *Log) Flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.isClosed() {
		return l.fail("flush", 0, store.ErrClosed, nil)
	}
	if err := l.sync.failed(); err != nil {
		return l.fail("flush", l.sync.lastEnd(), store.ErrUnknown, err)
	}
	// A sync cannot be interrupted, so another goroutine waits for it. It ends
	// with the sync, and Close waits for that one.
	done := make(chan error, 1)
	if written, pending := l.sync.pending(); pending {
		go func() { done <- l.flush(ctx, written) }()
	} else {
		done <- l.rewriteUnsynced(ctx)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flush makes the first written bytes of this handle durable, and everything that is needed
// to find them.
func (l *Log) flush(ctx context.Context, written int64) error {
	if err := l.store.flushBlobs(ctx); err != nil {
		return l.flushFailed(err)
	}
	if err := l.sync.wait(written); err != nil || l.store.opts.Sync == Always {
		return err // with Always, publishing synced the file's name
	}
	if err := l.flushName(); err != nil {
		return l.flushFailed(err)
	}
	return nil
}

// flushFailed poisons the log: we do not know which part of it is on the disk, and a
// second sync would report success.
func (l *Log) flushFailed(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	l.sync.poison(err)
	l.noteUnsynced(err)
	return l.fail("flush", l.sync.lastEnd(), store.ErrUnknown, err)
}

// pending returns how many bytes were written through this handle, and whether
// there is anything that a flush has to wait for.
func (s *syncer) pending() (written int64, pending bool) {
	s.log.mu.RLock()
	src := s.log.source
	s.log.mu.RUnlock()
	late := s.log.store.late.any()
	s.mu.Lock()
	defer s.mu.Unlock()
	lazy := s.log.store.opts.Sync != Always
	return s.written, late || s.synced < s.written || lazy && s.written > 0 && s.named != src
}

func (s *syncer) lastEnd() store.Pos {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// flushName makes the log's name durable, once for each file of the log: with Sync: Never
// nothing else does, and otherwise it costs one more sync. If the file was replaced since,
// for example by archiving, our lines are in another file that may not be synced either.
func (l *Log) flushName() error {
	l.mu.RLock()
	src := l.source
	_, current, err := l.store.isCurrent(l.name, src)
	l.mu.RUnlock()
	if err != nil {
		return err
	}
	l.sync.mu.Lock()
	known := l.sync.named == src
	l.sync.mu.Unlock()
	if known && current {
		return nil
	}
	if !current {
		err = l.store.syncPresent(l.name)
	}
	if err == nil {
		err = l.store.flushDir(l.store.dir)
	}
	if err != nil {
		return err
	}
	l.sync.mu.Lock()
	l.sync.named = src
	l.sync.mu.Unlock()
	return nil
}

// flushDir makes a directory and the renames in it durable.
func (s *Store) flushDir(dir string) error {
	if err := s.eager().mkdir(dir); err != nil {
		return err
	}
	return s.fs.SyncDir(dir)
}

// eager returns the store with Sync: Always, to make up for the syncs that this one left out.
func (s *Store) eager() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.twin == nil {
		s.twin = &Store{dir: s.dir, opts: s.opts, fs: s.fs, made: maps.Clone(s.made), durable: make(map[string]bool)}
		s.twin.news.store = s.twin
		s.twin.opts.Sync = Always
	}
	return s.twin
}

// syncPresent syncs the file that holds the log now.
func (s *Store) syncPresent(name string) error {
	err := s.syncPath(s.Path(name))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err = s.syncPath(s.archivePath(name)); err == nil {
		err = s.flushDir(s.housePath("archive"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was removed, so there is nothing to lose
	}
	return err
}

func (s *Store) syncPath(path string) error {
	f, err := s.fs.OpenFile(path, os.O_RDWR, 0) // Windows syncs no file that is open for reading only
	if errors.Is(err, fs.ErrPermission) {
		f, err = s.fs.OpenFile(path, os.O_RDONLY, 0)
	}
	if err != nil {
		return err
	}
	syncSlots <- struct{}{}
	err = f.Sync()
	<-syncSlots
	return errors.Join(err, f.Close())
}

// rewriteUnsynced rewrites the log if a sync of it failed, through any handle: lines that can
// be read are not necessarily on the disk. An append of nothing does all of that.
func (l *Log) rewriteUnsynced(ctx context.Context) error {
	info, err := l.store.fs.Lstat(l.store.lockPath(l.name))
	if err != nil || info.Size() == 0 {
		return nil // without a lock file there is no note
	}
	for {
		end, err := l.End(ctx)
		if err != nil {
			return err
		}
		_, err = l.Append(ctx, end)
		if errors.Is(err, store.ErrConflict) {
			continue // another flush has settled it
		}
		if err != nil {
			return err
		}
		l.sync.wrote(1, end) // the rewritten lines may need a sync
		written, _ := l.sync.pending()
		return l.flush(ctx, written)
	}
}
