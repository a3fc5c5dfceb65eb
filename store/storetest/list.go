package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
)

var listChecks = []check{
	{"Empty", checkListEmpty},
	{"EachOnce", checkListEachOnce},
	{"Stat", checkListStat},
	{"Describe", checkDescribe},
	{"Break", checkListBreak},
	{"RemoveMeanwhile", checkListRemoveMeanwhile},
	{"OpenWritesNothing", checkOpenWritesNothing},
	{"Cancelled", checkListCancelled},
}

func checkListEmpty(t *testing.T, s store.Store) {
	wantTexts(t, "list of a new store", mustNames(t, s), nil)
	MustPut(t, s.Blobs(), []byte("a blob is not a log"))
	wantTexts(t, "list of a store of one blob", mustNames(t, s), nil)
}

func checkListEachOnce(t *testing.T, s store.Store) {
	want := make100(t, s)
	MustOpen(t, s, want[7])
	MustAppend(t, MustOpen(t, s, want[8]), num(1))
	wantTexts(t, "list", mustNames(t, s), want)
}

// make100 creates a hundred logs and returns their names in order.
func make100(t *testing.T, s store.Store) []string {
	t.Helper()
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("log-%02d", i)
		MustCreate(t, s, names[i], num(i))
	}
	return names
}

func checkListStat(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	before := mustStat(t, s, "a")
	if age := time.Since(before.Modified); before.Size <= 0 || age < -time.Minute || age > time.Minute {
		t.Fatalf("a new log of one line has size %d and age %v", before.Size, age)
	}
	if before.Archived {
		t.Fatal("a new log is archived")
	}
	MustAppend(t, log, nums(1, 1000)...)
	after := mustStat(t, s, "a")
	if after.Size <= before.Size || after.Modified.Before(before.Modified) {
		t.Fatalf("an append changed size and time from %d, %v to %d, %v",
			before.Size, before.Modified, after.Size, after.Modified)
	}
}

// checkDescribe holds what a store says of one log against its list.
func checkDescribe(t *testing.T, s store.Store) {
	MustAppend(t, MustCreate(t, s, "a", num(0)), num(1))
	MustCreate(t, s, "ab", num(0))
	for _, name := range []string{"a", "ab"} {
		if got, err := s.Stat(t.Context(), name); err != nil || got != mustStat(t, s, name) {
			t.Fatalf("describe %q: %+v, %v; the list says %+v", name, got, err, mustStat(t, s, name))
		}
	}
	if _, err := s.Stat(t.Context(), "b"); !errors.Is(err, store.ErrNotExist) {
		t.Fatalf("describe a log that is not there: %v", err)
	}
}

func mustStat(t *testing.T, s store.Store, name string) store.Stat {
	t.Helper()
	for stat, err := range s.List(t.Context()) {
		if err != nil {
			t.Fatalf("list: %q: %v", stat.Name, err)
		}
		if stat.Name == name {
			return stat
		}
	}
	t.Fatalf("log %q is not listed", name)
	return store.Stat{}
}

func checkListBreak(t *testing.T, s store.Store) {
	want := make100(t, s)
	for _, err := range s.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	wantTexts(t, "list after one broken off", mustNames(t, s), want)
}

// A clean-up removes what it lists as it goes.
func checkListRemoveMeanwhile(t *testing.T, s store.Store) {
	want := make100(t, s)
	var seen []string
	within(t, "remove while listing", func() error {
		for stat, err := range s.List(t.Context()) {
			if err != nil {
				return err
			}
			seen = append(seen, stat.Name)
			if err := s.Remove(t.Context(), stat.Name); err != nil {
				return err
			}
		}
		return nil
	})
	slices.Sort(seen)
	wantTexts(t, "list while removing each", seen, want)
	wantTexts(t, "list after all were removed", mustNames(t, s), nil)
}

func checkOpenWritesNothing(t *testing.T, s store.Store) {
	MustCreate(t, s, "a", nums(0, 10)...)
	before := mustStat(t, s, "a")
	log := MustOpen(t, s, "a")
	wantLines(t, log, nums(0, 10)...)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	after := mustStat(t, s, "a")
	if after.Size != before.Size || !after.Modified.Equal(before.Modified) {
		t.Fatalf("opening, reading and closing changed %+v to %+v", before, after)
	}
}

// A listing that is cut short must say so.
func checkListCancelled(t *testing.T, s store.Store) {
	want := make100(t, s)
	n := 0
	for _, err := range s.List(cancelled(t)) {
		if err != nil {
			wantOneOf(t, err, cancelled(t).Err())
			return
		}
		n++
	}
	if n != len(want) {
		t.Fatalf("a cancelled listing ended after %d of %d logs without an error", n, len(want))
	}
}
