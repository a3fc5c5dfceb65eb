package file_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// manyNames are enough for a batch to lend one lock file to all of them.
func manyNames() []string {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("log%02d", i))
	}
	return names
}

// locksLeft returns the lock files and temporary files of a store.
func locksLeft(t *testing.T, st *file.Store) (left []string) {
	t.Helper()
	for _, room := range []string{"locks", "tmp"} {
		entries, err := os.ReadDir(filepath.Join(houseOf(st), room))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			left = append(left, e.Name())
		}
	}
	return left
}

// TestLentLockKeepsOthersOut: while a log of a large batch gets its name, nobody
// else can take the lock of that name; before and after, everybody can.
func TestLentLockKeepsOthersOut(t *testing.T) {
	t.Parallel()
	var st *file.Store
	free := func(name string) bool {
		f, err := vfs.OS{}.OpenFile(lockOf(st, name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		ok, err := f.TryLock()
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	placed := 0
	st = open(t, &file.Options{FS: &vfstest.Faulty{FS: vfs.OS{}, Before: func(o vfstest.Op) error {
		for _, name := range manyNames() {
			if o.Kind == vfstest.OpCreate && o.To == st.Path(name) {
				if placed++; free(name) {
					t.Errorf("%s is not locked while it gets its name", name)
				}
			}
		}
		return nil
	}}})
	b := st.Batch()
	addTo(t, b, manyNames()...)
	if errs := b.Commit(t.Context()); len(errs) > 0 || placed != len(manyNames()) {
		t.Fatal(errs, placed)
	}
	if left := locksLeft(t, st); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	if !free(manyNames()[0]) {
		t.Error("a lock is still held")
	}
}

// TestBatchWaitsForALockThatIsThere: where the lock of a name has a file, that one
// counts.
func TestBatchWaitsForALockThatIsThere(t *testing.T) {
	t.Parallel()
	names := manyNames()
	st := open(t, &file.Options{LockWait: 1})
	b := st.Batch()
	addTo(t, b, names...)
	f, err := vfs.OS{}.OpenFile(lockOf(st, names[3]), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(lockOf(st, names[3])), 0o700); err == nil {
			f, err = vfs.OS{}.OpenFile(lockOf(st, names[3]), os.O_RDWR|os.O_CREATE, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if ok, err := f.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	errs := b.Commit(t.Context())
	if len(errs) != 1 || !errors.Is(errs[names[3]], store.ErrLocked) {
		t.Errorf("errors are %v", errs)
	}
}

// TestBatchWithoutLinks: where files cannot have two names, or lose the second one,
// a large batch makes lock files as a small one does.
func TestBatchWithoutLinks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		fail func(o vfstest.Op, lock bool) bool
		left int
	}{
		{"no link", func(o vfstest.Op, _ bool) bool { return o.Kind == vfstest.OpCreate && o.To != "" }, 0},
		{"no lock", func(o vfstest.Op, lock bool) bool { return o.Kind == vfstest.OpLock && !lock }, 0},
		{"no removal", func(o vfstest.Op, lock bool) bool { return o.Kind == vfstest.OpRemove && lock }, len(manyNames())},
	} {
		locks := ""
		st := open(t, &file.Options{FS: &vfstest.Faulty{FS: vfs.OS{}, Before: func(o vfstest.Op) error {
			if c.fail(o, filepath.Dir(o.Name) == locks) {
				return syscall.EPERM
			}
			return nil
		}}})
		locks = filepath.Dir(lockOf(st, "x"))
		b := st.Batch()
		addTo(t, b, manyNames()...)
		if errs := b.Commit(t.Context()); len(errs) > 0 {
			t.Errorf("%s: %v", c.name, errs)
		}
		for _, name := range manyNames() {
			if got := read(t, st, name); got != "one of "+name {
				t.Errorf("%s: log %s reads %q", c.name, name, got)
			}
		}
		if left := locksLeft(t, st); len(left) != c.left {
			t.Errorf("%s: %q are left", c.name, left)
		}
		ids := make(map[vfs.FileID]string)
		for _, name := range manyNames() {
			stat, err := vfs.OS{}.Stat(lockOf(st, name))
			if err == nil && ids[stat.File] != "" {
				t.Errorf("%s: %s and %s share a lock", c.name, name, ids[stat.File])
			}
			ids[stat.File] = name
		}
	}
}
