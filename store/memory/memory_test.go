package memory_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store {
		return memory.New(&memory.Options{MaxLine: 8 << 20})
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		options *memory.Options
		want    int64
	}{
		{nil, 64 << 20},
		{&memory.Options{}, 64 << 20},
		{&memory.Options{MaxLine: 10}, 10},
	} {
		s := memory.New(test.options)
		if got := s.Limits().Entry; got != test.want {
			t.Errorf("New(%+v) takes lines of %d bytes, want %d", test.options, got, test.want)
		}
	}
	s := memory.New(&memory.Options{MaxLog: 10, MaxLogs: 1})
	log := storetest.MustCreate(t, s, "a", "one")
	_, err := log.Append(t.Context(), 4, []byte("two"), []byte("three"))
	wantLimit(t, err, store.LimitError{Limit: store.MaxSession, Size: 14, Max: 10})
	_, err = s.Create(t.Context(), "b", store.Lines())
	wantLimit(t, err, store.LimitError{Limit: store.MaxSessions, Size: 2, Max: 1})
	storetest.MustAppend(t, log, "two")
}

func wantLimit(t *testing.T, err error, want store.LimitError) {
	t.Helper()
	var got *store.LimitError
	if !errors.As(err, &got) || *got != want || !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("%v, want %+v", err, want)
	}
}

// What a caller is told about an append that was refused.
func TestErrorFacts(t *testing.T) {
	t.Parallel()
	s := memory.New(&memory.Options{MaxLine: 10})
	log := storetest.MustCreate(t, s, "talk", "{}")
	for _, test := range []struct {
		at   store.Pos
		line string
		want string
	}{
		{0, "{}", `append "talk" at byte 0: conflict: the log has moved on`},
		{-1, "{}", `append "talk" at byte -1: invalid argument`},
		{3, "{\n}", `append "talk": invalid argument: the line has a newline at byte 1`},
		{3, "longer than ten", `append "talk": too large: the entry has 15 bytes, the limit is 10`},
	} {
		_, err := log.Append(t.Context(), test.at, []byte(test.line))
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("append %q at %d: %v, want %s", test.line, test.at, err, test.want)
		}
	}
}

// A position in the middle of a line is nobody's, and said to be so.
func TestReadMidLine(t *testing.T) {
	t.Parallel()
	log := storetest.MustCreate(t, memory.New(nil), "a", "one", "two")
	for line, err := range log.Forward(t.Context(), 2) {
		if !errors.Is(err, store.ErrInvalid) {
			t.Fatalf("read from the middle of a line: %q, %v", line.Data, err)
		}
	}
}

func TestRemovedStaysReadable(t *testing.T) {
	t.Parallel()
	s := memory.New(nil)
	log := storetest.MustCreate(t, s, "a", "one", "two")
	if err := s.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if lines := storetest.MustRead(t, log, 0); len(lines) != 2 {
		t.Fatalf("%d lines, want 2", len(lines))
	}
}

// In the bubble time stands still while anyone can run: a Watch that slept or
// polled would make it move.
func TestWatchDoesNotPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		log := storetest.MustCreate(t, memory.New(nil), "a")
		start, seen := time.Now(), 0
		go func() {
			for range log.Watch(ctx, 0) {
				seen++
			}
		}()
		for n := 1; n <= 10; n++ {
			synctest.Wait() // the watcher has nothing left to do
			storetest.MustAppend(t, log, "{}")
			synctest.Wait()
			if seen != n {
				t.Fatalf("after %d appends the watcher has seen %d", n, seen)
			}
		}
		cancel()
		synctest.Wait()
		if passed := time.Since(start); passed != 0 {
			t.Fatalf("watching took %v", passed)
		}
	})
}

func TestCreateInClosedStore(t *testing.T) {
	t.Parallel()
	s := memory.New(nil)
	_, err := s.Create(t.Context(), "a", func(yield func([]byte, error) bool) {
		s.Close() // while the lines come in
		yield([]byte("{}"), nil)
	})
	if !errors.Is(err, store.ErrClosed) {
		t.Fatalf("create in a store closed meanwhile: %v, want %v", err, store.ErrClosed)
	}
}
