package storetest

import (
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// copyChecks are about logs that others rewrite or remove while they are open.
var copyChecks = []check{
	{"Whole", checkCopyWhole},
	{"OfReplaced", checkCopyOfReplaced},
	{"OfRemoved", checkCopyOfRemoved},
	{"ReplacedMeanwhile", checkCopyReplacedMeanwhile},
	{"Pin", checkPin},
	{"Current", checkCurrent},
}

// upper is an edit that changes every line.
func upper(line []byte) ([]byte, error) {
	return append([]byte(`{"edited":`), append(line, '}')...), nil
}

func mustEdit(t testing.TB, s store.Store, p store.Part) {
	t.Helper()
	if err := s.Parts().Edit(t.Context(), p, upper); err != nil {
		t.Fatalf("edit %+v: %v", p, err)
	}
}

func logPart(s store.Store, name string) store.Part {
	return store.Part{Kind: store.PartLog, Name: name, Place: s.Parts().Where(store.PartLog, name)}
}

func checkCopyWhole(t *testing.T, s store.Store) {
	of := MustCreate(t, s, "a", nums(0, 3)...)
	log, err := s.CreateCopy(t.Context(), "b", store.Lines(toBytes(nums(0, 2))...), of)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	wantLines(t, log, nums(0, 2)...)
	MustAppend(t, of, num(3)) // nothing keeps it any more
	_, err = s.CreateCopy(t.Context(), "b", store.Lines(), of)
	wantErr(t, err, "b", store.ErrExist)
	MustAppend(t, of, num(4))
}

// What was taken out of a log must not come back through a handle from before.
func checkCopyOfReplaced(t *testing.T, s store.Store) {
	of := MustCreate(t, s, "a", nums(0, 3)...)
	mustEdit(t, s, logPart(s, "a"))
	_, err := s.CreateCopy(t.Context(), "b", store.Lines([]byte(num(0))), of)
	wantErr(t, err, "", store.ErrReplaced)
	wantAbsent(t, s, "b")
}

func checkCopyOfRemoved(t *testing.T, s store.Store) {
	of := MustCreate(t, s, "a", nums(0, 3)...)
	mustRemove(t, s, "a")
	_, err := s.CreateCopy(t.Context(), "b", store.Lines([]byte(num(0))), of)
	wantErr(t, err, "", store.ErrNotExist)
	wantAbsent(t, s, "b")
}

// Asking before the lines are copied is not enough.
func checkCopyReplacedMeanwhile(t *testing.T, s store.Store) {
	of := MustCreate(t, s, "a", nums(0, 3)...)
	_, err := s.CreateCopy(t.Context(), "b", func(yield func([]byte, error) bool) {
		if yield([]byte(num(0)), nil) {
			mustEdit(t, s, logPart(s, "a"))
			yield([]byte(num(1)), nil)
		}
	}, of)
	wantErr(t, err, "", store.ErrReplaced)
	wantAbsent(t, s, "b")
}

func checkPin(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	other := MustOpen(t, s, "a")
	release, err := log.Pin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	end := MustEnd(t, other)
	done := make(chan error, 1)
	go func() {
		_, err := other.Append(t.Context(), end, []byte(num(1)))
		done <- err
	}()
	time.Sleep(20 * time.Millisecond)
	wantLines(t, log, num(0)) // readers do not wait
	release()
	within(t, "append after the pin", func() error { return <-done })
	wantLines(t, log, nums(0, 2)...)
	mustRemove(t, s, "a")
	_, err = log.Pin(t.Context())
	wantErr(t, err, "a", store.ErrNotExist)
}

func checkCurrent(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	other := MustOpen(t, s, "a")
	MustAppend(t, other, num(1))
	if err := log.Current(); err != nil {
		t.Fatalf("after an append: %v", err)
	}
	mustEdit(t, s, logPart(s, "a"))
	wantErr(t, log.Current(), "a", store.ErrReplaced)
	_, err := log.Append(t.Context(), MustEnd(t, MustOpen(t, s, "a")), []byte(num(2)))
	wantErr(t, err, "a", store.ErrReplaced)
	if err := MustOpen(t, s, "a").Current(); err != nil {
		t.Fatalf("a handle from after the change: %v", err)
	}
}
