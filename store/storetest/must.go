package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// MustCreate creates a log of the given lines, to be closed with the test.
func MustCreate(t testing.TB, s store.Store, name string, lines ...string) store.Log {
	t.Helper()
	log, err := s.Create(t.Context(), name, store.Lines(toBytes(lines)...))
	if err != nil {
		t.Fatalf("create %q: %v", name, err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

// MustOpen opens a log, to be closed with the test.
func MustOpen(t testing.TB, s store.Store, name string) store.Log {
	t.Helper()
	log, err := s.Open(t.Context(), name)
	if err != nil {
		t.Fatalf("open %q: %v", name, err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

// MustEnd returns the log's end.
func MustEnd(t testing.TB, log store.Log) store.Pos {
	t.Helper()
	end, err := log.End(t.Context())
	if err != nil {
		t.Fatalf("end: %v", err)
	}
	return end
}

// MustAppend appends lines at the log's end and returns the new end.
func MustAppend(t testing.TB, log store.Log, lines ...string) store.Pos {
	t.Helper()
	end, err := log.Append(t.Context(), MustEnd(t, log), toBytes(lines)...)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return end
}

// MustRead returns copies of the lines from a position to the end.
func MustRead(t testing.TB, log store.Log, from store.Pos) []store.Line {
	t.Helper()
	return mustCollect(t, log.Forward(t.Context(), from))
}

// MustReadBack returns copies of the lines before a position, latest first.
func MustReadBack(t testing.TB, log store.Log, from store.Pos) []store.Line {
	t.Helper()
	return mustCollect(t, log.Backward(t.Context(), from))
}

// MustPut puts a blob and returns its name.
func MustPut(t testing.TB, blobs store.Blobs, data []byte) store.Ref {
	t.Helper()
	ref, err := blobs.Put(t.Context(), data)
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	return ref
}

func mustCollect(t testing.TB, seq func(func(store.Line, error) bool)) []store.Line {
	t.Helper()
	lines, err := collect(seq)
	if err != nil {
		t.Fatalf("read: after %d lines: %v", len(lines), err)
	}
	return lines
}

// collect returns copies of the lines before the first error, and the error.
func collect(seq func(func(store.Line, error) bool)) ([]store.Line, error) {
	var lines []store.Line
	for line, err := range seq {
		if err != nil {
			return lines, err
		}
		line.Data = bytes.Clone(line.Data)
		lines = append(lines, line)
	}
	return lines, nil
}

// wantLines checks that the log holds these lines and no others, read in either
// direction, and that their positions follow each other from zero to the end.
func wantLines(t testing.TB, log store.Log, want ...string) {
	t.Helper()
	lines := MustRead(t, log, 0)
	wantTexts(t, "forward", texts(lines), want)
	wantChain(t, lines, 0, MustEnd(t, log))
	back := MustReadBack(t, log, MustEnd(t, log))
	slices.Reverse(back)
	wantSame(t, "backward", back, lines)
}

// wantChain checks that each line begins where the one before ended.
func wantChain(t testing.TB, lines []store.Line, from, to store.Pos) {
	t.Helper()
	for i, line := range lines {
		if line.Pos != from || line.Next <= line.Pos {
			t.Fatalf("line %d goes from %d to %d, want from %d to something greater", i, line.Pos, line.Next, from)
		}
		if line.Cut {
			t.Fatalf("line %d is cut", i)
		}
		from = line.Next
	}
	if from != to {
		t.Fatalf("%d lines reach to %d, want %d", len(lines), from, to)
	}
}

func wantSame(t testing.TB, what string, got, want []store.Line) {
	t.Helper()
	wantTexts(t, what, texts(got), texts(want))
	for i := range got {
		if got[i].Pos != want[i].Pos || got[i].Next != want[i].Next {
			t.Fatalf("%s: line %d goes from %d to %d, want %d to %d",
				what, i, got[i].Pos, got[i].Next, want[i].Pos, want[i].Next)
		}
	}
}

func wantTexts(t testing.TB, what string, got, want []string) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: number %d of %d is %.80q (%d bytes), want %.80q (%d bytes)",
				what, i, len(got), got[i], len(got[i]), want[i], len(want[i]))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: there are %d, want %d", what, len(got), len(want))
	}
}

// wantErr checks that err matches every kind, and that a *store.Error around it
// says what was being done, and to which log if name is not empty.
func wantErr(t testing.TB, err error, name string, kinds ...error) {
	t.Helper()
	for _, kind := range kinds {
		if !errors.Is(err, kind) {
			t.Fatalf("error is %v, want one that matches %q", err, kind)
		}
	}
	e, ok := errors.AsType[*store.Error](err)
	if !ok || e.Op == "" {
		t.Fatalf("error %v (%T) is not a *store.Error with its Op", err, err)
	}
	if name != "" && e.Name != name {
		t.Fatalf("error %v is about log %q, want %q", err, e.Name, name)
	}
}

// wantOneOf checks that err matches at least one kind.
func wantOneOf(t testing.TB, err error, kinds ...error) {
	t.Helper()
	if !isOneOf(err, kinds...) {
		t.Fatalf("error is %v, want one that matches any of %q", err, kinds)
	}
}

func isOneOf(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// within fails the test if f is not done in time: it is in a deadlock.
func within(t testing.TB, what string, f func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	case <-time.After(patience):
		t.Fatalf("%s: still not done after %v", what, patience)
	}
}

// cancelled returns a context that is done.
func cancelled(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// num returns line n of a test, and nums lines from first up to but not
// including last.
func num(n int) string { return fmt.Sprintf(`{"n":%d}`, n) }

func nums(first, last int) []string {
	var lines []string
	for n := first; n < last; n++ {
		lines = append(lines, num(n))
	}
	return lines
}

func toBytes(lines []string) [][]byte {
	out := make([][]byte, len(lines))
	for i, line := range lines {
		out[i] = []byte(line)
	}
	return out
}

func texts(lines []store.Line) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = string(line.Data)
	}
	return out
}
