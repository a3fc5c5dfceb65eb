package index_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// TestAStuckHolderOfTheLock: a process that has the index open stopped with its lock. The
// index is read as it is, which does not take long, and brought up to date once the lock
// is free.
func TestAStuckHolderOfTheLock(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	f.say("said before")
	other := f.open(t) // which keeps the files there
	lock, err := vfs.OS{}.OpenFile(f.path()+".lock", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	ix, err := index.OpenNow(t.Context(), f.st, f.path())
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	if _, err := ix.CatchUp(t.Context(), nil); err != nil {
		t.Errorf("with nothing to catch up with: %v", err)
	}
	f.say("said later")
	if _, err := ix.CatchUp(t.Context(), nil); !errors.Is(err, store.ErrLocked) || !ix.IsComplete(t.Context()) {
		t.Errorf("catching up: %v", err)
	}
	if hits := search(t, ix, index.SearchOptions{Query: "before"}); len(hits) != 1 {
		t.Errorf("%d hits", len(hits))
	}
	if page, _, err := ix.List(t.Context(), index.ListOptions{}); err != nil || len(page) != 1 {
		t.Errorf("%d sessions, %v", len(page), err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	mustCatchUp(t, ix)
	mustCatchUp(t, other)
	for _, ix := range []*index.Index{ix, other} {
		if hits := search(t, ix, index.SearchOptions{Query: "later"}); len(hits) != 1 {
			t.Errorf("afterwards %d hits", len(hits))
		}
	}
}

// TestAStuckHolderOfAClosedIndex: nobody has the index open, so that its database is alone.
// Reading it makes no files, and it can be written again once the lock is free.
func TestAStuckHolderOfAClosedIndex(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	f.say("said before")
	if err := f.open(t).Close(); err != nil {
		t.Fatal(err)
	}
	lock, err := vfs.OS{}.OpenFile(f.path()+".lock", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	f.say("said later")
	ix, err := index.OpenNow(t.Context(), f.st, f.path())
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	for range 2 {
		if _, err := ix.CatchUp(t.Context(), nil); !errors.Is(err, store.ErrLocked) || !ix.IsComplete(t.Context()) {
			t.Errorf("catching up: %v", err)
		}
		if hits := search(t, ix, index.SearchOptions{Query: "before"}); len(hits) != 1 {
			t.Errorf("%d hits", len(hits))
		}
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Lstat(f.path() + suffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("reading made %s: %v", suffix, err)
		}
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	other := f.open(t) // it makes the other files
	f.say("said last")
	for _, ix := range []*index.Index{ix, other} {
		mustCatchUp(t, ix)
		if hits := search(t, ix, index.SearchOptions{Query: "said"}); len(hits) != 3 {
			t.Errorf("afterwards %d hits", len(hits))
		}
	}
}

// TestAnIndexThatIsBeingMade is not read as it is: it has only a part of the sessions.
func TestAnIndexThatIsBeingMade(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	f.say("said before")
	other, err := index.Open(t.Context(), f.st, f.path(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	lock, err := vfs.OS{}.OpenFile(f.path()+".lock", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	time.AfterFunc(50*time.Millisecond, func() { lock.Unlock() })
	ix, err := index.OpenNow(t.Context(), f.st, f.path()) // it waits all the same
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	mustCatchUp(t, ix)
	if hits := search(t, ix, index.SearchOptions{Query: "before"}); len(hits) != 1 {
		t.Errorf("%d hits", len(hits))
	}
}
