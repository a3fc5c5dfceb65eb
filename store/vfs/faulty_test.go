package vfs_test

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

var errFault = errors.New("fault")

// everyOp does each kind of operation once and returns the errors.
func everyOp(d disk) []error {
	f, err := d.OpenFile(d.path("file"), create|os.O_APPEND, 0o600)
	if err != nil {
		return []error{err}
	}
	_, writeErr := f.Write([]byte("text"))
	_, readErr := f.ReadAt(make([]byte, 2), 0)
	_, statErr := f.Stat()
	_, lockErr := f.TryLock()
	errs := []error{nil, writeErr, readErr, statErr, lockErr, f.Unlock(), f.Truncate(2), f.Sync(), f.Close()}
	errs = append(errs, d.MkdirAll(d.path("dir"), 0o700), d.Rename(d.path("file"), d.path("moved")))
	g, openErr := d.OpenFile(d.path("moved"), read, 0)
	if openErr == nil {
		defer g.Close()
	}
	_, listErr := d.ReadDir(d.dir)
	_, lstatErr := d.Lstat(d.dir)
	return append(errs, openErr, listErr, lstatErr, d.SyncDir(d.dir), d.Remove(d.path("moved")))
}

var everyKind = []vfstest.OpKind{
	vfstest.OpCreate, vfstest.OpWrite, vfstest.OpRead, vfstest.OpStat, vfstest.OpLock, vfstest.OpUnlock, vfstest.OpTruncate, vfstest.OpSync,
	vfstest.OpClose, vfstest.OpMkdir, vfstest.OpRename, vfstest.OpOpen, vfstest.OpRead, vfstest.OpStat, vfstest.OpSyncDir, vfstest.OpRemove,
}

func newFaultyDisk(t testing.TB) (disk, *vfstest.Faulty) {
	d := newMemoryDisk(t)
	f := &vfstest.Faulty{FS: d.FS}
	d.FS = f
	return d, f
}

func TestFaultyReportsEachOperation(t *testing.T) {
	t.Parallel()
	d, f := newFaultyDisk(t)
	var ops []vfstest.Op
	f.Before = func(op vfstest.Op) error { ops = append(ops, op); return nil }
	if err := errors.Join(everyOp(d)...); err != nil {
		t.Fatal(err)
	}
	ops = ops[:len(ops)-1] // the close of the second file
	var kinds []vfstest.OpKind
	for i, op := range ops {
		kinds = append(kinds, op.Kind)
		if op.N != int64(i+1) {
			t.Errorf("operation %d has number %d", i+1, op.N)
		}
	}
	// Removing comes before the deferred close.
	if !slices.Equal(kinds, everyKind) {
		t.Errorf("kinds %v, want %v", kinds, everyKind)
	}
	for i, want := range map[int]vfstest.Op{
		1:  {Kind: vfstest.OpWrite, Name: d.path("file"), N: 2, Size: 4},
		2:  {Kind: vfstest.OpRead, Name: d.path("file"), N: 3, Size: 2},
		6:  {Kind: vfstest.OpTruncate, Name: d.path("file"), N: 7, Size: 2},
		10: {Kind: vfstest.OpRename, Name: d.path("file"), To: d.path("moved"), N: 11},
	} {
		if ops[i] != want {
			t.Errorf("operation %+v, want %+v", ops[i], want)
		}
	}
	if n := f.Count(vfstest.OpAny); n != int64(len(everyKind)+1) {
		t.Errorf("counted %d operations", n)
	}
	if n := f.Count(vfstest.OpMutating); n != 8 {
		t.Errorf("counted %d operations that change the disk", n)
	}
}

func TestFailAtEachOperation(t *testing.T) {
	t.Parallel()
	for n := range everyKind {
		d, f := newFaultyDisk(t)
		f.Before = vfstest.FailAt(int64(n+1), vfstest.OpAny, errFault)
		for i, err := range everyOp(d) {
			if i == n && err != errFault {
				t.Errorf("operation %d, a %v: error %v, want the fault", n+1, everyKind[n], err)
			}
			if i != n && errors.Is(err, errFault) {
				t.Errorf("operation %d failed instead of %d", i+1, n+1)
			}
		}
	}
}

func TestFailAtCountsItsKinds(t *testing.T) {
	t.Parallel()
	d, f := newFaultyDisk(t)
	file := d.write("file", "")
	f.Before = vfstest.FailAt(2, vfstest.OpWrite|vfstest.OpSync, errFault)
	d.append(file, "a")
	d.stat(file)
	if err := file.Sync(); err != errFault {
		t.Errorf("second of the kinds: %v", err)
	}
	d.append(file, "b")
	d.must(file.Sync())
}

func TestFailFrom(t *testing.T) {
	t.Parallel()
	d, f := newFaultyDisk(t)
	file := d.write("file", "")
	f.Before = vfstest.FailFrom(2, vfstest.OpWrite, errFault)
	d.append(file, "a")
	for range 3 {
		if n, err := file.Write([]byte("b")); n != 0 || err != errFault {
			t.Errorf("Write = %d, %v", n, err)
		}
	}
	if got := d.read("file"); got != "a" {
		t.Errorf("content %q", got)
	}
}

func TestFaultDoesNothing(t *testing.T) {
	t.Parallel()
	d, f := newFaultyDisk(t)
	file := d.write("file", "text")
	f.Before = vfstest.FailFrom(1, vfstest.OpMutating|vfstest.OpLock, errFault)
	for i, err := range []error{
		file.Truncate(0),
		d.Remove(d.path("file")),
		d.Rename(d.path("file"), d.path("moved")),
		d.MkdirAll(d.path("dir"), 0o700),
	} {
		if err != errFault {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	if ok, err := file.TryLock(); ok || err != errFault {
		t.Errorf("TryLock = %v, %v", ok, err)
	}
	if got := d.read("file"); got != "text" || len(d.tree("")) != 1 {
		t.Errorf("content %q, tree %q", got, d.tree(""))
	}
}

func TestFailedCloseCloses(t *testing.T) {
	t.Parallel()
	d, f := newFaultyDisk(t)
	file, other := d.write("file", ""), d.open("file", read)
	file.TryLock()
	f.Before = vfstest.FailAt(1, vfstest.OpClose, errFault)
	if err := file.Close(); err != errFault {
		t.Errorf("Close: %v", err)
	}
	if ok, _ := other.TryLock(); !ok {
		t.Error("the lock is still held")
	}
}

func TestShortWrite(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ n, written int }{{-1, 0}, {0, 0}, {3, 3}, {6, 6}, {99, 6}} {
		d, f := newFaultyDisk(t)
		file := d.write("file", "")
		f.Before = vfstest.FailAt(1, vfstest.OpWrite, &vfstest.ShortWrite{N: test.n, Err: syscall.ENOSPC})
		n, err := file.Write([]byte("abcdef"))
		if n != test.written || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("short write of %d: %d, %v", test.n, n, err)
		}
		if got := d.read("file"); got != "abcdef"[:test.written] {
			t.Errorf("short write of %d: content %q", test.n, got)
		}
	}
	err := &vfstest.ShortWrite{N: 3, Err: errFault}
	if got := err.Error(); got != "short write of 3 bytes: fault" {
		t.Error(got)
	}
}

func TestShortWriteOfClosedFile(t *testing.T) {
	t.Parallel()
	d, f := newFaultyDisk(t)
	file := d.write("file", "")
	f.Before = vfstest.FailAt(1, vfstest.OpWrite, &vfstest.ShortWrite{N: 3, Err: errFault})
	file.Close()
	if n, err := file.Write([]byte("abc")); n != 0 || !errors.Is(err, os.ErrClosed) {
		t.Errorf("Write = %d, %v", n, err)
	}
}

func TestOpKind(t *testing.T) {
	t.Parallel()
	for kind, want := range map[vfstest.OpKind]string{
		vfstest.OpOpen: "open", vfstest.OpClose: "close", vfstest.OpSyncDir: "syncdir",
		0: "OpKind(0x0)", vfstest.OpOpen | vfstest.OpCreate: "OpKind(0x3)", 1 << 15: "OpKind(0x8000)",
	} {
		if got := kind.String(); got != want {
			t.Errorf("String of %#x = %q, want %q", uint16(kind), got, want)
		}
	}
	for _, kind := range []vfstest.OpKind{vfstest.OpOpen, vfstest.OpRead, vfstest.OpStat, vfstest.OpLock, vfstest.OpUnlock, vfstest.OpClose} {
		if kind.Mutates() {
			t.Errorf("%v mutates", kind)
		}
	}
	for _, kind := range []vfstest.OpKind{vfstest.OpCreate, vfstest.OpMkdir, vfstest.OpWrite, vfstest.OpSync, vfstest.OpSyncDir} {
		if !kind.Mutates() {
			t.Errorf("%v does not mutate", kind)
		}
	}
}
