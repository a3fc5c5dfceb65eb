package file_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// namesOf lists a store and counts each name.
func namesOf(t *testing.T, st *file.Store) map[string]int {
	t.Helper()
	names := make(map[string]int)
	for stat, err := range st.List(t.Context()) {
		must(t, err)
		names[stat.Name]++
	}
	return names
}

// restless returns a store in which a log moves from the one place to the other
// just before each look at it, by somebody else, as far as its lock lets them.
func restless(t *testing.T, name string) *file.Store {
	disk := vfstest.NewMemory()
	other := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never, LockWait: time.Microsecond})
	storetest.MustCreate(t, other, name, "{}")
	busy := false
	archived := false
	faulty := &vfstest.Faulty{FS: disk, Before: func(op vfstest.Op) error {
		looks := op.Kind == vfstest.OpOpen || op.Kind == vfstest.OpStat || op.Kind == vfstest.OpRead
		if busy || !looks || strings.HasSuffix(op.Name, ".lock") || filepath.Base(op.Name) == "locks" {
			return nil
		}
		busy = true
		defer func() { busy = false }()
		// It goes where nobody is looking.
		isArchive := strings.Contains(op.Name, "archive")
		var err error
		switch {
		case isArchive && archived:
			err = other.Unarchive(t.Context(), name)
		case !isArchive && !archived:
			err = other.Archive(t.Context(), name)
		default:
			return nil
		}
		if err == nil {
			archived = !archived
		} else if !errors.Is(err, store.ErrLocked) {
			t.Error(err)
		}
		return nil
	}}
	return openAt(t, "/s", &file.Options{FS: faulty, Sync: file.Never})
}

// A log that moves between archive and plain file under every look is still
// found, each time and once.
func TestMovingLogIsFound(t *testing.T) {
	t.Parallel()
	for range 5 {
		if names := namesOf(t, restless(t, "a")); len(names) != 1 || names["a"] != 1 {
			t.Errorf("a list has %v", names)
		}
		st := restless(t, "a")
		log, err := st.Open(t.Context(), "a")
		must(t, err)
		must(t, log.Close())
		must(t, restless(t, "a").Archive(t.Context(), "a"))
		must(t, restless(t, "a").Remove(t.Context(), "a"))
		if stale := mustStale(t, restless(t, "a")); len(stale) > 0 {
			t.Errorf("its lock is taken for a stale one: %v", stale)
		}
	}
}

// Whoever takes his time over a list misses nothing that moves meanwhile.
func TestListMeetsMovesBetweenItsItems(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		st := open(t, &file.Options{Sync: file.Never})
		for _, name := range []string{"a", "b", "c"} {
			storetest.MustCreate(t, st, name, "{}")
			if back {
				must(t, st.Archive(t.Context(), name))
			}
		}
		seen := make(map[string]int)
		for stat, err := range st.List(t.Context()) {
			must(t, err)
			seen[stat.Name]++
			for _, name := range []string{"a", "b", "c"} {
				if back {
					must(t, st.Unarchive(t.Context(), name))
				} else {
					must(t, st.Archive(t.Context(), name))
				}
			}
		}
		if len(seen) != 3 || seen["a"]+seen["b"]+seen["c"] != 3 {
			t.Errorf("back=%v: a list has %v", back, seen)
		}
	}
}

// A lock without its log, and a log that is being created, are not in the list.
func TestListLeavesOutLocks(t *testing.T) {
	t.Parallel()
	st := open(t, &file.Options{Sync: file.Never})
	storetest.MustCreate(t, st, "a", "{}")
	must(t, st.Archive(t.Context(), "a"))
	putLog(t, vfs.OS{}, filepath.Join(st.Where(), ".coppice", "locks", "gone.lock"), nil)
	log, err := st.Create(t.Context(), "new", func(yield func([]byte, error) bool) {
		if names := namesOf(t, st); len(names) != 1 || names["a"] != 1 {
			t.Errorf("a list has %v", names)
		}
		if _, err := st.Open(t.Context(), "new"); !errors.Is(err, store.ErrNotExist) {
			t.Errorf("a log that is not there yet was opened: %v", err)
		}
		yield([]byte("{}"), nil)
	})
	must(t, err)
	must(t, log.Close())
}

// Listings, openings and moves beside each other, for real.
func TestListBesideArchiving(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	const logs = 8
	st := openAt(t, dir, &file.Options{Sync: file.Never})
	for i := range logs {
		storetest.MustCreate(t, st, fmt.Sprint("s", i), "{}")
	}
	end := time.Now().Add(300 * time.Millisecond)
	var moves, lists atomic.Int64
	var all sync.WaitGroup
	for k := range 3 {
		all.Go(func() {
			for i := k; time.Now().Before(end); i++ {
				name := fmt.Sprint("s", i%logs)
				if err := errors.Join(st.Archive(t.Context(), name), st.Unarchive(t.Context(), name)); err != nil {
					t.Error(err)
					return
				}
				moves.Add(1)
			}
		})
	}
	all.Go(func() {
		for time.Now().Before(end) {
			names := namesOf(t, st)
			for i := range logs {
				if n := names[fmt.Sprint("s", i)]; n != 1 {
					t.Errorf("s%d is in a list %d times", i, n)
				}
			}
			lists.Add(1)
		}
	})
	all.Wait()
	t.Logf("%d moves, %d lists", moves.Load(), lists.Load())
}
