package home_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// A redaction deletes the index. Other goroutines are in the middle of a search
// then, and must not notice.
func TestRedactionDoesNotDisturbASearch(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "plain", 1, "nothing of note")
	search := func() {
		found, err := h.Search.Find(t.Context(), home.FindRequest{Query: "note", Session: "plain"})
		if err != nil || len(found.Hits) != 1 {
			t.Errorf("%+v, %v", found, err)
		}
	}
	search() // now there is an index
	var searching sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		searching.Go(func() {
			for !t.Failed() {
				select {
				case <-done:
					return
				default:
				}
				search()
			}
		})
	}
	for _, letter := range []string{"A", "B", "C", "D", "E"} {
		keep(t, dir, "secret"+letter, 1, "use gh"+"p_"+"fOurThB1tsT3stF1x8Kq7wZ2yLp5Vc9Jh3X"+letter)
		cleaned, err := h.Upkeep.Redact(t.Context(), home.RedactRequest{All: true, Apply: true})
		if err != nil || len(cleaned.Secrets) != 1 || cleaned.Index == "" {
			t.Errorf("%+v, %v", cleaned, err)
		}
	}
	close(done)
	searching.Wait()
}

// A home that nobody has written to must not be written to by those who look at
// it. Once somebody has, its index belongs beside the sessions.
func TestIndexMovesIntoAHomeThatIsUsed(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	if list, err := h.Sessions.List(t.Context(), home.ListRequest{}); err != nil || len(list.Sessions) > 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	keep(t, dir, "first", 1, "hello")
	status, err := h.Upkeep.IndexStatus(t.Context())
	if err != nil || status.Path != indexPath(h) || status.Sessions != 1 {
		t.Errorf("%+v, %v", status, err)
	}
}

// Whoever is late, when a server stops, must not leave an index open.
func TestClosedHomeHasNoIndex(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "first", 1, "hello")
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Sessions.List(t.Context(), home.ListRequest{}); !errors.Is(err, store.ErrClosed) {
		t.Error(err)
	}
	if _, err := os.Stat(indexPath(h)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an index was made: %v", err)
	}
}

// damage makes an archived session that nobody can read.
func (h *house) damage(name string) {
	h.Helper()
	dir := filepath.Join(filepath.Dir(indexPath(h.Home)), "archive")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".jsonl.zst"), []byte("not compressed"), 0o600); err != nil {
		h.Fatal(err)
	}
}

// Rebuilding reads every session once, and not a second time to catch up with
// what is thrown away.
func TestRebuildReadsOnce(t *testing.T) {
	t.Parallel()
	unread := 0
	h := newHouseInFiles(t)
	h.Home = h.open(&home.Options{Create: true, Notify: func(n home.Notice) {
		if n.Kind == home.SessionUnread {
			unread++
		}
	}})
	h.say(session.Header{ID: "good"}, "hello")
	h.damage("bad")
	if _, err := h.Upkeep.RebuildIndex(t.Context()); err != nil || unread != 1 {
		t.Errorf("notices: %d, %v", unread, err)
	}
}

// Without a place for settings there are no prices either, least of all those of
// the directory that a program happens to be in.
func TestPricesAreNeverTakenFromWhereverOneIs(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("prices.toml", []byte("this is no price list"), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := home.Open(t.Context(), t.TempDir(), &home.Options{Settings: &home.Settings{}})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if _, err := opened.Sessions.List(t.Context(), home.ListRequest{}); err != nil {
		t.Error(err)
	}
}

// A server's calls do not wait for somebody else's catch-up longer than they want to.
func TestCallsDoNotWaitLongerThanTheirContext(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "first", 1, "hello")
	waited := 0
	var slow *home.Home
	slow = another(t, h, home.Options{Progress: func(doing string, done, _ int64) {
		if doing != "indexing" || waited > 0 {
			return
		}
		waited++
		for what, call := range map[string]func(context.Context) error{
			"list": func(ctx context.Context) error { _, err := slow.Sessions.List(ctx, home.ListRequest{}); return err },
			"search": func(ctx context.Context) error {
				_, err := slow.Search.Find(ctx, home.FindRequest{Query: "x"})
				return err
			},
			"stats": func(ctx context.Context) error { _, err := slow.Search.Stats(ctx, home.StatsRequest{}); return err },
			"rebuild": func(ctx context.Context) error {
				_, err := slow.Upkeep.RebuildIndex(ctx)
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", what, err)
			}
			cancel()
		}
	}})
	if list, err := slow.Sessions.List(t.Context(), home.ListRequest{}); err != nil || len(list.Sessions) != 1 || waited != 1 {
		t.Errorf("%+v, %v, waited %d times", list, err, waited)
	}
}

// Closing a home while it is being indexed keeps nobody waiting for each other.
func TestClosingEndsACatchUp(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "first", 1, "hello")
	var closing sync.WaitGroup
	var slow *home.Home
	begun := false
	slow = another(t, h, home.Options{Progress: func(string, int64, int64) {
		if begun {
			return
		}
		begun = true
		closing.Go(func() {
			if err := slow.Close(); err != nil {
				t.Error(err)
			}
		})
		// Others are told so at once.
		for {
			if _, err := slow.Sessions.List(t.Context(), home.ListRequest{}); errors.Is(err, store.ErrClosed) {
				return
			}
		}
	}})
	if _, err := slow.Sessions.List(t.Context(), home.ListRequest{}); err != nil && !errors.Is(err, store.ErrClosed) {
		t.Error(err) // it may have come to the end before
	}
	closing.Wait()
}

// A search or a sum in one session brings the index up to date once, however the session is
// named. A session that cannot be read is noticed each time that this is done.
func TestTheIndexCatchesUpOnceForAnAnswer(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	h.say(session.Header{ID: "garden-1234567890"}, "roses and beans")
	h.damage("bad")
	looks := 0
	by := h.open(&home.Options{Notify: func(n home.Notice) {
		if n.Kind == home.SessionUnread {
			looks++
		}
	}})
	for _, given := range []string{"garden-1234567890", "garden-12", "roses and beans", "last"} {
		for what, ask := range map[string]func() error{
			"find": func() error {
				_, err := by.Search.Find(t.Context(), home.FindRequest{Query: "roses", Session: given})
				return err
			},
			"stats": func() error { _, err := by.Search.Stats(t.Context(), home.StatsRequest{Session: given}); return err },
			"get":   func() error { _, err := by.Sessions.Get(t.Context(), home.SessionRequest{Session: given}); return err },
		} {
			looks = 0
			if err := ask(); err != nil || looks != 1 {
				t.Errorf("%s in %q: the index caught up %d times, %v", what, given, looks, err)
			}
		}
	}
}
