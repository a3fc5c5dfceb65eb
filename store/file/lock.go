package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
// the lock of a removed log gets one that leads nowhere, and who restores a
// directory from a copy leaves everybody with locks on files that nobody else
// opens; hence the question whether the locked file is the one at the path, after
// every acquisition.
//
// # Leases
//
// Taking the lock, asking whether it has its name and giving it back cost more
// than the write they protect. So while one handle appends again and again, it
// keeps the lock from one append to the next: a lease. The rules:
//
//   - A lease begins only when an append directly follows one of the same handle
//     (no other writer's bytes in between) within leaseIdle. Writers that take
//     turns, and writers with pauses, never have one.
//   - It ends leaseIdle after the latest append, by a timer: nobody is locked out
//     for longer by a writer that fell silent.
//   - It ends leaseMax after its beginning, however busy the writer is, who then
//     leaves the lock alone for leaseGap. Whoever waits looks at the lock more
//     often than that (see wait), so a busy writer cannot starve the others.
//   - It ends with any error, and with the process: the lock is the kernel's.
//   - With Sync: Always there is none. Beside a sync, what it saves is nothing;
//     and others should get in while we wait for the disk.
//
// A lease is nothing but the lock held for longer, so whatever the lock excludes
// it excludes: no other process appends, repairs, removes, archives or rewrites
// the log meanwhile. What ignores the lock (rm, an editor, a directory that is
// replaced by a copy) is noticed as soon as without a lease, because the log's
// file and the lock's are looked up before every write. A process that is stopped
// (not killed) keeps its lease, as it would have kept the lock if it had been
// stopped within an append.
type nameLock struct {
	store *Store
	name  string
	file  vfs.File
	id    vfs.FileID // of file
	path  string     // of file

	dirty bool // what acquire returned last

	kept  bool      // a lease is under way: the lock is held between appends
	since time.Time // when it began
	rest  time.Time // until when to leave the lock to others
}

const (
	leaseIdle = time.Millisecond
	leaseMax  = 10 * time.Millisecond
	leaseGap  = time.Millisecond
	// pollMax bounds the pause between two looks at the lock. It must be below
	// leaseGap.
	pollMax = 200 * time.Microsecond
)

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
// last good one must be written anew (see markUnsynced). Under a lease the lock
// is held already; but is it still the one that others take?
func (l *nameLock) acquire(ctx context.Context) (fresh, dirty bool, err error) {
	if !l.rest.IsZero() {
		time.Sleep(time.Until(l.rest))
		l.rest = time.Time{}
	}
	for {
		if l.file == nil {
			fresh = true
			if err := l.open(); err != nil {
				return false, false, err
			}
		}
		if !l.kept {
			if err := l.wait(ctx); err != nil {
				l.close() // so that the next acquisition is fresh
				return false, false, err
			}
		}
		stat, err := l.store.fs.Stat(l.path)
		if err == nil && stat.File == l.id {
			l.dirty = stat.Size > 0
			return fresh, l.dirty, nil
		}
		l.close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, false, err
		}
	}
}

func (l *nameLock) open() error {
	if err := l.store.mkdir(l.store.room("locks")); err != nil {
		return err
	}
	path := l.store.lockPath(l.name)
	f, err := l.store.fs.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, filePerm)
	if err != nil {
		return err
	}
	stat, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.id, l.path = f, stat.File, path
	return nil
}

// wait polls: a blocking lock could not be interrupted, and writers hold the
// lock for microseconds, or for leaseMax at most.
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
		pause = min(2*pause, pollMax)
	}
}

func (l *nameLock) release() {
	l.unlock()
	l.close()
}

// unlock cannot usefully fail: the lock goes with the descriptor at the latest.
func (l *nameLock) unlock() {
	l.kept = false
	if l.file != nil && l.file.Unlock() != nil {
		l.close()
	}
}

// keep begins a lease or goes on with it, instead of unlock, and reports whether
// it began. A lease that has lasted long enough ends.
func (l *nameLock) keep(now time.Time) (began bool) {
	switch {
	case !l.kept:
		l.kept, l.since = true, now
		return true
	case now.Sub(l.since) >= leaseMax:
		l.unlock()
		l.rest = now.Add(leaseGap)
	}
	return false
}

func (l *nameLock) close() {
	l.kept = false
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
