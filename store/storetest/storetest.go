// Package storetest decides whether a store.Store keeps the contract of package
// store. An implementation runs the whole suite from one test:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store {
//			s, err := mystore.Open(filepath.Join(t.TempDir(), "store"))
//			if err != nil {
//				t.Fatal(err)
//			}
//			return s
//		})
//	}
//
// Run it with the race detector: a good part of the suite is about concurrency.
// Where the contract leaves an outcome open, the suite takes either, and checks
// that nothing was lost.
//
// RunPowerCut is for stores that can say what a power cut would leave: it checks
// that flushed lines are still there. The suite does not test other effects of a
// crash, or of other processes: one process cannot see them on an open store.
package storetest

import (
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// patience is how long the suite waits for what should happen at once.
var patience = time.Minute

// check is one test, on a store of its own.
type check struct {
	name string
	run  func(t *testing.T, s store.Store)
}

// Run checks the store that open returns. It calls open for a new, empty store
// in each subtest and closes the store afterwards. Lines of up to 5 MiB must be
// within the store's limit. A line over it must be refused; if there is none, the suite
// tries one of 64 MiB and one byte, which the store may also take. The capabilities
// that the store has (store.Directory, store.Archiver, store.Mender) are checked, too.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, group := range []struct {
		name   string
		checks []check
	}{
		{"Names", nameChecks},
		{"Create", createChecks},
		{"List", listChecks},
		{"Remove", removeChecks},
		{"Close", closeChecks},
		{"Append", appendChecks},
		{"Bytes", byteChecks},
		{"Concurrent", concurrentChecks},
		{"Read", readChecks},
		{"Watch", watchChecks},
		{"Flush", flushChecks},
		{"Start", startChecks},
		{"Copy", copyChecks},
		{"Batch", batchChecks},
		{"Trash", trashChecks},
		{"Notes", noteChecks},
		{"Parts", partChecks},
		{"Changes", changeChecks},
		{"Blobs", blobChecks},
		{"Collect", collectChecks},
		{"Directory", only[store.Directory](t, open, directoryChecks)},
		{"Archive", only[store.Archiver](t, open, archiveChecks)},
		{"Mend", only[store.Mender](t, open, mendChecks)},
	} {
		t.Run(group.name, func(t *testing.T) { runAll(t, open, group.checks) })
	}
}

// only returns the checks of a capability if the store has it.
func only[T any](t *testing.T, open func(t *testing.T) store.Store, checks []check) []check {
	s := open(t)
	defer s.Close()
	if _, ok := store.As[T](s); !ok {
		return nil
	}
	return checks
}

func runAll(t *testing.T, open func(t *testing.T) store.Store, checks []check) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Errorf("close the store: %v", err)
				}
			})
			c.run(t, s)
		})
	}
}
