package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// # Holds
//
// A blob is deleted when no line refers to it. Between the Put of a blob and the append
// of the line that names it, there is no such line, and the blob must stay anyway. So
// writers share a lock from before the Put until the append is done, and a deletion
// takes it exclusively: a blob that is not named then can be named later only after
// another Put.
//
//	.coppice/blobs.lock       shared by holders, exclusive for a deletion
//	.coppice/blobs-wait.lock  exclusive for a deletion that waits
//
// The locks are the kernel's, so they end with the process. We never remove either
// file; if another program does, the next user makes a new one, as with the lock of a
// log.
//
// With a steady stream of writers, the shared lock would never be free. Hence the second
// file: while a deletion waits, new holders stop at it, and the earlier ones finish. That
// must not last long, because a holder may take another hold within the first, and one that
// holds for minutes (an import) should not keep all others waiting. So it is a request, not a
// lock: a waiting deletion withdraws it after a while and lets holders in for the same time,
// each time twice as long as before, up to maxRequest; and a holder that has waited for
// maxRequest proceeds whatever the file says. Only blobs.lock keeps others out. If it is not
// free within Options.LockWait, nothing is deleted and the error is store.ErrLocked.
//
// The order: a hold comes before the lock of a log. A deletion takes no lock of a log,
// so there is no cycle.
const (
	holdFile    = "blobs.lock"
	requestFile = "blobs-wait.lock"

	minRequest = 100 * time.Millisecond
	maxRequest = 3200 * time.Millisecond
)

// Hold implements store.Blobs.
func (b blobs) Hold(ctx context.Context) (release func(), err error) {
	if err := b.check(ctx); err != nil {
		return nil, err
	}
	f, err := b.store.hold(ctx)
	if err != nil {
		return nil, b.store.failHold("protect blobs", err)
	}
	var once sync.Once
	return func() { once.Do(func() { f.Close() }) }, nil // closing the file releases the lock
}

func (s *Store) hold(ctx context.Context) (vfs.File, error) {
	if err := s.yieldToDeletion(ctx); err != nil {
		return nil, err
	}
	return s.lockBlobs(ctx, s.opts.LockWait, vfs.File.TryRLock, "another process is deleting blobs")
}

// yieldToDeletion waits while a deletion is waiting, but not for too long.
func (s *Store) yieldToDeletion(ctx context.Context) error {
	f, err := s.fs.OpenFile(s.housePath(requestFile), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no deletion ever waited
	}
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = poll(ctx, min(maxRequest, s.opts.LockWait), f.TryRLock)
	return err
}

// withoutHolds calls do while there is no hold.
func (s *Store) withoutHolds(ctx context.Context, do func() error) error {
	request, err := s.openLock(requestFile)
	if err != nil {
		return err
	}
	defer request.Close()
	deadline := time.Now().Add(s.opts.LockWait)
	for long := minRequest; ; long = min(2*long, maxRequest) {
		left := time.Until(deadline)
		if _, err := poll(ctx, min(long, left), request.TryLock); err != nil {
			return err
		}
		f, err := s.lockBlobs(ctx, min(long, left), vfs.File.TryLock, "another process keeps writing content, for example an import")
		// From here on the lock itself keeps holders out, or it is their turn.
		if err := request.Unlock(); err != nil {
			return errors.Join(err, closeIf(f))
		}
		if err == nil {
			return errors.Join(do(), f.Close())
		}
		if !errors.Is(err, store.ErrLocked) || time.Until(deadline) <= 0 {
			return err
		}
		if err := pause(ctx, min(long, time.Until(deadline))); err != nil {
			return err
		}
	}
}

func closeIf(f vfs.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// lockBlobs opens the lock file and takes a lock on it. If the file lost its name in between,
// its lock protects nothing, and lockBlobs tries again.
func (s *Store) lockBlobs(ctx context.Context, wait time.Duration, try func(vfs.File) (bool, error), why string) (vfs.File, error) {
	for {
		f, err := s.openLock(holdFile)
		if err != nil {
			return nil, err
		}
		ok, err := poll(ctx, wait, func() (bool, error) { return try(f) })
		if err == nil && !ok {
			err = &store.Error{
				Op: "lock", Path: s.housePath(holdFile), Kind: store.ErrLocked,
				Err: fmt.Errorf("not free after %v: %s", s.opts.LockWait, why), Hint: "try again later",
			}
		}
		current := false
		if err == nil {
			current, err = s.hasItsName(f, s.housePath(holdFile))
		}
		if current {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
}

// hasItsName reports whether an open file is the one that has the name.
func (s *Store) hasItsName(f vfs.File, path string) (bool, error) {
	open, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := s.fs.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && open.File == named.File, err
}

func (s *Store) openLock(name string) (vfs.File, error) {
	return s.openIn(s.housePath(), s.housePath(name), os.O_RDWR|os.O_CREATE)
}

// poll calls try until it succeeds or the time is over, and reports whether it succeeded. It
// tries at least once. It polls because a blocking lock could not be interrupted, and because
// writers hold a lock for microseconds, or for leaseMax at most. When the machine stalls for
// so long that the context and the wait are both over, the context's error wins: that is the
// time the caller asked for.
func poll(ctx context.Context, wait time.Duration, try func() (bool, error)) (bool, error) {
	var deadline time.Time
	for gap := 20 * time.Microsecond; ; gap = min(2*gap, pollMax) {
		ok, err := try()
		if ok || err != nil {
			return ok, err
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(wait)
		} else if now := time.Now(); now.After(deadline) {
			if ends, ok := ctx.Deadline(); ok && now.After(ends) {
				<-ctx.Done() // after a stall its timer may fire a moment later than ours
			}
			return false, ctx.Err()
		}
		if err := pause(ctx, gap); err != nil {
			return false, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (s *Store) failHold(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*store.Error](err); known || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &store.Error{Op: op, Path: s.housePath(holdFile), Err: err}
}
