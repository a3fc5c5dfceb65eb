package storetest

import (
	"testing"

	"github.com/coppice-dev/coppice/store"
)

var batchChecks = []check{
	{"Commit", checkBatchCommit},
	{"Discard", checkBatchDiscard},
}

func mustAdd(t *testing.T, b store.Batch, name string, lines ...string) {
	t.Helper()
	if err := b.Add(t.Context(), name, store.Lines(toBytes(lines)...)); err != nil {
		t.Fatalf("add %q: %v", name, err)
	}
}

func checkBatchCommit(t *testing.T, s store.Store) {
	MustCreate(t, s, "taken", num(0))
	b := s.Batch()
	mustAdd(t, b, "a", nums(0, 3)...)
	mustAdd(t, b, "taken", num(9))
	mustAdd(t, b, "b", num(5))
	if err := b.Add(t.Context(), "a/b", store.Lines()); err == nil {
		t.Error("a bad name was not refused")
	}
	if b.Len() != 3 {
		t.Fatalf("%d logs were added, want 3", b.Len())
	}
	wantAbsent(t, s, "a") // it is not visible yet
	errs := b.Commit(t.Context())
	if len(errs) != 1 || b.Len() != 0 {
		t.Fatalf("commit: %v; %d logs are left", errs, b.Len())
	}
	wantErr(t, errs["taken"], "taken", store.ErrExist)
	wantLines(t, MustOpen(t, s, "a"), nums(0, 3)...)
	wantLines(t, MustOpen(t, s, "b"), num(5))
	wantLines(t, MustOpen(t, s, "taken"), num(0))
}

func checkBatchDiscard(t *testing.T, s store.Store) {
	b := s.Batch()
	mustAdd(t, b, "a", num(0))
	b.Discard()
	if errs := b.Commit(t.Context()); len(errs) > 0 || b.Len() != 0 {
		t.Fatalf("commit of nothing: %v", errs)
	}
	wantAbsent(t, s, "a")
}
