package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/store"
)

var concurrentChecks = []check{
	{"OneWins", checkOneWins},
	{"RetryOneHandle", func(t *testing.T, s store.Store) { checkRetry(t, s, false) }},
	{"RetryManyHandles", func(t *testing.T, s store.Store) { checkRetry(t, s, true) }},
	{"ReadPrefix", checkReadPrefix},
	{"ReadBackPrefix", checkReadBackPrefix},
	{"ManyLogs", checkManyLogs},
}

// Two writers that both saw the same end must not both succeed.
func checkOneWins(t *testing.T, s store.Store) {
	const writers = 4
	logs := []store.Log{MustCreate(t, s, "a")}
	for len(logs) < writers {
		logs = append(logs, MustOpen(t, s, "a"))
	}
	var want []string
	for round := range 30 {
		end := MustEnd(t, logs[0])
		errs := make([]error, writers)
		var wg sync.WaitGroup
		for i, log := range logs {
			wg.Go(func() {
				_, errs[i] = log.Append(t.Context(), end, []byte(by(i, round, 0)))
			})
		}
		wg.Wait()
		won := 0
		for i, err := range errs {
			if err == nil {
				won++
				want = append(want, by(i, round, 0))
				continue
			}
			wantOneOf(t, err, store.ErrConflict, store.ErrLocked)
		}
		if won != 1 {
			t.Fatalf("%d of %d appends at %d succeeded: %v", won, writers, end, errs)
		}
	}
	wantLines(t, logs[0], want...)
}

// by is part k of the i-th thing that a writer wrote.
func by(writer, i, k int) string { return fmt.Sprintf(`{"by":%d,"i":%d,"k":%d}`, writer, i, k) }

// Writers that get a conflict try again at the new end: every line is there
// once, each writer's in order, and those of one append together.
func checkRetry(t *testing.T, s store.Store, manyHandles bool) {
	const writers, appends = 4, 25
	shared := MustCreate(t, s, "a", num(0))
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		log := shared
		if manyHandles {
			log = MustOpen(t, s, "a")
		}
		wg.Go(func() {
			for i := 0; i < appends && errs[w] == nil; i++ {
				errs[w] = insist(t.Context(), log, by(w, i, 0), by(w, i, 1))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	got := texts(MustRead(t, shared, 0))
	wantLines(t, shared, got...)
	wantAllInOrder(t, got, writers, appends)
}

// insist appends until there is no conflict.
func insist(ctx context.Context, log store.Log, lines ...string) error {
	for {
		end, err := log.End(ctx)
		if err != nil {
			return err
		}
		_, err = log.Append(ctx, end, toBytes(lines)...)
		if !isOneOf(err, store.ErrConflict, store.ErrLocked) {
			return err
		}
	}
}

func wantAllInOrder(t *testing.T, got []string, writers, appends int) {
	t.Helper()
	if got[0] != num(0) || len(got) != 1+2*writers*appends {
		t.Fatalf("the log has %d lines after %q, want %d after %q", len(got)-1, got[0], 2*writers*appends, num(0))
	}
	next := make([]int, writers)
	for n := 1; n < len(got); n += 2 {
		var w, i, k int
		if _, err := fmt.Sscanf(got[n], `{"by":%d,"i":%d,"k":%d}`, &w, &i, &k); err != nil {
			t.Fatalf("line %d: %q: %v", n, got[n], err)
		}
		if i != next[w] || got[n] != by(w, i, 0) || got[n+1] != by(w, i, 1) {
			t.Fatalf("lines %d and %d are %s %s, want both parts of number %d", n, n+1, got[n], got[n+1], next[w])
		}
		next[w]++
	}
}

// whileAppending calls look again and again while another handle appends the
// lines num(0), num(1), … to log "a", three at a time.
func whileAppending(t *testing.T, s store.Store, look func(log store.Log)) {
	const last = 300
	log := MustCreate(t, s, "a")
	reader := MustOpen(t, s, "a")
	done := make(chan error, 1)
	go func() {
		var end store.Pos
		var err error
		for n := 0; n < last && err == nil; n += 3 {
			end, err = log.Append(t.Context(), end, toBytes(nums(n, n+3))...)
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("append while another reads: %v", err)
			}
			wantLines(t, reader, nums(0, last)...)
			return
		default:
			look(reader)
		}
	}
}

func checkReadPrefix(t *testing.T, s store.Store) {
	seen := 0
	whileAppending(t, s, func(log store.Log) {
		before := MustEnd(t, log)
		lines := MustRead(t, log, 0)
		if len(lines) < seen {
			t.Fatalf("read %d lines, and %d a moment ago", len(lines), seen)
		}
		seen = len(lines)
		wantTexts(t, "read while another appends", texts(lines), nums(0, seen))
		end := store.Pos(0)
		if seen > 0 {
			end = lines[seen-1].Next
		}
		if end < before {
			t.Fatalf("read up to %d, though the log ended at %d before", end, before)
		}
		wantChain(t, lines, 0, end)
	})
}

func checkReadBackPrefix(t *testing.T, s store.Store) {
	whileAppending(t, s, func(log store.Log) {
		end := MustEnd(t, log)
		lines := MustReadBack(t, log, end)
		for i, line := range lines {
			if want := num(len(lines) - 1 - i); string(line.Data) != want || line.Next != end {
				t.Fatalf("backward line %d of %d is %.80q up to %d, want %q up to %d",
					i, len(lines), line.Data, line.Next, want, end)
			}
			end = line.Pos
		}
		if end != 0 {
			t.Fatalf("read backward to %d, want 0", end)
		}
	})
}

func checkManyLogs(t *testing.T, s store.Store) {
	const logs, appends = 8, 10
	errs := make([]error, logs)
	var wg sync.WaitGroup
	for i := range logs {
		wg.Go(func() { errs[i] = liveOneLog(t.Context(), s, i, appends) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i := range logs {
		var want []string
		for n := range appends {
			want = append(want, by(i, n, 0))
		}
		wantLines(t, MustOpen(t, s, strings.Repeat("x", i+1)), want...)
	}
}

func liveOneLog(ctx context.Context, s store.Store, i, appends int) error {
	log, err := s.Create(ctx, strings.Repeat("x", i+1), store.Lines())
	if err != nil {
		return err
	}
	var end store.Pos
	for n := range appends {
		if end, err = log.Append(ctx, end, []byte(by(i, n, 0))); err != nil {
			return err
		}
		for _, err := range s.List(ctx) {
			if err != nil {
				return err
			}
		}
	}
	return log.Close()
}
