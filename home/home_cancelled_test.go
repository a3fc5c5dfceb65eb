package home_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// fuse is a context that is cancelled when it was asked so many times whether it is.
type fuse struct {
	context.Context
	left   atomic.Int64
	cancel context.CancelFunc
}

func newFuse(t *testing.T, length int) *fuse {
	f := &fuse{}
	f.Context, f.cancel = context.WithCancel(t.Context())
	f.left.Store(int64(length))
	t.Cleanup(f.cancel)
	return f
}

// Err implements context.Context.
func (f *fuse) Err() error {
	if f.left.Add(-1) < 0 {
		f.cancel()
	}
	return f.Context.Err()
}

// cancelAnywhere runs an operation again and again, and has its context cancelled a
// little later each time, until the operation comes to its end. It reports how often
// the operation had done some of its work when it was cancelled.
func cancelAnywhere(t *testing.T, run func(t *testing.T, ctx context.Context) (done int, err error)) {
	t.Helper()
	partial := 0
	for length := 0; ; length++ {
		if length > 1000 {
			t.Fatal("it does not come to an end")
		}
		done, err := run(t, newFuse(t, length))
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) || t.Failed() {
			t.Fatalf("cancelled at the %dth look: %v", length, err)
		}
		if done > 0 {
			partial++
		}
	}
	if partial == 0 {
		t.Error("it was never cancelled in the middle")
	}
}

// The result has what was done before the context ended, and nothing else.
func TestRetainTellsWhatWentBeforeItWasCancelled(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	for i := range 3 {
		keep(t, dir, fmt.Sprintf("s%d", i), 40)
	}
	cancelAnywhere(t, func(t *testing.T, ctx context.Context) (int, error) {
		result, err := h.Upkeep.Retain(ctx, home.RetainRequest{OlderThan: home.Age(time.Hour)})
		if result == nil || len(result.Failed) > 0 {
			t.Fatalf("%+v, %v", result, err)
		}
		trash, trashErr := h.Upkeep.Trash(t.Context(), home.TrashRequest{})
		if trashErr != nil {
			t.Fatal(trashErr)
		}
		var told, gone []string
		for _, s := range result.Sessions {
			told = append(told, s.Removal)
		}
		for _, r := range trash.Removals {
			gone = append(gone, r.ID)
			if _, err := h.Upkeep.Restore(t.Context(), home.RestoreRequest{Session: r.ID}); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(told)
		slices.Sort(gone)
		if !slices.Equal(told, gone) {
			t.Errorf("told %v, gone %v", told, gone)
		}
		return len(told), err
	})
}

func TestArchiveTellsWhatItDidBeforeItWasCancelled(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	for i := range 3 {
		keep(t, dir, fmt.Sprintf("s%d", i), 40, "hello")
	}
	cancelAnywhere(t, func(t *testing.T, ctx context.Context) (int, error) {
		result, err := h.Sessions.Archive(ctx, home.ArchiveRequest{OlderThan: home.Age(time.Hour)})
		var told, archived []string
		if result != nil {
			if len(result.Failed) > 0 {
				t.Errorf("%+v", result)
			}
			for _, s := range result.Sessions {
				if told = append(told, s.ID); s.Size == 0 {
					t.Errorf("%+v", s)
				}
			}
		}
		for stat, err := range h.Store().List(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if stat.Archived {
				archived = append(archived, stat.Name)
				if err := h.Store().(store.Archiver).Unarchive(t.Context(), stat.Name); err != nil {
					t.Fatal(err)
				}
			}
		}
		slices.Sort(archived)
		if !slices.Equal(told, archived) {
			t.Errorf("told %v, archived %v", told, archived)
		}
		return len(told), err
	})
}

// cancelOn is a writer that cancels a context when something is written.
type cancelOn struct {
	cancel  context.CancelFunc
	written int
}

func (w *cancelOn) Write(p []byte) (int, error) {
	w.cancel()
	w.written += len(p)
	return len(p), nil
}

// Whoever no longer wants an export, or a path, does not get the rest of it.
func TestReadingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	long := make([]string, 200)
	for i := range long {
		long[i] = strings.Repeat("word ", 400)
	}
	keep(t, dir, "long", 1, long...)
	for _, r := range []home.ExportRequest{
		{Format: home.ExportJSON},
		{Format: home.ExportJSONL},
		{Format: home.ExportMarkdown},
		{Format: home.ExportHTML},
		{Format: home.ExportJSON, Redact: true},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		out := &cancelOn{cancel: cancel}
		r.Session = "long"
		if _, err := h.Transfer.Export(ctx, r, into(out)); !errors.Is(err, context.Canceled) || out.written > 200_000 {
			t.Errorf("%s: %d bytes were written: %v", r.Format, out.written, err)
		}
	}
	for _, r := range []home.PathRequest{{}, {All: true}, {Last: 100}} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.Session = "long"
		n := 0
		_, last := h.Entries.Path(ctx, r, func(session.Entry) error {
			n++
			cancel()
			return nil
		})
		if n != 1 || !errors.Is(last, context.Canceled) {
			t.Errorf("%+v: %d entries, %v", r, n, last)
		}
	}
}
