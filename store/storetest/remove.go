package storetest

import (
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/store"
)

var removeChecks = []check{
	{"Gone", checkRemoveGone},
	{"OpenHandle", checkRemoveOpenHandle},
	{"CreateAgain", checkRemoveCreateAgain},
	{"OldHandleNewLog", checkRemoveOldHandleNewLog},
	{"OthersStay", checkRemoveOthersStay},
	{"AppendRace", checkRemoveAppendRace},
	{"Cancelled", checkRemoveCancelled},
	{"At", checkRemoveAt},
}

// A log is removed at a position only if it ends there, so that nothing the caller has
// not seen is lost.
func checkRemoveAt(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	seen := MustEnd(t, log)
	end, err := log.Append(t.Context(), seen, []byte(num(1)))
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, s.RemoveAt(t.Context(), "a", seen), "a", store.ErrConflict)
	wantLines(t, MustOpen(t, s, "a"), num(0), num(1))
	if err := s.RemoveAt(t.Context(), "a", end); err != nil {
		t.Fatal(err)
	}
	wantAbsent(t, s, "a")
	wantErr(t, s.RemoveAt(t.Context(), "a", end), "a", store.ErrNotExist)
}

func mustRemove(t testing.TB, s store.Store, name string) {
	t.Helper()
	if err := s.Remove(t.Context(), name); err != nil {
		t.Fatalf("remove %q: %v", name, err)
	}
}

func checkRemoveGone(t *testing.T, s store.Store) {
	MustCreate(t, s, "a", num(0))
	mustRemove(t, s, "a")
	wantAbsent(t, s, "a")
	wantErr(t, s.Remove(t.Context(), "a"), "a", store.ErrNotExist)
}

// A log that was removed while a handle was open must not come back through that
// handle, without its beginning.
func checkRemoveOpenHandle(t *testing.T, s store.Store) {
	one := MustCreate(t, s, "a", num(0))
	two := MustOpen(t, s, "a")
	end := MustEnd(t, one)
	mustRemove(t, s, "a")
	for _, log := range []store.Log{one, two} {
		_, err := log.Append(t.Context(), end, []byte(num(1)))
		wantErr(t, err, "a", store.ErrNotExist)
		_, err = log.Append(t.Context(), 0, []byte(num(1)))
		if err == nil {
			t.Fatal("append at 0 to a removed log succeeded")
		}
		if err := log.Close(); err != nil {
			t.Fatalf("close a removed log: %v", err)
		}
	}
	wantAbsent(t, s, "a")
}

func checkRemoveCreateAgain(t *testing.T, s store.Store) {
	MustCreate(t, s, "a", nums(0, 10)...)
	for n := range 3 {
		mustRemove(t, s, "a")
		log := MustCreate(t, s, "a", num(100+n))
		wantLines(t, log, num(100+n))
		wantLines(t, MustOpen(t, s, "a"), num(100+n))
	}
	mustRemove(t, s, "a")
	wantLines(t, MustCreate(t, s, "a"))
}

// The new log is as long as the old one, so that a position alone cannot tell
// them apart.
func checkRemoveOldHandleNewLog(t *testing.T, s store.Store) {
	old := MustCreate(t, s, "a", num(1))
	end := MustEnd(t, old)
	mustRemove(t, s, "a")
	renewed := MustCreate(t, s, "a", num(2))
	if _, err := old.Append(t.Context(), end, []byte(num(3))); err == nil {
		t.Error("append through a handle of the removed log succeeded")
	}
	wantLines(t, renewed, num(2))
	MustAppend(t, renewed, num(4))
	wantLines(t, MustOpen(t, s, "a"), num(2), num(4))
}

func checkRemoveOthersStay(t *testing.T, s store.Store) {
	a := MustCreate(t, s, "a", num(0))
	MustCreate(t, s, "a.b", num(1))
	c := MustCreate(t, s, "ab", num(2))
	mustRemove(t, s, "a.b")
	wantLines(t, a, num(0))
	MustAppend(t, c, num(3))
	wantLines(t, c, num(2), num(3))
}

func checkRemoveAppendRace(t *testing.T, s store.Store) {
	for range 20 {
		log := MustCreate(t, s, "a", num(0))
		end := MustEnd(t, log)
		var wg sync.WaitGroup
		var appendErr, removeErr error
		wg.Go(func() {
			for appendErr == nil {
				end, appendErr = log.Append(t.Context(), end, []byte(num(1)))
			}
		})
		wg.Go(func() { removeErr = s.Remove(t.Context(), "a") })
		wg.Wait()
		if removeErr != nil {
			t.Fatalf("remove while another appends: %v", removeErr)
		}
		wantErr(t, appendErr, "a", store.ErrNotExist)
		wantAbsent(t, s, "a")
	}
}

func checkRemoveCancelled(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	if err := s.Remove(cancelled(t), "a"); err == nil {
		wantAbsent(t, s, "a")
		return
	}
	MustAppend(t, log, num(1))
	wantLines(t, MustOpen(t, s, "a"), num(0), num(1))
}
