package file_test

import (
	"context"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
)

// While another process holds the lock, nothing that changes the log goes on,
// and what only reads does.
func TestLockHeldByAnotherProcess(t *testing.T) {
	const wait = 30 * time.Millisecond
	st := open(t, &file.Options{LockWait: wait})
	log := storetest.MustCreate(t, st, "a", "{}")
	cmd, out, in := otherProcess(t, "hold", st.Dir(), "a")
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
		if err := change(ctx); err == nil || ctx.Err() == nil {
			t.Errorf("%s while the context ends: %v", what, err)
		} else {
			wantKind(t, err, context.DeadlineExceeded)
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

// An append waits for the lock, and goes on when it is free.
func TestLockWaits(t *testing.T) {
	st := open(t, nil)
	log := storetest.MustCreate(t, st, "a", "{}")
	_, out, in := otherProcess(t, "hold", st.Dir(), "a")
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
