package file_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// writer is one handle on the log "a" of a directory, with a store of its own:
// to the others it is another process.
type writer struct {
	t     *testing.T
	store *file.Store
	log   store.Log
	end   store.Pos
}

func newWriter(t *testing.T, dir string, sync file.Sync) *writer {
	t.Helper()
	return newWriterWith(t, dir, &file.Options{Sync: sync})
}

func newWriterWith(t *testing.T, dir string, o *file.Options) *writer {
	t.Helper()
	st, err := file.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	log, err := st.Create(t.Context(), "a", store.Lines([]byte(`{"header":1}`)))
	if errors.Is(err, store.ErrExist) {
		log, err = st.Open(t.Context(), "a")
	}
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{t: t, store: st, log: log}
	w.look()
	return w
}

func (w *writer) look() {
	w.t.Helper()
	end, err := w.log.End(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.end = end
}

func (w *writer) append() error {
	end, err := w.log.Append(context.Background(), w.end, []byte(`{}`))
	if err == nil {
		w.end = end
	}
	return err
}

// burst appends until the lock is kept: the moment it is depends on how long the
// scheduler lets us run.
func (w *writer) burst() {
	w.t.Helper()
	for range 20000 {
		if err := w.append(); err != nil {
			w.t.Fatal(err)
		}
		if w.locked() {
			return
		}
	}
	w.t.Fatal("the lock was never kept")
}

// locked reports whether somebody holds the log's lock.
func (w *writer) locked() bool {
	w.t.Helper()
	f, err := vfs.OS{}.OpenFile(filepath.Join(w.store.Where(), ".coppice", "locks", "a.lock"), os.O_RDWR, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	ok, err := f.TryLock()
	if err != nil {
		w.t.Fatal(err)
	}
	return !ok
}

func TestLeaseEndsWhenIdle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := newWriter(t, dir, file.Never), newWriter(t, dir, file.Never)
	a.burst()
	b.look()
	if err := b.append(); err != nil {
		t.Fatalf("another writer, after a burst: %v", err)
	}
	if err := a.append(); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("the writer of the burst gets %v, want a conflict", err)
	}
}

func TestLeaseEndsOnClose(t *testing.T) {
	t.Parallel()
	a := newWriter(t, t.TempDir(), file.Never)
	a.burst()
	if err := a.log.Close(); err != nil {
		t.Fatal(err)
	}
	if a.locked() {
		t.Error("a closed log holds its lock")
	}
}

func TestNoLeaseWithSyncAlways(t *testing.T) {
	t.Parallel()
	a := newWriter(t, t.TempDir(), file.Always)
	for range 50 {
		if err := a.append(); err != nil {
			t.Fatal(err)
		}
		if a.locked() {
			t.Fatal("the lock is held between appends")
		}
	}
}

// TestBusyWriterGivesWay: a writer that never pauses must let another in, again
// and again, in the time that the other is willing to wait.
func TestBusyWriterGivesWay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := newWriter(t, dir, file.Never), newWriter(t, dir, file.Never)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			err := a.append()
			if errors.Is(err, store.ErrConflict) {
				a.end, err = a.log.End(context.Background())
			}
			if err != nil {
				stopped <- err
				return
			}
		}
	}()
	start := time.Now()
	for landed := 0; landed < 20; {
		b.look()
		err := b.append()
		switch {
		case err == nil:
			landed++
		case !errors.Is(err, store.ErrConflict):
			t.Fatalf("after %d appends beside a busy writer: %v", landed, err)
		case time.Since(start) > 2*time.Minute:
			t.Fatalf("only %d appends landed in %v beside a busy writer", landed, time.Since(start))
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Errorf("the busy writer: %v", err)
	}
}

// TestLeaseIsNoBlindfold: what others do without asking for the lock is noticed
// by the next append of a burst.
func TestLeaseIsNoBlindfold(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, path string)
		want   error
	}{
		"deleted": {func(t *testing.T, path string) { must(t, os.Remove(path)) }, store.ErrNotExist},
		"replaced": {func(t *testing.T, path string) {
			must(t, os.WriteFile(path+".new", []byte("{\"header\":2}\n"), 0o600))
			must(t, os.Rename(path+".new", path))
		}, store.ErrReplaced},
		"cut short": {func(t *testing.T, path string) { must(t, os.Truncate(path, 5)) }, store.ErrConflict},
		"appended to": {func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			must(t, err)
			_, err = f.WriteString("{}\n")
			must(t, err)
			must(t, f.Close())
		}, store.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			skipWindows(t)
			a := newWriter(t, t.TempDir(), file.Never)
			a.burst()
			test.change(t, a.store.Path("a"))
			if err := a.append(); !errors.Is(err, test.want) {
				t.Errorf("append: %v, want %v", err, test.want)
			}
		})
	}
}

// TestRemoveDuringBurst: who asks for the lock waits for the burst to end.
func TestRemoveDuringBurst(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	dir := t.TempDir()
	a, b := newWriter(t, dir, file.Never), newWriter(t, dir, file.Never)
	a.burst()
	must(t, b.store.Remove(t.Context(), "a"))
	if err := a.append(); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("append to a removed log: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// skipWindows skips a test that deletes or replaces an open file.
func skipWindows(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not let an open file be replaced")
	}
}

// TestLeaseNeedsNoLockFile: a lease excludes others although somebody deleted its
// lock file and they take another; and the lock file is back when the lease is over.
func TestLeaseNeedsNoLockFile(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	for name, change := range map[string]func(t *testing.T, w *writer) error{
		"append":  func(_ *testing.T, w *writer) error { return w.append() },
		"archive": func(t *testing.T, w *writer) error { return w.store.Archive(t.Context(), "a") },
		"remove":  func(t *testing.T, w *writer) error { return w.store.Remove(t.Context(), "a") },
		"rewrite": func(t *testing.T, w *writer) error {
			_, err := mustRaw(t, w.store, "a").Rewrite(t.Context(), pieces(store.Piece{Line: []byte(`{"header":2}`)}))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var meanwhile func()
			a := newWriterWith(t, dir, &file.Options{Sync: file.Never, FS: &vfstest.Faulty{FS: vfs.OS{}, Before: func(op vfstest.Op) error {
				if op.Kind == vfstest.OpWrite && meanwhile != nil {
					now := meanwhile
					meanwhile = nil
					now()
				}
				return nil
			}}})
			b := newWriterWith(t, dir, &file.Options{LockWait: time.Millisecond})
			lock := filepath.Join(dir, ".coppice", "locks", "a.lock")
			for range 20 {
				a.burst() // ends with a lease, which is over soon
				must(t, os.Remove(lock))
				meanwhile = func() {
					b.look()
					if err := change(t, b); !errors.Is(err, store.ErrLocked) {
						t.Errorf("beside an append: %v, want that the log is locked", err)
					}
				}
				must(t, a.append())
			}
			must(t, os.RemoveAll(lock))
			// A lease ends after 10 ms, by a timer that may come late.
			_, err := os.Lstat(lock)
			for start := time.Now(); err != nil && time.Since(start) < time.Minute; _, err = os.Lstat(lock) {
				time.Sleep(15 * time.Millisecond)
				must(t, a.append())
			}
			if err != nil {
				t.Errorf("after the lease: %v", err)
			}
		})
	}
}
