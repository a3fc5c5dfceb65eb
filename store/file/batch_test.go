package file_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

func addTo(t *testing.T, b store.Batch, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := b.Add(t.Context(), name, store.Lines([]byte("one"), []byte("of "+name))); err != nil {
			t.Fatal(err)
		}
	}
}

// exists reports whether a store has a log.
func exists(t *testing.T, st store.Store, name string) bool {
	t.Helper()
	log, err := st.Open(t.Context(), name)
	if errors.Is(err, store.ErrNotExist) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	log.Close()
	return true
}

func TestBatchAppearsWhenItIsCommitted(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	b := st.Batch()
	addTo(t, b, "a", "b")
	if exists(t, st, "a") || b.Len() != 2 {
		t.Error("a log is there before the batch was committed")
	}
	if errs := b.Commit(t.Context()); len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, name := range []string{"a", "b"} {
		if got := read(t, st, name); got != "one of "+name {
			t.Errorf("log %s reads %q", name, got)
		}
	}
	for _, room := range []string{"locks", "tmp"} {
		if left, _ := os.ReadDir(filepath.Join(houseOf(st), room)); len(left) > 0 {
			t.Errorf("%v is left in %s", left, room)
		}
	}
}

func TestBatchLeavesWhatIsThere(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	mustCreate(t, st, "plain", "mine").Close()
	mustCreate(t, st, "cold", "mine").Close()
	if err := st.Archive(t.Context(), "cold"); err != nil {
		t.Fatal(err)
	}
	b := st.Batch()
	addTo(t, b, "plain", "cold", "new")
	errs := b.Commit(t.Context())
	if len(errs) != 2 || !errors.Is(errs["plain"], store.ErrExist) || !errors.Is(errs["cold"], store.ErrExist) {
		t.Errorf("errors are %v", errs)
	}
	if read(t, st, "plain") != "mine" || read(t, st, "cold") != "mine" || !exists(t, st, "new") {
		t.Error("a log was replaced, or one is missing")
	}
}

func TestDiscardedBatchLeavesNothing(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	b := st.Batch()
	addTo(t, b, "a")
	b.Discard()
	if left, _ := os.ReadDir(filepath.Join(houseOf(st), "tmp")); len(left) > 0 || exists(t, st, "a") || b.Len() != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestBatchSurvivesAFault(t *testing.T) {
	t.Parallel()
	for _, kind := range []vfstest.OpKind{vfstest.OpSync, vfstest.OpLock} {
		disk := vfstest.NewMemory()
		var mu sync.Mutex
		armed := false
		fail := vfstest.FailAt(1, kind, syscall.EIO)
		st := open(t, &file.Options{FS: &vfstest.Faulty{FS: disk, Before: func(o vfstest.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if !armed {
				return nil
			}
			return fail(o)
		}}})
		b := st.Batch()
		addTo(t, b, "a", "b", "c")
		armed = true
		errs := b.Commit(t.Context())
		if len(errs) != 1 {
			t.Errorf("%v: errors are %v, want one", kind, errs)
		}
		for _, name := range []string{"a", "b", "c"} {
			if exists(t, st, name) == (errs[name] != nil) {
				t.Errorf("%v: log %s, whose error is %v, exists: %v", kind, name, errs[name], exists(t, st, name))
			}
		}
	}
}

// TestBatchSurvivesCrashes cuts the power before every change of the disk: a name
// leads to a whole log or to nothing, and after Commit to the log.
func TestBatchSurvivesCrashes(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"a", "b", "c"}, manyNames()} {
		for op := int64(1); batchWithCrash(t, names, op); op++ {
		}
	}
}

func batchWithCrash(t *testing.T, names []string, op int64) (more bool) {
	t.Helper()
	disk := vfstest.NewMemory()
	var mu sync.Mutex
	var crashed []*vfstest.Memory
	n := int64(0)
	crash := func() {
		crashed = append(crashed, disk.CrashClone(nil, vfstest.LoseAll), disk.CrashClone(rand.New(rand.NewPCG(1, uint64(op)))))
	}
	faulty := &vfstest.Faulty{FS: disk, Before: func(o vfstest.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if o.Kind.Mutates() {
			if n++; n == op {
				crash()
			}
		}
		return nil
	}}
	st := open(t, &file.Options{FS: faulty})
	b := st.Batch()
	addTo(t, b, names...)
	if errs := b.Commit(t.Context()); len(errs) > 0 {
		t.Fatal(errs)
	}
	done := crashed == nil
	if done {
		crash()
	}
	for _, disk := range crashed {
		after, err := file.Open(st.Where(), &file.Options{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			_, err := disk.Lstat(after.Path(name))
			if errors.Is(err, fs.ErrNotExist) && !done {
				continue
			}
			if got := read(t, after, name); got != fmt.Sprintf("one of %s", name) {
				t.Errorf("crash before change %d: log %s reads %q", op, name, got)
			}
		}
		after.Close()
	}
	return !done
}

// TestBatchIsFoundByAnIndex: an index learns of new logs by their marks or, if
// there are many, by an epoch that is another one.
func TestBatchIsFoundByAnIndex(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 30} {
		st := open(t, nil)
		mustCreate(t, st, "first", "one").Close()
		before, err := st.Changes(t.Context(), st.IndexPath())
		if err != nil {
			t.Fatal(err)
		}
		b := st.Batch()
		for i := range n {
			addTo(t, b, fmt.Sprintf("log%d", i))
		}
		if errs := b.Commit(t.Context()); len(errs) > 0 {
			t.Fatal(errs)
		}
		after, err := st.Changes(t.Context(), st.IndexPath())
		if err != nil {
			t.Fatal(err)
		}
		if before.Epoch == "" {
			continue // this system does not tell when it was booted
		}
		if marked := len(after.Names) - len(before.Names); marked != n && after.Epoch == before.Epoch {
			t.Errorf("of %d logs %d are marked, and the epoch is the same", n, marked)
		}
	}
}
