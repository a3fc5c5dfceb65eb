package index_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/store"
)

// A question that is asked while the index is rebuilt is about all sessions, not
// about those that are in it again already. So it is for another process.
func TestRebuildShowsNobodyAPart(t *testing.T) {
	t.Parallel()
	const sessions = 12
	f := newFixture(t)
	for i := range sessions {
		f.say(fmt.Sprintf("needle %d", i))
	}
	ix, other := f.open(t), f.open(t)
	ix.SetBatch(1)
	count := func(ix *index.Index) int {
		list, _, err := ix.List(context.Background(), index.ListOptions{Limit: -1})
		if err != nil {
			t.Error(err)
		}
		return len(list)
	}
	var asking sync.WaitGroup
	asked := 0
	_, err := ix.Rebuild(t.Context(), func(done, total int64) {
		if done == 0 || done == total || asked > 2 {
			return
		}
		asked++
		answered := make(chan struct{})
		asking.Go(func() {
			if n := count(ix); n != sessions {
				t.Errorf("%d of %d sessions were listed", n, sessions)
			}
			close(answered)
		})
		select { // if it does not wait, give it the time to go wrong
		case <-answered:
		case <-time.After(20 * time.Millisecond):
		}
		if _, err := other.CatchUp(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if n := count(other); n != sessions {
			t.Errorf("another process listed %d of %d sessions", n, sessions)
		}
	})
	if err != nil || asked == 0 {
		t.Fatalf("asked %d times: %v", asked, err)
	}
	asking.Wait()
}

// Whoever waits for another's catch-up gives up when their context says so.
func TestWaitingToCatchUpHonoursTheContext(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.say("hello")
	ix := must[*index.Index](t)(index.Open(t.Context(), f.st, f.path(), nil))
	t.Cleanup(func() { ix.Close() })
	waited := false
	_, err := ix.CatchUp(t.Context(), func(_, _ int64) {
		waited = true
		for what, wait := range map[string]func(context.Context) error{
			"catch up": func(ctx context.Context) error { _, err := ix.CatchUp(ctx, nil); return err },
			"rebuild":  func(ctx context.Context) error { _, err := ix.Rebuild(ctx, nil); return err },
			"discard":  ix.Discard,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if err := wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", what, err)
			}
			cancel()
		}
	})
	if err != nil || !waited {
		t.Errorf("waited: %v, %v", waited, err)
	}
}

// A program that closes an index does not wait for all sessions to be read.
func TestCloseEndsACatchUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.say("hello")
	ix := must[*index.Index](t)(index.Open(t.Context(), f.st, f.path(), nil))
	var closing sync.WaitGroup
	_, err := ix.CatchUp(t.Context(), func(_, _ int64) {
		closing.Go(func() {
			if err := ix.Close(); err != nil {
				t.Error(err)
			}
		})
		<-ix.Closing()
	})
	closing.Wait()
	if !errors.Is(err, store.ErrClosed) {
		t.Error(err)
	}
}

// Everybody who asks while a catch-up runs gets the next one, and that is one for all.
// The one that runs would not do: it may have looked before they asked.
func TestCatchUpIsSharedByThoseWhoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns index.Turns
		var all sync.WaitGroup
		runs := 0
		_, err := turns.Do(t.Context(), false, func() (index.Report, error) {
			for range 8 {
				all.Go(func() {
					report, err := turns.Do(t.Context(), false, func() (index.Report, error) {
						runs++
						return index.Report{Changed: 1}, nil
					})
					if err != nil || report.Changed != 1 {
						t.Errorf("%+v, %v", report, err)
					}
				})
			}
			synctest.Wait()
			return index.Report{}, nil
		})
		all.Wait()
		if err != nil || runs != 1 {
			t.Errorf("%d runs, %v", runs, err)
		}
	})
}

// A catch-up that failed, or whose caller left, serves nobody; and one that looked at
// the marked sessions alone does not serve whoever wants all looked at.
func TestOnlyACatchUpThatServesIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns index.Turns
		var all sync.WaitGroup
		var runs []string
		queue := func(name string, sweep bool, failure error) {
			all.Go(func() {
				_, err := turns.Do(t.Context(), sweep, func() (index.Report, error) {
					runs = append(runs, name)
					return index.Report{}, failure
				})
				if !errors.Is(err, failure) {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait()
		}
		_, err := turns.Do(t.Context(), false, func() (index.Report, error) {
			queue("left", false, context.Canceled)
			queue("marked", false, nil)
			queue("all", true, nil)
			queue("served", false, nil)
			return index.Report{}, nil
		})
		all.Wait()
		if got := strings.Join(runs, " "); err != nil || got != "left marked all" {
			t.Errorf("%s, %v", got, err)
		}
	})
}
