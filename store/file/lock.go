package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// nameLock is the exclusive right to change one log. The lock is on a file of
// its own and not on the log, because the log's file may be replaced (by
// archiving, say) while others wait for it.
//
// The lock file is removed only together with its log. Somebody who waited for
// the lock of a removed log gets one that leads nowhere; hence the question
// whether it is still linked, after every acquisition.
type nameLock struct {
	store *Store
	name  string
	file  vfs.File
}

// lockName opens and acquires the lock of a name.
func (s *Store) lockName(ctx context.Context, name string) (*nameLock, error) {
	l := &nameLock{store: s, name: name}
	if _, _, err := l.acquire(ctx); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// acquire takes the lock. fresh is true when the lock file is not the one of
// the previous acquisition, and everything known of the log may be out of date;
// dirty is true when a sync of the log failed and what was written since the
// last good one must be written anew (see markUnsynced).
func (l *nameLock) acquire(ctx context.Context) (fresh, dirty bool, err error) {
	for {
		if l.file == nil {
			fresh = true
			if err := l.open(); err != nil {
				return false, false, err
			}
		}
		if err := l.wait(ctx); err != nil {
			return false, false, err
		}
		stat, err := l.file.Stat()
		if err != nil {
			l.file.Unlock()
			return false, false, err
		}
		if stat.Linked {
			return fresh, stat.Size > 0, nil
		}
		l.close()
	}
}

func (l *nameLock) open() error {
	if err := l.store.mkdir(l.store.room("locks")); err != nil {
		return err
	}
	f, err := l.store.fs.OpenFile(l.store.lockPath(l.name), os.O_RDWR|os.O_CREATE|os.O_APPEND, filePerm)
	if err != nil {
		return err
	}
	l.file = f
	return nil
}

// wait polls: a blocking lock could not be interrupted, and appends hold the
// lock for microseconds.
func (l *nameLock) wait(ctx context.Context) error {
	deadline := time.Time{}
	pause := 20 * time.Microsecond
	for {
		ok, err := l.file.TryLock()
		if err != nil || ok {
			return err
		}
		now := time.Now()
		switch {
		case deadline.IsZero():
			deadline = now.Add(l.store.opts.LockWait)
		case now.After(deadline):
			return &store.Error{
				Op: "lock", Name: l.name, Path: l.store.lockPath(l.name), Kind: store.ErrLocked,
				Err:  fmt.Errorf("not free after %v", l.store.opts.LockWait),
				Hint: "another process is stuck while writing to this session",
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, 5*time.Millisecond)
	}
}

func (l *nameLock) release() {
	l.unlock()
	l.close()
}

// unlock cannot usefully fail: the lock goes with the descriptor at the latest.
func (l *nameLock) unlock() {
	if l.file != nil {
		l.file.Unlock()
	}
}

func (l *nameLock) close() {
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

// markUnsynced notes in the lock file that a sync of the log failed. After such
// a failure the kernel forgets that the data never reached the disk: a second
// sync answers "fine", and reading gives the data until memory is short. So
// nobody, in this process or another, may append before the log was written
// anew. The note need not survive a power cut: after one, what is read is what
// is on the disk.
func (l *nameLock) markUnsynced() error {
	if l.file == nil {
		return errors.New("the lock file is not open")
	}
	_, err := l.file.Write([]byte("unsynced\n"))
	return err
}

func (l *nameLock) clearUnsynced() error { return l.file.Truncate(0) }
