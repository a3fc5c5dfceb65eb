package file_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// While another process holds the lock, nothing that changes the log goes on,
// and what only reads does.
func TestLockHeldByAnotherProcess(t *testing.T) {
	t.Parallel()
	const wait = 30 * time.Millisecond
	st := open(t, &file.Options{LockWait: wait})
	log := storetest.MustCreate(t, st, "a", "{}")
	cmd, out, in := otherProcess(t, "hold", st.Where(), "a")
	if said, err := out.ReadString('\n'); err != nil {
		t.Fatalf("the other process said %q, %v", said, err)
	}
	for what, change := range map[string]func(ctx context.Context) error{
		"append":    func(ctx context.Context) error { _, err := log.Append(ctx, 3, []byte("{}")); return err },
		"remove":    func(ctx context.Context) error { return st.Remove(ctx, "a") },
		"archive":   func(ctx context.Context) error { return st.Archive(ctx, "a") },
		"unarchive": func(ctx context.Context) error { return st.Unarchive(ctx, "a") },
		"create":    func(ctx context.Context) error { _, err := st.Create(ctx, "a", store.Lines()); return err },
		"restore backup": func(ctx context.Context) error {
			return st.RestoreBackup(ctx, "a")
		},
	} {
		began := time.Now()
		err := change(t.Context())
		wantKind(t, err, store.ErrLocked, "lock", "a.lock", "not free after 30ms", "another process")
		if took := time.Since(began); took < wait {
			t.Errorf("%s gave up after %v, want %v", what, took, wait)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if err := change(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
			t.Errorf("%s while the context ends: %v, and the context says %v", what, err, ctx.Err())
		}
		cancel()
	}
	wantLines(t, log, "{}")

	in.Close() // the other process ends, and its lock with it
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	storetest.MustAppend(t, log, "{}")
	wantLines(t, log, "{}", "{}")
}

// A machine may stall for longer than the context and the wait together. Then the
// answer is the context's, as the caller asked for less time than the store.
func TestContextThatEndsWithTheWait(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	log := storetest.MustCreate(t, openAt(t, "/s", &file.Options{FS: disk}), "a", "{}")
	unpin, err := log.Pin(t.Context())
	must(t, err)
	defer unpin()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	locks := 0
	stalling := &vfstest.Faulty{FS: disk, Before: func(op vfstest.Op) error {
		if op.Kind == vfstest.OpLock {
			if locks++; locks == 2 {
				cancel()
			}
		}
		return nil
	}}
	other := storetest.MustOpen(t, openAt(t, "/s", &file.Options{FS: stalling, LockWait: time.Nanosecond}), "a")
	if _, err := other.Append(ctx, 3, []byte("{}")); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v, want %v", err, context.Canceled)
	}
	if locks < 2 {
		t.Errorf("%d looks at the lock", locks)
	}
}

// lateContext is over for the clock, but its own timer has not fired.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Now().Add(-time.Hour), true }

// After a stall the wait may end before the timer of a context that is over too.
// The answer must not come before the context gives the same.
func TestTheErrorAgreesWithTheContext(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	log := storetest.MustCreate(t, openAt(t, "/s", &file.Options{FS: disk}), "a", "{}")
	unpin, err := log.Pin(t.Context())
	must(t, err)
	defer unpin()

	inner, cancel := context.WithCancel(t.Context())
	ctx := lateContext{inner}
	timer := time.AfterFunc(20*time.Millisecond, cancel)
	defer timer.Stop()
	other := storetest.MustOpen(t, openAt(t, "/s", &file.Options{FS: disk, LockWait: time.Nanosecond}), "a")
	if _, err := other.Append(ctx, 3, []byte("{}")); ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		t.Errorf("append: %v, and the context says %v", err, ctx.Err())
	}
}

// An append waits for the lock, and goes on when it is free.
func TestLockWaits(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	log := storetest.MustCreate(t, st, "a", "{}")
	_, out, in := otherProcess(t, "hold", st.Where(), "a")
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := log.Append(t.Context(), 3, []byte("{}"))
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("append without the lock: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	wantLines(t, log, "{}") // who reads does not wait
	in.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
