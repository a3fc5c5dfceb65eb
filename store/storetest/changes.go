package storetest

import (
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/store"
)

// changeChecks are trivial for a store that cannot tell what has changed.
var changeChecks = []check{
	{"Marked", checkChangesMarked},
	{"Settled", checkChangesSettled},
}

// reader is who asks. A store in a directory may tell only the index that belongs to it.
func reader(s store.Store) string {
	if d, ok := store.As[store.Directory](s); ok {
		return d.IndexPath()
	}
	return "a reader"
}

func mustChanges(t *testing.T, s store.Store) store.Changes {
	t.Helper()
	c, err := s.Changes(t.Context(), reader(s))
	if err != nil {
		t.Fatal(err)
	}
	if c.Epoch == "" && (len(c.Names) > 0 || c.Listing != "") {
		t.Fatalf("without an epoch there are no marks: %+v", c)
	}
	return c
}

func mustSettle(t *testing.T, s store.Store, name string, was *store.Stat) {
	t.Helper()
	if err := s.Settle(t.Context(), reader(s), map[string]*store.Stat{name: was}); err != nil {
		t.Fatal(err)
	}
}

func wantMark(t *testing.T, s store.Store, name string, want bool) {
	t.Helper()
	if c := mustChanges(t, s); c.Epoch != "" && slices.Contains(c.Names, name) != want {
		t.Fatalf("the marks are %q; %q should be among them: %v", c.Names, name, want)
	}
}

func checkChangesMarked(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	first := mustChanges(t, s)
	wantMark(t, s, "a", true)
	stat := mustStat(t, s, "a")
	mustSettle(t, s, "a", &stat)
	MustAppend(t, log, num(1))
	wantMark(t, s, "a", true)
	MustCreate(t, s, "b", num(0))
	if second := mustChanges(t, s); second.Epoch != first.Epoch || (second.Listing == "") != (first.Listing == "") || second.Listing != "" && second.Listing == first.Listing {
		t.Fatalf("before another log: %+v; after it: %+v", first, second)
	}
	wantMark(t, s, "b", true)
}

// A mark goes only if the log is what the reader says.
func checkChangesSettled(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	mustChanges(t, s)
	before := mustStat(t, s, "a")
	MustAppend(t, log, num(1))
	mustSettle(t, s, "a", &before)
	wantMark(t, s, "a", true)
	mustSettle(t, s, "a", nil)
	wantMark(t, s, "a", true)
	log.Close()
	now := mustStat(t, s, "a")
	mustSettle(t, s, "a", &now)
	wantMark(t, s, "a", false)
	mustRemove(t, s, "a")
	wantMark(t, s, "a", true)
	mustSettle(t, s, "a", nil)
	wantMark(t, s, "a", false)
	// Several at once: each by itself.
	MustCreate(t, s, "b", num(0))
	changed := MustCreate(t, s, "c", num(0))
	mustChanges(t, s)
	b, c := mustStat(t, s, "b"), mustStat(t, s, "c")
	MustAppend(t, changed, num(1))
	if err := s.Settle(t.Context(), reader(s), map[string]*store.Stat{"a": nil, "b": &b, "c": &c}); err != nil {
		t.Fatal(err)
	}
	wantMark(t, s, "b", false)
	wantMark(t, s, "c", true)
}
