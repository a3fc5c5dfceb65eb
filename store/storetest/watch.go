package storetest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
)

var watchChecks = []check{
	{"SeesAppends", checkWatchSeesAppends},
	{"FromPosition", checkWatchFromPosition},
	{"EmptyLog", checkWatchEmptyLog},
	{"Order", checkWatchOrder},
	{"Several", checkWatchSeveral},
	{"Cancel", checkWatchCancel},
	{"CancelledBefore", checkWatchCancelledBefore},
	{"CancelInLoop", checkWatchCancelInLoop},
	{"Deadline", checkWatchDeadline},
	{"Break", checkWatchBreak},
	{"AppendInLoop", checkWatchAppendInLoop},
	{"Removed", checkWatchRemoved},
	{"RemovedBefore", checkWatchRemovedBefore},
	{"Recreated", checkWatchRecreated},
	{"All", checkWatchAll},
}

// watcher runs Watch in a goroutine of its own.
type watcher struct {
	lines  chan store.Line // closed when Watch has ended
	err    error           // with which it ended; to be read after that
	ended  chan struct{}
	cancel func()
}

func startWatch(t *testing.T, log store.Log, from store.Pos) *watcher {
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{lines: make(chan store.Line, 1000), ended: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(w.ended)
		defer close(w.lines)
		for line, err := range log.Watch(ctx, from) {
			if err != nil {
				w.err = err
				return
			}
			line.Data = bytes.Clone(line.Data)
			select {
			case w.lines <- line:
			case <-ctx.Done(): // the test is over, with no reader left
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		w.end(t)
	})
	return w
}

// next waits for the next line.
func (w *watcher) next(t *testing.T) store.Line {
	t.Helper()
	select {
	case line, ok := <-w.lines:
		if !ok {
			t.Fatalf("watch ended with %v, want another line", w.err)
		}
		return line
	case <-time.After(patience):
		t.Fatalf("watch gave nothing for %v", patience)
	}
	return store.Line{}
}

// want waits for these lines, and for no others before them.
func (w *watcher) want(t *testing.T, want ...string) {
	t.Helper()
	got := make([]string, len(want))
	for i := range got {
		got[i] = string(w.next(t).Data)
	}
	wantTexts(t, "watch", got, want)
}

// end waits for the watch to end and returns its error.
func (w *watcher) end(t *testing.T) error {
	t.Helper()
	select {
	case <-w.ended:
	case <-time.After(patience):
		t.Fatalf("watch did not end within %v", patience)
	}
	return w.err
}

// wantQuiet cancels the watch and checks that it ends without an error and
// without a line more.
func (w *watcher) wantQuiet(t *testing.T) {
	t.Helper()
	w.cancel()
	if err := w.end(t); err != nil {
		t.Fatalf("a cancelled watch ended with %v, want no error", err)
	}
	if len(w.lines) > 0 {
		t.Fatalf("watch gave a line too many: %.80q", (<-w.lines).Data)
	}
}

func checkWatchSeesAppends(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 2)...)
	w := startWatch(t, log, 0)
	w.want(t, nums(0, 2)...)
	MustAppend(t, log, num(2))
	w.want(t, num(2))
	other := MustOpen(t, s, "a")
	MustAppend(t, other, nums(3, 6)...)
	w.want(t, nums(3, 6)...)
	MustAppend(t, other, "")
	w.want(t, "")
	MustAppend(t, other, sized(1<<20))
	w.want(t, sized(1<<20))
	w.wantQuiet(t)
}

func checkWatchFromPosition(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 5)...)
	all := MustRead(t, log, 0)
	middle, end := startWatch(t, log, all[3].Pos), startWatch(t, log, MustEnd(t, log))
	middle.want(t, nums(3, 5)...)
	MustAppend(t, log, num(5))
	middle.want(t, num(5))
	wantSame(t, "watch", []store.Line{end.next(t)}, MustRead(t, log, all[4].Next))
	middle.wantQuiet(t)
	end.wantQuiet(t)
}

func checkWatchEmptyLog(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a")
	w := startWatch(t, log, 0)
	MustAppend(t, log, num(0))
	w.want(t, num(0))
	w.wantQuiet(t)
}

func checkWatchOrder(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a")
	w := startWatch(t, MustOpen(t, s, "a"), 0)
	for n := 0; n < 300; n += 3 {
		MustAppend(t, log, nums(n, n+3)...)
	}
	w.want(t, nums(0, 300)...)
	w.wantQuiet(t)
}

func checkWatchSeveral(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	other := MustCreate(t, s, "b", num(100))
	same, opened := startWatch(t, log, 0), startWatch(t, MustOpen(t, s, "a"), 0)
	second, elsewhere := startWatch(t, log, 0), startWatch(t, other, 0)
	second.want(t, num(0))
	second.wantQuiet(t) // the end of one watch does not end others
	MustAppend(t, log, nums(1, 5)...)
	same.want(t, nums(0, 5)...)
	opened.want(t, nums(0, 5)...)
	elsewhere.want(t, num(100))
	for _, w := range []*watcher{same, opened, elsewhere} {
		w.wantQuiet(t)
	}
}

func checkWatchCancel(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	w := startWatch(t, log, 0)
	w.want(t, num(0))
	w.wantQuiet(t)
	MustAppend(t, log, num(1))
	wantLines(t, log, nums(0, 2)...)
}

// It may still give what is there already.
func checkWatchCancelledBefore(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 3)...)
	within(t, "watch with a cancelled context", func() error {
		_, err := collect(log.Watch(cancelled(t), 0))
		return err
	})
}

func checkWatchCancelInLoop(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 1000)...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	within(t, "watch that is cancelled in its loop", func() error {
		for line, err := range log.Watch(ctx, 0) {
			if err != nil {
				return err
			}
			if got = append(got, string(line.Data)); len(got) == 10 {
				cancel()
			}
		}
		return nil
	})
	wantTexts(t, "watch", got, nums(0, max(10, len(got))))
}

func checkWatchDeadline(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 3)...)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	within(t, "watch with a deadline", func() error {
		_, err := collect(log.Watch(ctx, 0))
		return err
	})
}

func checkWatchBreak(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 3)...)
	for line, err := range log.Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if string(line.Data) == num(2) {
			break
		}
	}
	MustAppend(t, log, num(3))
	wantLines(t, log, nums(0, 4)...)
}

// A watcher may append in answer to a line.
func checkWatchAppendInLoop(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	within(t, "append while watching", func() error {
		n := 0
		for _, err := range log.Watch(t.Context(), 0) {
			if n++; err != nil || n == 20 {
				return err
			}
			if err := insist(t.Context(), log, num(n)); err != nil {
				return err
			}
		}
		return nil
	})
	wantLines(t, log, nums(0, 20)...)
}

func checkWatchRemoved(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	same, opened := startWatch(t, log, 0), startWatch(t, MustOpen(t, s, "a"), 0)
	same.want(t, num(0))
	opened.want(t, num(0))
	mustRemove(t, s, "a")
	wantErr(t, same.end(t), "a", store.ErrNotExist)
	wantErr(t, opened.end(t), "a", store.ErrNotExist)
}

func checkWatchRemovedBefore(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	mustRemove(t, s, "a")
	wantErr(t, startWatch(t, log, 0).end(t), "a", store.ErrNotExist)
}

// The lines of a new log with that name do not belong to the old one.
func checkWatchRecreated(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(1))
	w := startWatch(t, log, 0)
	w.want(t, num(1))
	mustRemove(t, s, "a")
	MustAppend(t, MustCreate(t, s, "a", num(2)), num(3))
	wantOneOf(t, w.end(t), store.ErrNotExist, store.ErrReplaced)
	if len(w.lines) > 0 {
		t.Fatalf("watch went over to the new log: %.80q", (<-w.lines).Data)
	}
}

// A watcher of all logs hears of each that is created, changed or removed, also
// by another handle.
func checkWatchAll(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	names, ended := make(chan string, 1000), make(chan error, 1)
	go func() {
		for name, err := range store.Watch(ctx, s) {
			if err != nil && !errors.Is(err, store.ErrUntold) {
				ended <- err
				return
			}
			names <- name
		}
		ended <- nil
	}()
	want := func(want string) {
		t.Helper()
		for late := time.After(patience); ; {
			select {
			case name := <-names:
				if name == want {
					return
				}
			case <-late:
				t.Fatalf("nothing was told of %q for %v", want, patience)
			}
		}
	}
	want("")
	MustAppend(t, log, num(1))
	want("a")
	MustCreate(t, s, "b", num(0))
	want("b")
	MustAppend(t, MustOpen(t, s, "a"), num(2))
	want("a")
	mustRemove(t, s, "b")
	want("b")
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("a cancelled watch ended with %v, want no error", err)
		}
	case <-time.After(patience):
		t.Fatalf("watch did not end within %v", patience)
	}
}
