package transcript_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/transcript"
)

// outcome is what a batch tells of a file.
type outcome struct {
	report *transcript.Report
	err    error
}

// wait imports a file with a batch. What it returns is filled in when that is
// committed.
func wait(t *testing.T, b *transcript.Batch, path string) *outcome {
	t.Helper()
	f, err := transcript.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	o := &outcome{}
	b.Import(context.Background(), toy(), f, func(r *transcript.Report, err error) { o.report, o.err = r, err })
	return o
}

func batchHome(t *testing.T) (*file.Store, *transcript.Importer) {
	st := fileStore(t)
	return st, &transcript.Importer{Store: st, Ledger: transcript.LedgerOf(st)}
}

func TestBatchCreatesSessionsTogether(t *testing.T) {
	t.Parallel()
	st, im := batchHome(t)
	b := im.Batch()
	var all []*outcome
	for n := range 5 {
		all = append(all, wait(t, b, toyFile(t, lines(toyLine{Conv: fmt.Sprint(n), Title: "T"}, said("a", "one"), said("b", "two")))))
	}
	if left, _ := filepath.Glob(filepath.Join(st.Where(), "*.jsonl")); len(left) > 0 || all[0].report != nil {
		t.Errorf("before the commit there are %v", left)
	}
	b.Commit(context.Background())
	for n, o := range all {
		if o.err != nil || o.report.New() != 2 {
			t.Fatalf("file %d: %+v, %v", n, o.report, o.err)
		}
		s, err := session.Open(context.Background(), st, toyID(fmt.Sprint(n)), nil)
		if err != nil {
			t.Fatal(err)
		}
		healthy(t, s)
		if name, _ := s.Name(); s.LeafID() != "b" || name != "T" {
			t.Errorf("file %d: the leaf is %s, the name %q", n, s.LeafID(), name)
		}
		s.Close()
	}
}

// Entries about the session itself come before its last record, so the conversation
// ends there without an entry that moves the leaf back.
func TestBatchedSessionEndsWithItsLastRecord(t *testing.T) {
	t.Parallel()
	st, im := batchHome(t)
	if o := im.Batch(); o.IsFull() {
		t.Error("an empty batch is full")
	}
	b := im.Batch()
	wait(t, b, toyFile(t, lines(toyLine{Conv: "c", Title: "T"}, said("a", "one"), said("b", "two"))))
	b.Commit(context.Background())
	log, err := os.ReadFile(st.Path(toyID("c")))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSpace(string(log)), "\n")
	if last := all[len(all)-1]; !strings.Contains(last, `"id":"b"`) || strings.Contains(string(log), `"type":"leaf"`) {
		t.Errorf("the log is\n%s", log)
	}
}

// TestBatchOfOneSessionInTwoFiles: the second file adds what the first one lacks,
// and a different version of a record becomes another branch.
func TestBatchOfOneSessionInTwoFiles(t *testing.T) {
	t.Parallel()
	st, im := batchHome(t)
	b := im.Batch()
	one := wait(t, b, toyFile(t, lines(toyLine{Conv: "c"}, said("a", "one"), said("b", "two"))))
	two := wait(t, b, toyFile(t, lines(toyLine{Conv: "c"}, said("a", "one"), said("b", "other"), said("d", "three"))))
	b.Commit(context.Background())
	if one.err != nil || two.err != nil || one.report.New() != 2 || two.report.New() != 2 || two.report.Sessions[0].Revised != 1 {
		t.Fatalf("%+v, %v and %+v, %v", one.report, one.err, two.report, two.err)
	}
	s, err := session.Open(context.Background(), st, toyID("c"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	healthy(t, s)
}

// TestBatchWhoseSessionSomebodyElseMade: the name is taken when the batch is
// committed, so the file is imported into what is there.
func TestBatchWhoseSessionSomebodyElseMade(t *testing.T) {
	t.Parallel()
	st, im := batchHome(t)
	short, long := lines(toyLine{Conv: "c"}, said("a", "one")), lines(toyLine{Conv: "c"}, said("a", "one"), said("b", "two"))
	b := im.Batch()
	o := wait(t, b, toyFile(t, long))
	other := &transcript.Importer{Store: st}
	f, err := transcript.OpenFile(toyFile(t, short))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Import(context.Background(), toy(), f); err != nil {
		t.Fatal(err)
	}
	b.Commit(context.Background())
	if o.err != nil || o.report.New() != 1 || o.report.Sessions[0].Created {
		t.Fatalf("%+v, %v", o.report, o.err)
	}
	s, err := session.Open(context.Background(), st, toyID("c"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.LeafID() != "b" {
		t.Errorf("the leaf is %s", s.LeafID())
	}
}

func TestDiscardedBatchImportsNothing(t *testing.T) {
	t.Parallel()
	st, im := batchHome(t)
	b := im.Batch()
	path := toyFile(t, lines(toyLine{Conv: "c"}, said("a", "one")))
	o := wait(t, b, path)
	b.Discard()
	if left, _ := filepath.Glob(filepath.Join(st.Where(), "*.jsonl")); len(left) > 0 || o.report != nil || im.Ledger.Get(t.Context(), path) != nil {
		t.Errorf("there is %v, and it told %+v", left, o.report)
	}
}

// TestLedgerListsManyFilesTogether: a list takes the place of many notes, a file
// that is imported alone again gets its own note, and a list that says nothing new
// goes.
func TestLedgerListsManyFilesTogether(t *testing.T) {
	t.Parallel()
	st := fileStore(t)
	put := func(l *transcript.Ledger, size int64, paths ...string) {
		t.Helper()
		var all []*transcript.Source
		for _, path := range paths {
			all = append(all, &transcript.Source{Path: path, Format: "toy", Size: size})
		}
		if err := l.PutAll(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	size := func(l *transcript.Ledger, path string) int64 {
		if s := l.Get(t.Context(), path); s != nil {
			return s.Size
		}
		return -1
	}
	notes := func() int {
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(st.IndexPath()), "imports", "*"))
		return len(left)
	}
	first := transcript.LedgerOf(st)
	put(first, 1, "/a", "/b", "/c")
	if notes() != 1 {
		t.Errorf("three files have %d notes", notes())
	}
	second := transcript.LedgerOf(st)
	if size(second, "/b") != 1 || size(second, "/d") != -1 {
		t.Error("another ledger does not know what was listed")
	}
	if err := second.Put(t.Context(), &transcript.Source{Path: "/b", Format: "toy", Size: 2}); err != nil {
		t.Fatal(err)
	}
	if first.Refresh(t.Context()); size(first, "/b") != 2 || size(first, "/c") != 1 {
		t.Errorf("after another has noted /b: %d, %d", size(first, "/b"), size(first, "/c"))
	}
	put(first, 3, "/a", "/c") // the first list has the last word on nothing but /b, which has its own note
	put(first, 4, "/a", "/c") // the second list has it on nothing at all
	if size(transcript.LedgerOf(st), "/a") != 4 || size(first, "/b") != 2 {
		t.Errorf("sizes are %d and %d", size(first, "/a"), size(first, "/b"))
	}
	if notes() != 3 {
		t.Errorf("there are %d notes: two lists and the note of /b are wanted", notes())
	}
}
