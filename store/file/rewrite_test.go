package file_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// pieces yields the given pieces.
func pieces(all ...store.Piece) iter.Seq2[store.Piece, error] {
	return func(yield func(store.Piece, error) bool) {
		for _, p := range all {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func mustCreate(t *testing.T, st *file.Store, name string, lines ...string) store.Log {
	t.Helper()
	log, err := st.Create(t.Context(), name, func(yield func([]byte, error) bool) {
		for _, line := range lines {
			if !yield([]byte(line), nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func mustRaw(t *testing.T, st *file.Store, name string) store.Raw {
	t.Helper()
	raw, err := st.OpenRaw(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	return raw
}

// read returns the lines of a log, joined.
func read(t *testing.T, st *file.Store, name string) string {
	t.Helper()
	log, err := st.Open(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	return readLog(t, log)
}

func readLog(t *testing.T, log store.Log) string {
	t.Helper()
	var lines []string
	for line, err := range log.Forward(context.Background(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line.Data))
	}
	return strings.Join(lines, " ")
}

func TestRawLinesHaveTheTornEnd(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	mustCreate(t, st, "a", "one", "two")
	if err := appendFile(st.Path("a"), "thr"); err != nil {
		t.Fatal(err)
	}
	var got []string
	raw := mustRaw(t, st, "a")
	for line, err := range raw.Lines(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %d-%d %v", line.Data, line.Pos, line.Next, line.Torn))
	}
	want := "one 0-4 false, two 4-8 false, thr 8-11 true"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("got %s, want %s", s, want)
	}
	if raw.Size() != 11 {
		t.Errorf("size %d, want 11", raw.Size())
	}
}

func appendFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	mustCreate(t, st, "a", "one", "two", "three")
	kept, err := mustRaw(t, st, "a").Rewrite(t.Context(), pieces(
		store.Piece{Line: []byte("zero")}, store.Piece{From: 4, To: 14}))
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, st, "a"); got != "zero two three" {
		t.Errorf("got %q", got)
	}
	before, err := os.ReadFile(kept)
	if err != nil || string(before) != "one\ntwo\nthree\n" {
		t.Errorf("the copy is %q, %v", before, err)
	}
	if info, err := os.Stat(st.Path("a")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestRewriteRefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	mustCreate(t, st, "a", "one")
	for _, p := range []store.Piece{{From: -1, To: 2}, {From: 3, To: 2}, {From: 0, To: 5}, {Line: []byte("a\nb")}} {
		if _, err := mustRaw(t, st, "a").Rewrite(t.Context(), pieces(p)); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%v: %v", p, err)
		}
	}
	if got := read(t, st, "a"); got != "one" {
		t.Errorf("got %q", got)
	}
}

func TestRewriteNoticesOtherWriters(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(st *file.Store, log store.Log) error{
		"append": func(_ *file.Store, log store.Log) error {
			_, err := log.Append(context.Background(), 4, []byte("two"))
			return err
		},
		"rewrite": func(st *file.Store, _ store.Log) error { // to the same size
			raw, err := st.OpenRaw(context.Background(), "a")
			if err == nil {
				_, err = raw.Rewrite(context.Background(), pieces(store.Piece{Line: []byte("ONE")}))
			}
			return err
		},
		"archive": func(st *file.Store, _ store.Log) error { return st.Archive(context.Background(), "a") },
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t, nil)
			log := mustCreate(t, st, "a", "one")
			raw := mustRaw(t, st, "a")
			if err := change(st, log); err != nil {
				t.Fatal(err)
			}
			was := read(t, st, "a")
			if _, err := raw.Rewrite(t.Context(), pieces(store.Piece{Line: []byte("new")})); !errors.Is(err, store.ErrConflict) {
				t.Errorf("got %v, want a conflict", err)
			}
			if got := read(t, st, "a"); got != was {
				t.Errorf("got %q, was %q", got, was)
			}
		})
	}
}

func TestRewriteOfRemoved(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	mustCreate(t, st, "a", "one")
	raw := mustRaw(t, st, "a")
	if err := st.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Rewrite(t.Context(), pieces()); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestRewriteSettlesTheForm(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	mustCreate(t, st, "a", "one", "two").Close()
	if err := st.Archive(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(st.Where(), ".coppice", "archive", "a.jsonl.zst")
	packed, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mustRaw(t, st, "a").Rewrite(t.Context(), pieces(store.Piece{From: 4, To: 8})); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(archive); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the archive is still there: %v", err)
	}
	if err := os.WriteFile(archive, packed, 0o600); err != nil {
		t.Fatal(err)
	}
	raw := mustRaw(t, st, "a")
	kept, err := raw.Rewrite(t.Context(), pieces(store.Piece{To: store.Pos(raw.Size())}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(archive); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the left-over archive is still there: %v", err)
	}
	if left, err := os.ReadFile(kept + ".zst"); err != nil || string(left) != string(packed) {
		t.Errorf("the left-over archive was not kept: %v", err)
	}
	if got := read(t, st, "a"); got != "two" {
		t.Errorf("got %q", got)
	}
}

// Handles that were open before must not write to a place they know nothing of.
func TestRewriteUnderOpenHandles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		new     []store.Piece
		want    error
		reading string
	}{
		{"other header", []store.Piece{{Line: []byte("ONE")}, {From: 4, To: 8}}, store.ErrReplaced, ""},
		{"other line", []store.Piece{{From: 0, To: 4}, {Line: []byte("TWO")}}, store.ErrReplaced, ""},
		{"longer", []store.Piece{{From: 0, To: 8}, {Line: []byte("three")}}, store.ErrConflict, "one two three"},
		{"shorter", []store.Piece{{From: 0, To: 4}}, store.ErrReplaced, ""},
		{"the same", []store.Piece{{From: 0, To: 8}}, nil, "one two"},
	} {
		t.Run(test.name, func(t *testing.T) {
			st := open(t, nil)
			log := mustCreate(t, st, "a", "one", "two")
			if _, err := mustRaw(t, st, "a").Rewrite(t.Context(), pieces(test.new...)); err != nil {
				t.Fatal(err)
			}
			if test.reading != "" {
				if got := readLog(t, log); got != test.reading {
					t.Errorf("the handle reads %q, want %q", got, test.reading)
				}
			} else if _, err := log.End(t.Context()); !errors.Is(err, store.ErrReplaced) {
				t.Errorf("end: got %v, want %v", err, store.ErrReplaced)
			}
			if _, err := log.Append(t.Context(), 8, []byte("more")); !errors.Is(err, test.want) {
				t.Errorf("append: got %v, want %v", err, test.want)
			}
		})
	}
}

// A power cut at any moment leaves the old content or the new, and once Rewrite
// has returned, the new; the old is then in quarantine.
func TestRewriteSurvivesCrashes(t *testing.T) {
	t.Parallel()
	for _, archived := range []bool{false, true} {
		for op := int64(1); rewriteWithCrash(t, op, archived); op++ {
		}
	}
}

func rewriteWithCrash(t *testing.T, op int64, archive bool) (more bool) {
	t.Helper()
	disk := vfstest.NewMemory()
	var crashed *vfstest.Memory
	var armed int64
	faulty := &vfstest.Faulty{FS: disk, Before: func(o vfstest.Op) error {
		if armed > 0 && o.Kind.Mutates() {
			if armed++; armed-1 == op {
				crashed = disk.CrashClone(nil, vfstest.LoseAll)
			}
		}
		return nil
	}}
	st := open(t, &file.Options{FS: faulty})
	mustCreate(t, st, "a", "one", "two").Close()
	if archive {
		if err := st.Archive(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	raw := mustRaw(t, st, "a")
	armed = 1
	_, err := raw.Rewrite(t.Context(), pieces(store.Piece{Line: []byte("ONE")}, store.Piece{From: 4, To: 8}))
	armed = 0
	if err != nil {
		t.Fatal(err)
	}
	done := crashed == nil
	if done {
		crashed = disk.CrashClone(nil, vfstest.LoseAll)
	}
	after, err := file.Open(st.Where(), &file.Options{FS: crashed})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if got := read(t, after, "a"); got != "ONE two" && (done || got != "one two") {
		t.Errorf("crash before change %d: the log reads %q", op, got)
	}
	return !done
}
