package keyed_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// holdLock takes the lock of a key's session, as a writer in another process would.
func holdLock(t *testing.T, dir, key string) (release func()) {
	t.Helper()
	id, err := session.KeyID(key)
	if err != nil {
		t.Fatal(err)
	}
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	log, err := st.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	unpin, err := log.Pin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		unpin()
		if err := errors.Join(log.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	}
}

// inAMoment returns a context that is done in a moment: in a bubble of synctest
// that is when all others wait, however long the machine stalls.
func inAMoment(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// contents returns what the messages of a key say.
func contents(sm *keyed.SessionManager, key string) (list []string) {
	for _, m := range sm.GetHistory(key) {
		list = append(list, m.Content)
	}
	return list
}

// lockedChat returns a manager with one message under a key, its directory, and what
// releases the lock that another process holds on the key's session.
func lockedChat(t *testing.T, key string) (sm *keyed.SessionManager, dir string, release func()) {
	t.Helper()
	dir = t.TempDir()
	sm = keyed.NewSessionManager(dir)
	t.Cleanup(func() { sm.Close() })
	if err := sm.Add(key, keyed.Message{Role: "user", Content: "one"}); err != nil {
		t.Fatal(err)
	}
	return sm, dir, holdLock(t, dir, key)
}

// Who waits for a writer in another process can give up. What was to be written is
// kept, and written once.
func TestWaitingForAnotherProcessEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const key = "chat:1"
		sm, dir, release := lockedChat(t, key)
		for _, op := range []struct {
			name string
			wait func(*keyed.SessionManager) error
		}{
			{"Delete", func(sm *keyed.SessionManager) error { return sm.Delete(key) }},
			{"Add", func(sm *keyed.SessionManager) error {
				return sm.Add(key, keyed.Message{Role: "assistant", Content: "two"})
			}},
			// What could not be written yet has to be written first.
			{"Save", func(sm *keyed.SessionManager) error { return sm.Save(key) }},
			{"Rename", func(sm *keyed.SessionManager) error { return sm.Rename(key, "chat:2") }},
			{"Truncate", func(sm *keyed.SessionManager) error { _, err := sm.Truncate(key, 2); return err }},
			{"BuildContext", func(sm *keyed.SessionManager) error { _, err := sm.BuildContext(key, "", ""); return err }},
		} {
			if err := op.wait(sm.WithContext(inAMoment(t))); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want DeadlineExceeded", op.name, err)
			}
		}
		release()
		if err := sm.Save(key); err != nil {
			t.Fatal(err)
		}
		if got := contents(keyed.NewSessionManager(dir), key); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("the log says %q", got)
		}
	})
}

// Who waits for another goroutine, which waits without end, can give up, too, and
// has done nothing.
func TestWaitingForAnotherGoroutineEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const key = "chat:1"
		sm, _, release := lockedChat(t, key)
		first := make(chan error)
		go func() { first <- sm.Add(key, keyed.Message{Role: "assistant", Content: "two"}) }()
		synctest.Wait() // until it waits
		late := sm.WithContext(inAMoment(t))
		for name, err := range map[string]error{
			"Add":     late.Add(key, keyed.Message{Role: "user", Content: "late"}),
			"Replace": late.Replace(key, nil),
			"Rename":  late.Rename(key, "chat:2"),
		} {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want DeadlineExceeded", name, err)
			}
		}
		if _, err := late.History(key, keyed.All); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("History: %v, want DeadlineExceeded", err)
		}
		if _, err := late.Keys(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Keys: %v, want DeadlineExceeded", err)
		}
		release()
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		if got := contents(sm, key); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("the history is %q", got)
		}
	})
}

// Who summarises need not look at a context.
func TestSummarizeDoesNotWaitForASummaryLongerThanItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const key = "chat:1"
		sm := keyed.NewSessionManager("")
		defer sm.Close()
		for range keyed.SummarizeAfter + 1 {
			sm.AddMessage(key, "user", "more")
		}
		never := make(chan struct{})
		defer close(never)
		_, err := sm.WithContext(inAMoment(t)).Summarize(key, func(string, []keyed.Message) (string, error) {
			<-never
			return "late", nil
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want DeadlineExceeded", err)
		}
		if n, summary := len(sm.GetHistory(key)), sm.GetSummary(key); n != keyed.SummarizeAfter+1 || summary != "" {
			t.Errorf("%d messages, summary %q", n, summary)
		}
	})
}
