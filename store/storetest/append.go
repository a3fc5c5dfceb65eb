package storetest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// appendChecks are also run with Start in the place of Append.
var appendChecks = []check{
	{"ReturnsEnd", checkAppendReturnsEnd},
	{"SeveralLines", checkAppendSeveralLines},
	{"WrongPosition", checkAppendWrongPosition},
	{"StaleHandle", checkAppendStaleHandle},
	{"NoLines", checkAppendNoLines},
	{"Newline", checkAppendNewline},
	{"TooLarge", checkAppendTooLarge},
	{"Cancelled", checkAppendCancelled},
	{"ReusedBuffer", checkAppendReusedBuffer},
	{"LogsApart", checkAppendLogsApart},
}

func checkAppendReturnsEnd(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	other := MustOpen(t, s, "a")
	last := MustEnd(t, log)
	for n := 1; n < 20; n++ {
		end, err := log.Append(t.Context(), last, []byte(num(n)))
		if err != nil {
			t.Fatalf("append: %v", err)
		}
		if end <= last || end != MustEnd(t, log) || end != MustEnd(t, other) {
			t.Fatalf("append at %d returned %d; the log ends at %d, or %d for another handle",
				last, end, MustEnd(t, log), MustEnd(t, other))
		}
		last = end
	}
	wantLines(t, log, nums(0, 20)...)
	wantLines(t, other, nums(0, 20)...)
}

func checkAppendSeveralLines(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a")
	MustAppend(t, log, nums(0, 1000)...)
	MustAppend(t, log, num(1000))
	MustAppend(t, log, nums(1001, 1003)...)
	wantLines(t, log, nums(0, 1003)...)
	wantLines(t, MustOpen(t, s, "a"), nums(0, 1003)...)
}

func checkAppendWrongPosition(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 3)...)
	end := MustEnd(t, log)
	wrong := []store.Pos{-1, math.MinInt64, math.MaxInt64, end + 1, end - 1, end + 1<<20}
	for _, line := range MustRead(t, log, 0) {
		wrong = append(wrong, line.Pos, line.Pos+1)
	}
	for _, at := range wrong {
		if at == end {
			continue // where positions count lines, one past the last line is the end
		}
		for _, lines := range [][][]byte{{}, {[]byte(num(9))}, toBytes(nums(8, 10))} {
			_, err := log.Append(t.Context(), at, lines...)
			if err == nil {
				t.Fatalf("append of %d lines at %d succeeded; the end is %d", len(lines), at, end)
			}
			wantOneOf(t, err, store.ErrConflict, store.ErrInvalid)
			wantErr(t, err, "a")
			wantLines(t, log, nums(0, 3)...)
		}
	}
	// None of this has harmed the handle.
	if _, err := log.Append(t.Context(), end, []byte(num(3))); err != nil {
		t.Fatal(err)
	}
	wantLines(t, log, nums(0, 4)...)
}

func checkAppendStaleHandle(t *testing.T, s store.Store) {
	one := MustCreate(t, s, "a", num(0))
	two := MustOpen(t, s, "a")
	stale := MustEnd(t, two)
	MustAppend(t, one, num(1))
	for range 2 { // a conflict does not make the second try good
		_, err := two.Append(t.Context(), stale, []byte(num(2)))
		wantErr(t, err, "a", store.ErrConflict)
		wantLines(t, one, nums(0, 2)...)
	}
	// The loser reads on from where it was, and tries again.
	lines := MustRead(t, two, stale)
	wantTexts(t, "what the loser missed", texts(lines), nums(1, 2))
	end, err := two.Append(t.Context(), lines[0].Next, []byte(num(2)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Append(t.Context(), end, []byte(num(3))); err != nil {
		t.Fatalf("append where the other handle's append ended: %v", err)
	}
	wantLines(t, one, nums(0, 4)...)
}

func checkAppendNoLines(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	end := MustEnd(t, log)
	got, err := log.Append(t.Context(), end)
	if err != nil || got != end {
		t.Fatalf("append of nothing at %d: %d, %v", end, got, err)
	}
	_, err = log.Append(t.Context(), 0)
	wantErr(t, err, "a", store.ErrConflict)
	wantLines(t, log, num(0))
}

func checkAppendNewline(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	end := MustEnd(t, log)
	for _, bad := range []string{"\n", "{}\n", "\n{}", "{\n}", "{}\r\n", strings.Repeat(" ", 1<<17) + "\n"} {
		for _, lines := range [][]string{{bad}, {num(1), bad}, {bad, num(1)}, {num(1), bad, num(2)}} {
			_, err := log.Append(t.Context(), end, toBytes(lines)...)
			wantErr(t, err, "a", store.ErrInvalid, fs.ErrInvalid)
			wantLines(t, log, num(0))
		}
	}
	MustAppend(t, log, num(1))
	wantLines(t, log, nums(0, 2)...)
}

func checkAppendTooLarge(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	line, refused := lineOverLimit(s)
	for _, lines := range [][][]byte{{line}, {[]byte(num(1)), line}} {
		_, err := log.Append(t.Context(), MustEnd(t, log), lines...)
		if err == nil && !refused {
			t.Skip("the store takes lines of any length we try")
		}
		wantErr(t, err, "a", store.ErrTooLarge)
		wantLines(t, log, num(0))
	}
	if refused {
		longest := string(line[1:])
		MustAppend(t, log, longest)
		wantLines(t, log, num(0), longest)
	}
}

// lineOverLimit returns a line that is one byte over the store's limit, and whether the
// store must refuse it because it has such a limit.
func lineOverLimit(s store.Store) (line []byte, refused bool) {
	limit := int64(64 << 20)
	if told := s.Limits().Entry; told > 0 {
		limit, refused = told, true
	}
	return bytes.Repeat([]byte(" "), int(limit)+1), refused
}

func checkAppendCancelled(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	end := MustEnd(t, log)
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
	defer cancel()
	for _, ctx := range []context.Context{cancelled(t), late} {
		_, err := log.Append(ctx, end, []byte(num(1)))
		if !errors.Is(err, ctx.Err()) {
			t.Fatalf("append with a context that is done: %v, want %v", err, ctx.Err())
		}
		wantLines(t, log, num(0))
	}
	if _, err := log.Append(t.Context(), end, []byte(num(1))); err != nil {
		t.Fatalf("append after cancelled ones: %v", err)
	}
	wantLines(t, log, nums(0, 2)...)
}

func checkAppendReusedBuffer(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a")
	buf := []byte(num(0))
	for n := range 9 {
		buf[5] = byte('0' + n)
		if _, err := log.Append(t.Context(), MustEnd(t, log), buf); err != nil {
			t.Fatal(err)
		}
	}
	clear(buf)
	wantLines(t, log, nums(0, 9)...)
}

func checkAppendLogsApart(t *testing.T, s store.Store) {
	a, b := MustCreate(t, s, "a", num(0)), MustCreate(t, s, "b", num(100))
	for n := 1; n < 10; n++ {
		MustAppend(t, a, num(n))
		MustAppend(t, b, num(100+n))
	}
	wantLines(t, a, nums(0, 10)...)
	wantLines(t, b, nums(100, 110)...)
}
