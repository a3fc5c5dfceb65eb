package storetest

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/store"
)

var readChecks = []check{
	{"EveryPosition", checkReadEveryPosition},
	{"Break", checkReadBreak},
	{"Again", checkReadAgain},
	{"BadPosition", checkReadBadPosition},
	{"BeyondEnd", checkReadBeyondEnd},
	{"OwnBytes", checkReadOwnBytes},
	{"TwoAtOnce", checkReadTwoAtOnce},
	{"AppendMeanwhile", checkReadAppendMeanwhile},
	{"BackwardAppendMeanwhile", checkReadBackAppendMeanwhile},
	{"Interrupted", checkReadInterrupted},
	{"Cancelled", checkReadCancelled},
}

// mixed are lines of many lengths, so that they fall on and across the edges of
// a reader's buffers.
func mixed() []string {
	var lines []string
	for n := range 50 {
		lines = append(lines, num(n), strings.Repeat(" ", n*137%5000))
	}
	return append(lines, sized(100_000), "", sized(70_000), num(1))
}

func checkReadEveryPosition(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", mixed()...)
	all := MustRead(t, log, 0)
	wantTexts(t, "forward", texts(all), mixed())
	wantChain(t, all, 0, MustEnd(t, log))
	for i := range len(all) + 1 {
		pos := MustEnd(t, log)
		if i < len(all) {
			pos = all[i].Pos
		}
		wantSame(t, "forward", MustRead(t, log, pos), all[i:])
		back := MustReadBack(t, log, pos)
		slices.Reverse(back)
		wantSame(t, "backward", back, all[:i])
	}
}

func checkReadBreak(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 10)...)
	for _, seq := range []iter.Seq2[store.Line, error]{
		log.Forward(t.Context(), 0),
		log.Backward(t.Context(), MustEnd(t, log)),
	} {
		for stop := range 10 {
			n := 0
			for _, err := range seq {
				if err != nil {
					t.Fatal(err)
				}
				if n == stop {
					break
				}
				n++
			}
		}
	}
	MustAppend(t, log, num(10))
	wantLines(t, log, nums(0, 11)...)
}

// An iterator may be ranged over more than once: each time from the beginning.
func checkReadAgain(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 5)...)
	forward := log.Forward(t.Context(), 0)
	backward := log.Backward(t.Context(), MustEnd(t, log))
	for range 2 {
		wantTexts(t, "forward", texts(mustCollect(t, forward)), nums(0, 5))
		back := texts(mustCollect(t, backward))
		slices.Reverse(back)
		wantTexts(t, "backward", back, nums(0, 5))
	}
}

func checkReadBadPosition(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 5)...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, from := range []store.Pos{-1, math.MinInt64} {
		for _, seq := range []iter.Seq2[store.Line, error]{
			log.Forward(ctx, from), log.Backward(ctx, from), log.Watch(ctx, from),
		} {
			lines, err := collect(seq)
			wantErr(t, err, "a", store.ErrInvalid)
			if len(lines) > 0 {
				t.Fatalf("reading from %d gave %.80q", from, lines[0].Data)
			}
		}
	}
}

// Beyond the end there is nothing to read forward. Backward, a store may also
// start from the end.
func checkReadBeyondEnd(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 5)...)
	for _, from := range []store.Pos{MustEnd(t, log) + 1, MustEnd(t, log) + 1000, math.MaxInt64} {
		lines, err := collect(log.Forward(t.Context(), from))
		if len(lines) > 0 {
			t.Fatalf("reading forward from %d, beyond the end, gave %.80q", from, lines[0].Data)
		}
		if err != nil {
			wantOneOf(t, err, store.ErrInvalid, store.ErrConflict)
		}
		lines, err = collect(log.Backward(t.Context(), from))
		if err != nil {
			wantOneOf(t, err, store.ErrInvalid, store.ErrConflict)
			continue
		}
		slices.Reverse(lines)
		wantTexts(t, "backward from beyond the end", texts(lines), nums(0, 5))
	}
}

// A reader may change the bytes of a line.
func checkReadOwnBytes(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 5)...)
	for _, seq := range []iter.Seq2[store.Line, error]{
		log.Forward(t.Context(), 0),
		log.Backward(t.Context(), MustEnd(t, log)),
	} {
		for line, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			clear(line.Data)
			_ = append(line.Data, "overwritten, as far as there is room"...)
		}
		wantLines(t, log, nums(0, 5)...)
	}
}

func checkReadTwoAtOnce(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 50)...)
	next, stop := iter.Pull2(log.Backward(t.Context(), MustEnd(t, log)))
	defer stop()
	n := 0
	for line, err := range log.Forward(t.Context(), 0) {
		back, backErr, ok := next()
		if err != nil || backErr != nil || !ok {
			t.Fatal(err, backErr, ok)
		}
		if string(line.Data) != num(n) || string(back.Data) != num(49-n) {
			t.Fatalf("step %d of two readers gives %q and %q", n, line.Data, back.Data)
		}
		n++
	}
	if n != 50 {
		t.Fatalf("%d lines, want 50", n)
	}
}

// Forward reads to the end as it is when it gets there. And a reader in the middle of a
// line must not block a writer.
func checkReadAppendMeanwhile(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	other := MustOpen(t, s, "a")
	var got []string
	within(t, "append while reading", func() error {
		for line, err := range log.Forward(t.Context(), 0) {
			if err != nil {
				return err
			}
			got = append(got, string(line.Data))
			if n := len(got); n < 10 {
				writer := []store.Log{log, other}[n%2]
				if err := insist(t.Context(), writer, num(n)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	wantTexts(t, "forward", got, nums(0, 10))
}

func checkReadBackAppendMeanwhile(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 10)...)
	end := MustEnd(t, log)
	var got []string
	within(t, "append while reading backward", func() error {
		for line, err := range log.Backward(t.Context(), end) {
			if err != nil {
				return err
			}
			got = append(got, string(line.Data))
			if err := insist(t.Context(), log, num(9+len(got))); err != nil {
				return err
			}
		}
		return nil
	})
	slices.Reverse(got)
	wantTexts(t, "backward", got, nums(0, 10))
	wantLines(t, log, nums(0, 20)...)
}

// However an iteration is disturbed, it gives the rest or an error. Lines must never go
// missing silently.
func checkReadInterrupted(t *testing.T, s store.Store) {
	for how, disturb := range map[string]func(name string, log store.Log, cancel func()) error{
		"cancel": func(_ string, _ store.Log, cancel func()) error { cancel(); return nil },
		"close":  func(_ string, log store.Log, _ func()) error { return log.Close() },
		"remove": func(name string, _ store.Log, _ func()) error { return s.Remove(t.Context(), name) },
	} {
		for _, back := range []bool{false, true} {
			name := fmt.Sprintf("%s back %v", how, back)
			log := MustCreate(t, s, name, mixed()...)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			want, seq := mixed(), log.Forward(ctx, 0)
			if back {
				slices.Reverse(want)
				seq = log.Backward(ctx, MustEnd(t, log))
			}
			wantRestOrError(t, name, want, seq, func() error { return disturb(name, log, cancel) })
		}
	}
}

func wantRestOrError(t *testing.T, what string, want []string, seq iter.Seq2[store.Line, error], disturb func() error) {
	t.Helper()
	var got []string
	for line, err := range seq {
		if err != nil {
			wantOneOf(t, err, context.Canceled, store.ErrClosed, store.ErrNotExist)
			want = want[:len(got)]
			break
		}
		if got = append(got, string(line.Data)); len(got) == 3 {
			if err := disturb(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	wantTexts(t, what, got, want)
}

func checkReadCancelled(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 5)...)
	end, ctx := MustEnd(t, log), cancelled(t)
	nothing := func() error { return nil }
	wantRestOrError(t, "forward", nums(0, 5), log.Forward(ctx, 0), nothing)
	back := nums(0, 5)
	slices.Reverse(back)
	wantRestOrError(t, "backward", back, log.Backward(ctx, end), nothing)
	if got, err := log.End(ctx); err == nil && got != end {
		t.Fatalf("end with a cancelled context is %d, want %d", got, end)
	}
}
