package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// nameLock is the exclusive right to change one log. The lock is on a file of
// its own and not on the log, because the log's file may be replaced (by
// archiving, say) while others wait for it.
//
// The lock file is removed only together with its log, or right after a batch has
// created the log (see spareLock), and always by the holder of the lock. A waiter may then lock
// a file that no longer has a name; restoring a directory from a copy does that to every writer.
// So after each acquisition we check that the locked file is still the one at the path.
//
// # Leases
//
// Taking the lock, checking its name and releasing it cost more than the write they protect.
// So while one handle appends again and again, it keeps the lock from one append to the next:
// a lease. The rules:
//
//   - A lease begins only when an append directly follows one of the same handle
//     (no other writer's bytes in between) within leaseIdle. Writers that take
//     turns, and writers with pauses, never have one.
//   - It ends leaseIdle after the latest append, by a timer: a writer that pauses makes
//     no other wait for longer.
//   - It ends leaseMax after its beginning, however busy the writer is; the writer then
//     leaves the lock alone for leaseGap. Waiters check the lock more often than that
//     (see wait), so a busy writer cannot starve the others.
//   - It ends with any error, and with the process: the lock is the kernel's.
//   - With Sync: Always there is none. Compared with a sync it saves nothing, and other
//     writers should get in while we wait for the disk.
//
// A lease is just the lock held for longer, so it excludes whatever the lock excludes:
// during it no other process appends to, repairs, removes, archives or rewrites the
// log. A process that is stopped (not killed) keeps its lease, as it would have kept
// the lock if it had been stopped within an append.
//
// # The lock on the log's own file
//
// Changes that ignore the lock (rm, an editor, a directory that is replaced by a copy)
// must be noticed as soon as without a lease. They can affect the log's file and the
// lock file. Checking which file is at a path costs nearly as much as the write itself,
// and twice that for two paths. So a writer holds two locks: the one on the lock file,
// and then one on the log's own file, if there is one, taken before the check that this
// file is at the path. Under a lease that check is made before every write, and it
// covers both: as long as the file that we have locked is the log, any other writer has
// to wait for us, even if our lock file is gone and it has taken another. That our lock
// file is gone, or has a note in it (see markUnsynced), is then noticed when the lease
// is over.
//
// The lock on the log's own file would not be enough by itself: a log that is
// archived has no such file, and processes that create, archive, bring back and
// restore one must do so in turn.
type nameLock struct {
	store *Store
	name  string
	file  vfs.File
	id    vfs.FileID // of file
	path  string     // of file
	log   vfs.File   // the log's own file, which lockName has locked too; or nil

	lender *spareLock // whose file it is; nil: our own

	markPath string // "" until open, and for names that are not logs
	unmarked bool   // the holder makes changes known in another way

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

// openFilesKeepNames is true where open files cannot be removed or replaced: a lock file
// cannot get lost there, and one lock is enough.
const openFilesKeepNames = runtime.GOOS == "windows"

// lockName opens and acquires the locks of a name: the lock file's, and that on the
// log's own file if it is there.
func (s *Store) lockName(ctx context.Context, name string) (*nameLock, error) {
	return (&nameLock{store: s, name: name}).acquireBoth(ctx)
}

// acquireBoth acquires the locks that lockName returns.
func (l *nameLock) acquireBoth(ctx context.Context) (*nameLock, error) {
	if _, _, err := l.acquire(ctx); err != nil {
		l.close()
		return nil, err
	}
	return l.acquirePlain(ctx)
}

// acquirePlain acquires the second lock, after that of the lock file.
func (l *nameLock) acquirePlain(ctx context.Context) (*nameLock, error) {
	var err error
	if l.log, err = l.store.lockPlain(ctx, l.name); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// relock makes sure that the lock on the log's own file is on the file that has the
// name now. The file may have been restored, or replaced, by a holder of another
// lock file, because ours was deleted.
func (l *nameLock) relock(ctx context.Context) error {
	if l.log != nil {
		named, err := vfs.HasName(l.store.fs, l.log, l.store.Path(l.name))
		if named || err != nil {
			return err
		}
		l.log.Close()
		l.log = nil
	}
	var err error
	l.log, err = l.store.lockPlain(ctx, l.name)
	return err
}

// mustBeLocked makes sure that a file is the one that is locked. A file without write
// permission cannot be locked, and processes with the same permissions do not append to
// it.
func (l *nameLock) mustBeLocked(file *plain) error {
	if openFilesKeepNames || l.log == nil && file.readonly != nil {
		return nil
	}
	if l.log != nil {
		locked, err := l.log.Stat()
		if err != nil || locked.File == file.id() {
			return err
		}
	}
	return &store.Error{
		Op: "lock", Name: l.name, Path: file.path, Kind: store.ErrConflict,
		Err: errors.New("another program replaced it just now"),
	}
}

// lockPlain locks the plain file of a log, if it has one that counts. It puts a stray one
// aside, so that the stray is not taken for the log and the archive for a left-over. The
// caller has the lock of the name, and releases this one by closing the file.
func (s *Store) lockPlain(ctx context.Context, name string) (vfs.File, error) {
	if openFilesKeepNames {
		_, err := s.putAsideStray(name)
		return nil, err
	}
	for {
		f, err := s.fs.OpenFile(s.Path(name), os.O_RDWR, 0) // NFS locks only files open for writing
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, vfs.ErrSymlink), errors.Is(err, vfs.ErrNotRegular):
			return nil, nil // it cannot be appended to
		case errors.Is(err, fs.ErrPermission):
			_, err := s.putAsideStray(name)
			return nil, err // without write permission, a process can only move the file
		case err != nil:
			return nil, err
		}
		named := false
		if err = s.lockFile(ctx, name, f); err == nil {
			named, err = vfs.HasName(s.fs, f, s.Path(name))
		}
		stray := false
		if named {
			stray, err = s.putAsideStray(name)
		}
		if named && !stray && err == nil {
			return f, nil
		}
		f.Close()
		if stray || err != nil {
			return nil, err
		}
	}
}

// lockFile takes the lock on a log's own file.
func (s *Store) lockFile(ctx context.Context, name string, f vfs.File) error {
	if openFilesKeepNames {
		return nil
	}
	ok, err := poll(ctx, s.opts.LockWait, f.TryLock)
	if err == nil && !ok {
		err = s.errLocked(name, s.Path(name))
	}
	return err
}

func (s *Store) errLocked(name, path string) error {
	return &store.Error{
		Op: "lock", Name: name, Path: path, Kind: store.ErrLocked,
		Err:  fmt.Errorf("not free after %v", s.opts.LockWait),
		Hint: "another process seems to be stuck while it writes to this session; end that process",
	}
}

// acquire takes the lock. fresh is true when the lock file is not the one of the previous
// acquisition, so that everything known about the log may be out of date. dirty is true when
// a sync of the log failed, so that everything written since the last good one must be
// written again (see markUnsynced).
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
		if err := l.wait(ctx); err != nil {
			l.close() // so that the next acquisition is fresh
			return false, false, err
		}
		stat, err := l.store.fs.Stat(l.path)
		if err == nil && stat.File == l.id {
			if err := l.mark(); err != nil {
				l.close()
				return false, false, err
			}
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
	path := l.store.lockPath(l.name)
	f, err := l.store.openIn(l.store.housePath("locks"), path, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return err
	}
	stat, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.id, l.path, l.markPath = f, stat.File, path, l.store.markPath(l.name)
	return nil
}

func (l *nameLock) wait(ctx context.Context) error {
	ok, err := poll(ctx, l.store.opts.LockWait, l.file.TryLock)
	if err == nil && !ok {
		err = l.store.errLocked(l.name, l.path)
	}
	return err
}

func (l *nameLock) release() {
	if l.log != nil {
		l.log.Close()
		l.log = nil
	}
	if l.lender != nil {
		l.lender.reclaim(l)
		return
	}
	l.unlock()
	l.close()
}

// leaveNothing removes the lock file, which must be locked. An import creates thousands of
// logs that may never grow, and the next writer creates another lock file. A lock file with a
// note stays (see markUnsynced). It does no harm if the file cannot be removed, as on Windows
// while it is open.
func (l *nameLock) leaveNothing() {
	if l.file != nil && !l.dirty && l.lender == nil {
		_ = l.store.fs.Remove(l.path)
	}
}

// unlock returns no error: closing the descriptor releases the lock anyway.
func (l *nameLock) unlock() {
	l.kept = false
	if l.file != nil && l.file.Unlock() != nil {
		l.close()
	}
}

func (l *nameLock) close() {
	l.kept = false
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

// markUnsynced leaves a note in the lock file that a sync of the log failed. After such a
// failure the kernel forgets that the data never reached the disk: a second sync reports
// success, and reads return the data until memory is short. So no process, including this
// one, may append before the log was written again. The note need not survive a power cut:
// after one, reads return what is on the disk.
func (l *nameLock) markUnsynced() error {
	if l.file == nil {
		return errors.New("the lock file is not open")
	}
	_, err := l.file.Write([]byte("unsynced\n"))
	return err
}

func (l *nameLock) clearUnsynced() error { return l.file.Truncate(0) }
