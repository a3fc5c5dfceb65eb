//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/storetest"
)

// An append whose caller no longer waits is answered although the server does not answer. What the
// server has may be there later; what was not sent never is.
func TestAppendsThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	const n = 12
	locked := make([]string, n)
	for i := range locked {
		locked[i] = fmt.Sprint("log-", i)
	}
	c := newCrowd(t, postgrestest.URL(t), n, locked...)
	watch := time.AfterFunc(30*time.Second, func() {
		t.Error("an append that was cancelled is waited for")
		c.free()
	})
	defer watch.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			line := []byte(numbered(i))
			_, errs[i] = c.open(i).Append(ctx, 0, line)
			clear(line) // it is the caller's again
		})
	}
	time.Sleep(75 * time.Millisecond) // some are sent, others wait
	cancel()
	wg.Wait()
	if !watch.Stop() {
		return
	}
	c.free()
	c.blocked.Wait()
	for i, err := range errs {
		log := c.open(i)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("log %d: %v, want context.Canceled", i, err)
		}
		if errors.Is(err, store.ErrUnknown) {
			for line, err := range log.Watch(t.Context(), 0) { // in a while
				if err != nil || string(line.Data) != numbered(i) {
					t.Errorf("log %d has %s, %v", i, line.Data, err)
				}
				break
			}
			continue
		}
		if end := storetest.MustEnd(t, log); end != 0 {
			t.Errorf("log %d ends at %d although nothing was sent", i, end)
		}
	}
}

// An append whose caller stops waiting for a connection is not sent, and its error says so.
func TestAppendsThatWaitForAConnection(t *testing.T) {
	t.Parallel()
	const n, connections = 12, 4 // of which two are in use
	locked := make([]string, n)
	for i := range locked {
		locked[i] = fmt.Sprint("log-", i)
	}
	c := newCrowd(t, postgrestest.With(t, postgrestest.URL(t), "appends", "single"), n, locked...)
	logs := make([]store.Log, n)
	for i := range logs {
		logs[i] = c.open(i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { _, errs[i] = logs[i].Append(ctx, 0, []byte(numbered(i))) })
	}
	time.Sleep(75 * time.Millisecond) // some have a connection, others wait for one
	cancel()
	wg.Wait()
	c.free()
	c.blocked.Wait()
	unknown := 0
	for i, err := range errs {
		switch {
		case !errors.Is(err, context.Canceled):
			t.Errorf("log %d: %v, want context.Canceled", i, err)
		case errors.Is(err, store.ErrUnknown):
			unknown++
		case storetest.MustEnd(t, logs[i]) != 0:
			t.Errorf("log %d has a line although nothing was sent", i)
		}
	}
	if most := connections - 2; unknown > most {
		t.Errorf("%d appends may have been sent on %d connections", unknown, most)
	}
}

// The same holds for appends that share a statement.
func TestAppendsThatWaitForAConnectionTogether(t *testing.T) {
	t.Parallel()
	const n = 12
	removed := []string{"log-12", "log-13"}
	c := newCrowd(t, postgrestest.URL(t), n+len(removed), removed...)
	logs := make([]store.Log, n)
	for i := range logs {
		logs[i] = c.open(i)
	}
	for _, name := range removed { // they take the other connections
		c.blocked.Go(func() {
			if err := c.store.Remove(context.Background(), name); err != nil {
				t.Error(err)
			}
		})
	}
	c.await(2 + len(removed))
	ctx, cancel := context.WithCancel(t.Context())
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { _, errs[i] = logs[i].Append(ctx, 0, []byte(numbered(i))) })
	}
	time.Sleep(200 * time.Millisecond) // the oldest turns were replaced
	cancel()
	wg.Wait()
	c.free()
	c.blocked.Wait()
	for i, err := range errs {
		if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnknown) {
			t.Errorf("log %d: %v, want context.Canceled", i, err)
		}
		if storetest.MustEnd(t, logs[i]) != 0 {
			t.Errorf("log %d has a line although nothing was sent", i)
		}
	}
}

// A session is removed when an append to it has just been written, and before it is read back.
// Whoever appends does not hear that it was refused.
func TestAppendWhileTheSessionIsRemoved(t *testing.T) {
	t.Parallel()
	s := removing{mustOpen(t, postgrestest.URL(t), nil)}
	made, err := session.Create(t.Context(), s.Store, session.Header{ID: "a"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	a, err := session.Open(t.Context(), s, "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	say := session.Message(session.RoleUser, session.Text("hello"))
	if _, err = a.AppendAll(say, say); err != nil && (!errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrNotExist)) {
		t.Errorf("it was written and then removed: %v, want success or ErrUnknown", err)
	}
	trash, err := s.Trash().List(t.Context())
	if err != nil || len(trash) != 1 {
		t.Fatalf("%+v, %v", trash, err)
	}
	if err := s.Trash().Restore(t.Context(), trash[0].ID); err != nil {
		t.Fatal(err)
	}
	if lines := storetest.MustRead(t, storetest.MustOpen(t, s.Store, "a"), 0); len(lines) != 3 {
		t.Errorf("%d lines, want the header and two messages", len(lines))
	}
}

// removing is a store that removes each log as soon as something was appended to it.
type removing struct{ store.Store }

func (r removing) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := r.Store.Open(ctx, name)
	return removingLog{log, r.Store, name}, err
}

type removingLog struct {
	store.Log
	of   store.Store
	name string
}

func (l removingLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	end, commit, err := l.Log.Start(ctx, at, lines...)
	if err == nil {
		err = l.of.Remove(ctx, l.name)
	}
	return end, commit, err
}
