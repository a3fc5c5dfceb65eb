package storetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/store"
)

var createChecks = []check{
	{"HoldsItsLines", checkCreateHoldsItsLines},
	{"NoLines", checkCreateNoLines},
	{"ManyLines", checkCreateManyLines},
	{"OneBuffer", checkCreateOneBuffer},
	{"FromAnotherLog", checkCreateFromAnotherLog},
	{"Exists", checkCreateExists},
	{"NotExist", checkNotExist},
	{"FailsMidway", checkCreateFailsMidway},
	{"BadLine", checkCreateBadLine},
	{"CancelledBefore", checkCreateCancelledBefore},
	{"CancelledMidway", checkCreateCancelledMidway},
	{"Race", checkCreateRace},
}

func checkCreateHoldsItsLines(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 3)...)
	wantLines(t, log, nums(0, 3)...)
	wantLines(t, MustOpen(t, s, "a"), nums(0, 3)...)
	MustAppend(t, log, num(3))
	wantLines(t, MustOpen(t, s, "a"), nums(0, 4)...)
}

func checkCreateNoLines(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a")
	wantLines(t, log)
	wantLines(t, MustOpen(t, s, "a"))
	if end, err := log.Append(t.Context(), 0, []byte(num(0))); err != nil || end <= 0 {
		t.Fatalf("append to an empty log: %d, %v", end, err)
	}
	wantLines(t, log, num(0))
}

func checkCreateManyLines(t *testing.T, s store.Store) {
	MustCreate(t, s, "a", nums(0, 20_000)...)
	wantLines(t, MustOpen(t, s, "a"), nums(0, 20_000)...)
}

// The lines that Forward yields are valid only until its next step. Create must accept
// such lines.
func checkCreateOneBuffer(t *testing.T, s store.Store) {
	buf := []byte(`{"n":0}`)
	log, err := s.Create(t.Context(), "a", func(yield func([]byte, error) bool) {
		for n := range 9 {
			buf[5] = byte('0' + n)
			if !yield(buf, nil) {
				return
			}
		}
		clear(buf)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	wantLines(t, log, nums(0, 9)...)
}

// A fork reads one log of a store while it creates another.
func checkCreateFromAnotherLog(t *testing.T, s store.Store) {
	from := MustCreate(t, s, "from", nums(0, 100)...)
	within(t, "create from another log", func() error {
		log, err := s.Create(t.Context(), "to", dataOf(from.Forward(t.Context(), 0)))
		if err != nil {
			return err
		}
		return log.Close()
	})
	wantLines(t, MustOpen(t, s, "to"), nums(0, 100)...)
	wantLines(t, from, nums(0, 100)...)
}

func dataOf(lines iter.Seq2[store.Line, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for line, err := range lines {
			if !yield(line.Data, err) {
				return
			}
		}
	}
}

func checkCreateExists(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	_, err := s.Create(t.Context(), "a", store.Lines([]byte(num(1))))
	wantErr(t, err, "a", store.ErrExist, fs.ErrExist)
	wantLines(t, log, num(0))
	wantLines(t, MustOpen(t, s, "a"), num(0))
}

func checkNotExist(t *testing.T, s store.Store) {
	MustCreate(t, s, "a", num(0))
	_, err := s.Open(t.Context(), "b")
	wantErr(t, err, "b", store.ErrNotExist, fs.ErrNotExist)
	wantErr(t, s.Remove(t.Context(), "b"), "b", store.ErrNotExist, fs.ErrNotExist)
	_, err = s.Open(t.Context(), "b")
	wantErr(t, err, "b", store.ErrNotExist) // opening does not create
}

func checkCreateFailsMidway(t *testing.T, s store.Store) {
	cause := errors.New("no more lines")
	for _, n := range []int{0, 1, 1000} {
		// The error comes with a line and is followed by more: neither counts.
		_, err := s.Create(t.Context(), "a", func(yield func([]byte, error) bool) {
			for _, line := range toBytes(nums(0, n)) {
				if !yield(line, nil) {
					return
				}
			}
			if yield([]byte(num(n)), cause) {
				yield([]byte(num(n+1)), nil)
			}
		})
		if !errors.Is(err, cause) {
			t.Fatalf("create whose lines fail after %d: %v, want %v", n, err, cause)
		}
		wantAbsent(t, s, "a")
	}
	wantLines(t, MustCreate(t, s, "a", num(0)), num(0))
}

func checkCreateBadLine(t *testing.T, s store.Store) {
	for _, bad := range []string{"\n", "{}\n", "\n{}", `{"a":` + "\n" + `1}`} {
		_, err := s.Create(t.Context(), "a", store.Lines([]byte(num(0)), []byte(bad), []byte(num(1))))
		wantErr(t, err, "a", store.ErrInvalid, fs.ErrInvalid)
		wantAbsent(t, s, "a")
	}
	tooLong, refused := lineOverLimit(s)
	_, err := s.Create(t.Context(), "b", store.Lines([]byte(num(0)), tooLong))
	if err == nil && !refused {
		t.Skip("the store takes lines of any length we try")
	}
	wantErr(t, err, "b", store.ErrTooLarge)
	wantAbsent(t, s, "b")
}

func checkCreateCancelledBefore(t *testing.T, s store.Store) {
	_, err := s.Create(cancelled(t), "a", store.Lines(toBytes(nums(0, 3))...))
	wantAllOrAbsent(t, s, err, nums(0, 3))
}

func checkCreateCancelledMidway(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := s.Create(ctx, "a", func(yield func([]byte, error) bool) {
		for n := range 1000 {
			if n == 500 {
				cancel()
			}
			if !yield([]byte(num(n)), nil) {
				return
			}
		}
	})
	wantAllOrAbsent(t, s, err, nums(0, 1000))
}

// wantAllOrAbsent checks that a cancelled Create of log "a" made all or nothing.
func wantAllOrAbsent(t *testing.T, s store.Store, err error, lines []string) {
	t.Helper()
	if err == nil {
		wantLines(t, MustOpen(t, s, "a"), lines...)
		return
	}
	wantOneOf(t, err, context.Canceled)
	wantAbsent(t, s, "a")
}

func checkCreateRace(t *testing.T, s store.Store) {
	const n = 8
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			line := fmt.Appendf(nil, `{"by":%d}`, i)
			log, err := s.Create(t.Context(), "a", store.Lines(line, line))
			if errs[i] = err; err == nil {
				log.Close()
			}
		})
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner < 0:
			winner = i
		case err == nil:
			t.Fatalf("create %d and %d of one name both succeeded", winner, i)
		default:
			wantOneOf(t, err, store.ErrExist, store.ErrLocked)
		}
	}
	line := fmt.Sprintf(`{"by":%d}`, winner)
	wantLines(t, MustOpen(t, s, "a"), line, line)
}

// wantAbsent checks that there is no trace of a log.
func wantAbsent(t testing.TB, s store.Store, name string) {
	t.Helper()
	_, err := s.Open(t.Context(), name)
	wantErr(t, err, name, store.ErrNotExist, fs.ErrNotExist)
	for _, listed := range mustNames(t, s) {
		if listed == name {
			t.Fatalf("log %q is listed and cannot be opened", name)
		}
	}
}
