package storetest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/store"
)

var flushChecks = []check{
	{"ChangesNothing", checkFlushChangesNothing},
	{"Cancelled", checkFlushCancelled},
	{"Concurrent", checkFlushConcurrent},
	{"Removed", checkFlushRemoved},
}

func mustFlush(t testing.TB, log store.Log) {
	t.Helper()
	within(t, "flush", func() error { return log.Flush(t.Context()) })
}

// A flush is not an append: it can be repeated, and readers do not notice it.
func checkFlushChangesNothing(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	other := MustOpen(t, s, "a")
	mustFlush(t, log)
	mustFlush(t, other) // which has appended nothing
	for n := 1; n < 4; n++ {
		MustAppend(t, log, num(n))
		end := MustEnd(t, log)
		mustFlush(t, log)
		mustFlush(t, log)
		if got := MustEnd(t, log); got != end {
			t.Fatalf("the log ended at %d, after a flush it ends at %d", end, got)
		}
	}
	MustAppend(t, other, num(4))
	mustFlush(t, other)
	wantLines(t, log, nums(0, 5)...)
}

func checkFlushCancelled(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	MustAppend(t, log, num(1))
	wantOneOf(t, log.Flush(cancelled(t)), cancelled(t).Err())
	mustFlush(t, log)
	MustAppend(t, log, num(2))
	wantLines(t, log, nums(0, 3)...)
}

// Flushes and appends of several handles get on with one another.
func checkFlushConcurrent(t *testing.T, s store.Store) {
	logs := make([]store.Log, 4)
	for i := range logs {
		logs[i] = MustCreate(t, s, fmt.Sprint("log ", i))
	}
	within(t, "append and flush at once", func() error {
		errs := make(chan error, 100*len(logs))
		var wg sync.WaitGroup
		for _, log := range logs {
			wg.Go(func() {
				at := store.Pos(0)
				for n := range 20 {
					end, err := log.Append(t.Context(), at, []byte(num(n)))
					at = end
					errs <- err
				}
			})
			for range 2 {
				wg.Go(func() {
					for range 20 {
						errs <- log.Flush(t.Context())
					}
				})
			}
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, log := range logs {
		wantLines(t, log, nums(0, 20)...)
	}
}

// A removed log has nothing to be made durable: a flush may succeed, or say that there
// is no such log.
func checkFlushRemoved(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", num(0))
	MustAppend(t, log, num(1))
	mustRemove(t, s, "a")
	within(t, "flush a removed log", func() error {
		if err := log.Flush(t.Context()); err != nil {
			wantOneOf(t, err, store.ErrNotExist)
		}
		return nil
	})
}

// cutChecks are about what a power cut leaves.
var cutChecks = []struct {
	name string
	run  func(t *testing.T, s store.Store, cut func() store.Store)
}{
	{"Lines", checkCutLines},
	{"Created", checkCutCreated},
	{"Reopened", checkCutReopened},
	{"Blobs", checkCutBlobs},
	{"Rounds", checkCutRounds},
}

// RunPowerCut checks that flushed lines survive a power cut. It calls open
// for a new, empty store in each subtest; the function that comes with it cuts
// the power and returns the store as it is found then. A cut must lose as much unsynced
// data as it can. Check a store at each of its levels of durability.
func RunPowerCut(t *testing.T, open func(t *testing.T) (s store.Store, cut func() store.Store)) {
	for _, c := range cutChecks {
		t.Run(c.name, func(t *testing.T) {
			s, cut := open(t)
			c.run(t, s, cut)
		})
	}
}

func checkCutLines(t *testing.T, s store.Store, cut func() store.Store) {
	log := MustCreate(t, s, "a", num(0))
	for n := 1; n < 10; n++ {
		MustAppend(t, log, num(n))
	}
	mustFlush(t, log)
	wantLines(t, MustOpen(t, cut(), "a"), nums(0, 10)...)
}

func checkCutCreated(t *testing.T, s store.Store, cut func() store.Store) {
	mustFlush(t, MustCreate(t, s, "a", nums(0, 5)...))
	wantLines(t, MustOpen(t, cut(), "a"), nums(0, 5)...)
}

// A handle answers for the name of a log that another one created.
func checkCutReopened(t *testing.T, s store.Store, cut func() store.Store) {
	MustCreate(t, s, "a", num(0)).Close()
	log := MustOpen(t, s, "a")
	MustAppend(t, log, num(1))
	mustFlush(t, log)
	wantLines(t, MustOpen(t, cut(), "a"), nums(0, 2)...)
}

func checkCutBlobs(t *testing.T, s store.Store, cut func() store.Store) {
	log := MustCreate(t, s, "a", num(0))
	before := bytes.Repeat([]byte("before"), 10_000)
	ref := MustPut(t, s.Blobs(), before)
	MustPut(t, s.Blobs(), before) // it is there already, and still not durable
	MustAppend(t, log, fmt.Sprintf(`{"blob":%q}`, ref))
	mustFlush(t, log)
	after := MustPut(t, s.Blobs(), []byte("after"))
	mustFlush(t, log) // with which no line came
	left := cut()
	if got := mustGet(t, left.Blobs(), ref); !bytes.Equal(got, before) {
		t.Fatalf("the blob has %d bytes, want %d", len(got), len(before))
	}
	if got := mustGet(t, left.Blobs(), after); string(got) != "after" {
		t.Fatalf("the second blob is %q", got)
	}
}

// A store that was flushed once is flushed again: no round is left out.
func checkCutRounds(t *testing.T, s store.Store, cut func() store.Store) {
	log := MustCreate(t, s, "a", num(0))
	for n := 1; n < 6; n++ {
		ref := MustPut(t, s.Blobs(), []byte(num(n)))
		MustAppend(t, log, num(n))
		mustFlush(t, log)
		left := cut()
		wantLines(t, MustOpen(t, left, "a"), nums(0, n+1)...)
		mustGet(t, left.Blobs(), ref)
	}
}
