package storetest

import (
	"context"
	"iter"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/store"
)

var startChecks = func() []check {
	checks := []check{
		{"Pipeline", checkStartPipeline},
		{"CommitsInAnyOrder", checkStartCommitsInAnyOrder},
		{"CommitsAtOnce", checkStartCommitsAtOnce},
		{"StaleHandle", checkStartStaleHandle},
	}
	for _, c := range appendChecks {
		checks = append(checks, check{"As" + c.name, func(t *testing.T, s store.Store) {
			c.run(t, startingStore{s})
		}})
	}
	return checks
}()

// start starts appends of nums(first, last), each where the one before ends.
func start(t *testing.T, log store.Log, first, last int) []func() error {
	t.Helper()
	var commits []func() error
	at := MustEnd(t, log)
	for n := first; n < last; n++ {
		end, commit, err := log.Start(t.Context(), at, []byte(num(n)))
		if err != nil {
			t.Fatalf("start %d: %v", n, err)
		}
		if end <= at {
			t.Fatalf("start at %d returned %d", at, end)
		}
		at, commits = end, append(commits, commit)
	}
	return commits
}

func mustCommit(t *testing.T, commit func() error) {
	t.Helper()
	within(t, "commit", commit)
}

func checkStartPipeline(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	for _, commit := range start(t, log, 1, 20) {
		mustCommit(t, commit)
	}
	wantLines(t, log, nums(0, 20)...)
	MustAppend(t, log, num(20))
	wantLines(t, MustOpen(t, s, "a"), nums(0, 21)...)
}

func checkStartCommitsInAnyOrder(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	commits := start(t, log, 1, 10)
	for i := len(commits) - 1; i >= 0; i-- {
		mustCommit(t, commits[i])
	}
	wantLines(t, log, nums(0, 10)...)
}

func checkStartCommitsAtOnce(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	commits := start(t, log, 1, 20)
	within(t, "commit all at once", func() error {
		errs := make(chan error, len(commits))
		var wg sync.WaitGroup
		for _, commit := range commits {
			wg.Go(func() { errs <- commit() })
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	})
	wantLines(t, log, nums(0, 20)...)
}

// An append that was started counts at once for the next writer; another handle
// may also have to wait for its commit.
func checkStartStaleHandle(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	stale := MustEnd(t, log)
	commits := start(t, log, 1, 2)
	_, err := startAndCommit(t.Context(), log, stale, []byte(num(9)))
	wantErr(t, err, "a", store.ErrConflict)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = MustOpen(t, s, "a").Append(ctx, stale, []byte(num(9)))
	wantOneOf(t, err, store.ErrConflict, store.ErrLocked, context.DeadlineExceeded)
	mustCommit(t, commits[0])
	wantLines(t, log, nums(0, 2)...)
}

func startAndCommit(ctx context.Context, log store.Log, at store.Pos, lines ...[]byte) (store.Pos, error) {
	end, commit, err := log.Start(ctx, at, lines...)
	if err != nil {
		return 0, err
	}
	return end, commit()
}

// startingStore is a store whose logs append through Start.
type startingStore struct{ store.Store }

type startingLog struct{ store.Log }

func (s startingStore) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	log, err := s.Store.Create(ctx, name, lines)
	return startingLog{log}, err
}

func (s startingStore) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := s.Store.Open(ctx, name)
	return startingLog{log}, err
}

func (l startingLog) Append(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
	return startAndCommit(ctx, l.Log, at, lines...)
}
