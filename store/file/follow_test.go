package file_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// watcher collects what a Watch yields.
type watcher struct {
	t     *testing.T
	lines chan string
	ended chan error // the error that ended it, nil if there was none
}

func watch(ctx context.Context, t *testing.T, log store.Log, from store.Pos) *watcher {
	w := &watcher{t, make(chan string, 1000), make(chan error, 1)}
	go func() {
		var last error
		for line, err := range log.Watch(ctx, from) {
			if last = err; err == nil {
				w.lines <- string(line.Data)
			}
		}
		w.ended <- last
	}()
	return w
}

func (w *watcher) want(lines ...string) {
	w.t.Helper()
	for _, want := range lines {
		select {
		case got := <-w.lines:
			if got != want {
				w.t.Fatalf("watched %q, want %q", got, want)
			}
		case err := <-w.ended:
			w.t.Fatalf("watching ended with %v, want line %q", err, want)
		case <-time.After(time.Minute):
			w.t.Fatalf("line %q was not seen", want)
		}
	}
}

func (w *watcher) wantEnd(kind error) error {
	w.t.Helper()
	select {
	case line := <-w.lines:
		w.t.Fatalf("watched one line more: %q", line)
	case err := <-w.ended:
		gone := kind == errGone && (errors.Is(err, store.ErrNotExist) || errors.Is(err, store.ErrReplaced))
		if !errors.Is(err, kind) && !gone {
			w.t.Fatalf("watching ended with %v, want %v", err, kind)
		}
		return err
	case <-time.After(time.Minute):
		w.t.Fatal("watching does not end")
	}
	return nil
}

// Watching goes on when the log's file is replaced by others.
func TestWatchFollowsTheLog(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	st := open(t, nil)
	log := storetest.MustCreate(t, st, "a", "0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := watch(ctx, t, storetest.MustOpen(t, st, "a"), 0)
	w.want("0")
	other := openAt(t, st.Where(), nil)
	for i, change := range []func(context.Context, string) error{
		other.Archive,   // read on in the archive
		other.Unarchive, // and back
		other.Archive,   // brought back by the append below
		func(context.Context, string) error { return nil },
	} {
		if err := change(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprint(i + 1)
		if i%2 == 0 {
			storetest.MustAppend(t, storetest.MustOpen(t, other, "a"), line)
		} else {
			storetest.MustAppend(t, log, line)
		}
		w.want(line)
	}
	cancel()
	w.wantEnd(nil)
}

// A log that is written anew after a failed sync is followed too. The handle
// that met the failure takes no more; others do.
func TestWatchFollowsARewrite(t *testing.T) {
	t.Parallel()
	var failing atomic.Bool
	disk := &vfstest.Faulty{FS: vfstest.NewMemory(), Before: func(op vfstest.Op) error {
		if op.Kind == vfstest.OpSync && failing.Load() {
			return errors.New("disk on fire")
		}
		return nil
	}}
	st := openAt(t, "/s", &file.Options{FS: disk})
	log := storetest.MustCreate(t, st, "a", "0")
	w := watch(t.Context(), t, storetest.MustOpen(t, st, "a"), 0)
	w.want("0")
	failing.Store(true)
	_, err := log.Append(t.Context(), 2, []byte("1"))
	wantKind(t, err, store.ErrUnknown, "sync", st.Path("a"), "disk on fire")
	failing.Store(false)
	_, err = log.Append(t.Context(), 4, []byte("2"))
	wantKind(t, err, store.ErrClosed, "append", "earlier write or sync failed", "open the session again")
	w.want("1")
	got := disk.Count(vfstest.OpRename)
	storetest.MustAppend(t, storetest.MustOpen(t, openAt(t, "/s", &file.Options{FS: disk}), "a"), "2")
	if disk.Count(vfstest.OpRename) == got {
		t.Error("the log was not written anew")
	}
	w.want("2")
}

func TestWatchOfArchive(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	st := open(t, nil)
	storetest.MustCreate(t, st, "a", "0", "1").Close()
	if err := st.Archive(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	log := storetest.MustOpen(t, st, "a")
	w := watch(t.Context(), t, log, 2)
	w.want("1")
	storetest.MustAppend(t, storetest.MustOpen(t, openAt(t, st.Where(), nil), "a"), "2")
	w.want("2")
	log.Close()
	w.wantEnd(store.ErrClosed)
}

// errGone stands for ErrNotExist or ErrReplaced: which of them depends on whether
// the watcher looks before or after the new log is there.
var errGone = errors.New("gone")

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	for _, test := range []struct {
		name string
		end  func(t *testing.T, st *file.Store, log store.Log)
		kind error
	}{
		{"removed", func(t *testing.T, st *file.Store, _ store.Log) { must(t, st.Remove(t.Context(), "a")) }, store.ErrNotExist},
		{"removed and made again", func(t *testing.T, st *file.Store, _ store.Log) {
			must(t, st.Remove(t.Context(), "a"))
			storetest.MustCreate(t, st, "a", "{}", "another")
		}, errGone},
		{"deleted by hand", func(t *testing.T, st *file.Store, _ store.Log) { must(t, os.Remove(st.Path("a"))) }, store.ErrNotExist},
		{"cut back", func(t *testing.T, st *file.Store, _ store.Log) { must(t, os.Truncate(st.Path("a"), 3)) }, store.ErrConflict},
		{"log closed", func(t *testing.T, _ *file.Store, log store.Log) { must(t, log.Close()) }, store.ErrClosed},
		{"store closed", func(t *testing.T, st *file.Store, _ store.Log) { must(t, st.Close()) }, store.ErrClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			st := open(t, nil)
			log := storetest.MustCreate(t, st, "a", "{}", "{}")
			w := watch(t.Context(), t, log, 0)
			w.want("{}", "{}")
			test.end(t, st, log)
			if err := w.wantEnd(test.kind); test.kind != errGone {
				wantKind(t, err, test.kind, st.Path("a"))
			}
		})
	}
}

// A watch that its caller breaks off, or that begins with a mistake, ends.
func TestWatchStops(t *testing.T) {
	t.Parallel()
	log := storetest.MustCreate(t, open(t, nil), "a", "0", "1")
	for line, err := range log.Watch(t.Context(), 0) {
		if err != nil || string(line.Data) != "0" {
			t.Fatalf("watched %q, %v", line.Data, err)
		}
		break
	}
	wantKind(t, watch(t.Context(), t, log, -1).wantEnd(store.ErrInvalid), store.ErrInvalid)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	watch(cancelled, t, log, 0).wantEnd(nil)
}

// A handle that only reads sees what others append after they have archived the
// log or brought it back: the file it had open is then not the log any more.
func TestReadersFollowTheLog(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	for _, from := range []string{"plain", "archived"} {
		t.Run(from, func(t *testing.T) {
			st := open(t, nil)
			storetest.MustCreate(t, st, "a", "0").Close()
			if from == "archived" {
				must(t, st.Archive(t.Context(), "a"))
			}
			log := storetest.MustOpen(t, st, "a")
			wantLines(t, log, "0")
			other := openAt(t, st.Where(), nil)
			must(t, other.Archive(t.Context(), "a"))
			end := storetest.MustAppend(t, storetest.MustOpen(t, other, "a"), "1")
			if got := storetest.MustEnd(t, log); got != end {
				t.Errorf("the log ends at %d, want %d", got, end)
			}
			must(t, other.Archive(t.Context(), "a"))
			must(t, other.Unarchive(t.Context(), "a"))
			storetest.MustAppend(t, storetest.MustOpen(t, other, "a"), "2")
			wantLines(t, log, "0", "1", "2")
			must(t, other.Archive(t.Context(), "a"))
			end = storetest.MustAppend(t, storetest.MustOpen(t, other, "a"), "3")
			if back := storetest.MustReadBack(t, log, end); len(back) != 4 || string(back[0].Data) != "3" {
				t.Errorf("%d lines backward", len(back))
			}
		})
	}
}

// What was deleted can still be read by who has it open. Once another log has
// the name, they are told: the old one may have been rewritten for a reason.
func TestReadersOfDeletedLog(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	st := open(t, nil)
	log := storetest.MustCreate(t, st, "a", `{"id":"old"}`)
	must(t, os.Remove(st.Path("a")))
	wantLines(t, log, `{"id":"old"}`)
	storetest.MustCreate(t, st, "a", `{"id":"new"}`)
	_, err := log.End(t.Context())
	wantKind(t, err, store.ErrReplaced, "end")
	for _, lines := range []iter.Seq2[store.Line, error]{
		log.Forward(t.Context(), 0), log.Backward(t.Context(), 5), log.Watch(t.Context(), 13),
	} {
		for line, err := range lines {
			if !errors.Is(err, store.ErrReplaced) {
				t.Errorf("read %q, %v, want %v", line.Data, err, store.ErrReplaced)
			}
			break
		}
	}
}
