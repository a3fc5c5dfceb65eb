package vfstest

import (
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"sync/atomic"

	"github.com/coppice-dev/coppice/store/vfs"
)

// OpKind is a kind of operation, or with | a set of kinds.
type OpKind uint16

// The kinds of operations. Each call of a method is one operation.
const (
	OpOpen     OpKind = 1 << iota // OpenFile of what must exist
	OpCreate                      // OpenFile with O_CREATE or O_TRUNC, and Link
	OpMkdir                       // MkdirAll
	OpRename                      // Rename
	OpRemove                      // Remove
	OpWrite                       // File.Write
	OpTruncate                    // File.Truncate
	OpSync                        // File.Sync
	OpSyncDir                     // SyncDir
	OpRead                        // File.ReadAt and ReadDir
	OpStat                        // Stat, File.Stat and Lstat
	OpLock                        // File.TryLock and TryRLock
	OpUnlock                      // File.Unlock
	OpClose                       // File.Close

	// OpMutating is all kinds that change the disk or make a change durable.
	OpMutating = OpCreate | OpMkdir | OpRename | OpRemove | OpWrite | OpTruncate | OpSync | OpSyncDir
	// OpAny is all kinds.
	OpAny = OpClose<<1 - 1
)

var opNames = [...]string{
	"open", "create", "mkdir", "rename", "remove", "write", "truncate",
	"sync", "syncdir", "read", "stat", "lock", "unlock", "close",
}

// Mutates reports whether an operation of this kind changes the disk or makes
// a change durable.
func (k OpKind) Mutates() bool { return k&OpMutating != 0 }

// String returns the name of a single kind.
func (k OpKind) String() string {
	if i := bits.TrailingZeros16(uint16(k)); i < len(opNames) && k == 1<<i {
		return opNames[i]
	}
	return fmt.Sprintf("OpKind(%#x)", uint16(k))
}

// Op is an operation that is about to happen.
type Op struct {
	Kind OpKind
	Name string // of the file or directory; of a rename or a link the old name
	To   string // the new name of a rename or a link
	N    int64  // the running number of the operation in its Faulty, from 1
	Size int    // the bytes to write or read, or the size to truncate to
}

// ShortWrite is an error of Faulty.Before that writes the first N bytes of a Write
// before it fails. For any other operation it is an ordinary error.
type ShortWrite struct {
	N   int
	Err error
}

func (e *ShortWrite) Error() string {
	return fmt.Sprintf("short write of %d bytes: %v", e.N, e.Err)
}

// Unwrap returns Err.
func (e *ShortWrite) Unwrap() error { return e.Err }

// Faulty is an FS that calls Before ahead of each operation on the FS inside.
// If Before returns an error, the operation returns that error and does
// nothing, except that a File is closed even when its Close fails, and that a
// *ShortWrite writes a part. Before may be nil, and must be safe for concurrent use if
// the FS is used concurrently. It may use the FS inside, for example to clone a Memory
// at that moment. A Faulty must not be copied after first use.
type Faulty struct {
	vfs.FS
	Before func(Op) error

	n      atomic.Int64
	counts [len(opNames)]atomic.Int64
}

var (
	_ vfs.FS   = (*Faulty)(nil)
	_ vfs.File = (*faultyFile)(nil)
)

// Notify implements vfs.Notifier, if the FS does.
func (f *Faulty) Notify(dir string, changed func(name string)) (stop func(), err error) {
	if teller, ok := f.FS.(vfs.Notifier); ok {
		return teller.Notify(dir, changed)
	}
	return nil, errors.ErrUnsupported
}

// Count returns how many operations of the given kinds there were so far,
// including those that failed.
func (f *Faulty) Count(kinds OpKind) int64 {
	var sum int64
	for i := range f.counts {
		if kinds&(1<<i) != 0 {
			sum += f.counts[i].Load()
		}
	}
	return sum
}

// FailAt returns a Before that makes the n-th operation of the given kinds,
// counted from 1, fail with err, and no other.
func FailAt(n int64, kinds OpKind, err error) func(Op) error {
	return failIf(kinds, err, func(i int64) bool { return i == n })
}

// FailFrom returns a Before that makes the n-th operation of the given kinds,
// counted from 1, and all later ones of these kinds fail with err.
func FailFrom(n int64, kinds OpKind, err error) func(Op) error {
	return failIf(kinds, err, func(i int64) bool { return i >= n })
}

func failIf(kinds OpKind, err error, fails func(int64) bool) func(Op) error {
	var count atomic.Int64
	return func(op Op) error {
		if op.Kind&kinds != 0 && fails(count.Add(1)) {
			return err
		}
		return nil
	}
}

// before numbers the operation and asks Before.
func (f *Faulty) before(op Op) error {
	op.N = f.n.Add(1)
	f.counts[bits.TrailingZeros16(uint16(op.Kind))].Add(1)
	if f.Before == nil {
		return nil
	}
	return f.Before(op)
}

// OpenFile implements FS.
func (f *Faulty) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	kind := OpOpen
	if flag&(os.O_CREATE|os.O_TRUNC) != 0 {
		kind = OpCreate
	}
	if err := f.before(Op{Kind: kind, Name: name}); err != nil {
		return nil, err
	}
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: file, fs: f, name: name}, nil
}

// MkdirAll implements FS.
func (f *Faulty) MkdirAll(name string, perm fs.FileMode) error {
	if err := f.before(Op{Kind: OpMkdir, Name: name}); err != nil {
		return err
	}
	return f.FS.MkdirAll(name, perm)
}

// Rename implements FS.
func (f *Faulty) Rename(oldname, newname string) error {
	if err := f.before(Op{Kind: OpRename, Name: oldname, To: newname}); err != nil {
		return err
	}
	return f.FS.Rename(oldname, newname)
}

// Link implements FS.
func (f *Faulty) Link(oldname, newname string) error {
	if err := f.before(Op{Kind: OpCreate, Name: oldname, To: newname}); err != nil {
		return err
	}
	return f.FS.Link(oldname, newname)
}

// Remove implements FS.
func (f *Faulty) Remove(name string) error {
	if err := f.before(Op{Kind: OpRemove, Name: name}); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

// ReadDir implements FS.
func (f *Faulty) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.before(Op{Kind: OpRead, Name: name}); err != nil {
		return nil, err
	}
	return f.FS.ReadDir(name)
}

// Lstat implements FS.
func (f *Faulty) Lstat(name string) (fs.FileInfo, error) {
	if err := f.before(Op{Kind: OpStat, Name: name}); err != nil {
		return nil, err
	}
	return f.FS.Lstat(name)
}

// Stat implements FS.
func (f *Faulty) Stat(name string) (vfs.Stat, error) {
	if err := f.before(Op{Kind: OpStat, Name: name}); err != nil {
		return vfs.Stat{}, err
	}
	return f.FS.Stat(name)
}

// SyncDir implements FS.
func (f *Faulty) SyncDir(name string) error {
	if err := f.before(Op{Kind: OpSyncDir, Name: name}); err != nil {
		return err
	}
	return f.FS.SyncDir(name)
}

type faultyFile struct {
	vfs.File
	fs   *Faulty
	name string
}

func (f *faultyFile) before(kind OpKind, size int) error {
	return f.fs.before(Op{Kind: kind, Name: f.name, Size: size})
}

// ReadAt implements File.
func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.before(OpRead, len(p)); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

// Write implements File.
func (f *faultyFile) Write(p []byte) (int, error) {
	err := f.before(OpWrite, len(p))
	if err == nil {
		return f.File.Write(p)
	}
	short, ok := errors.AsType[*ShortWrite](err)
	if !ok {
		return 0, err
	}
	n, writeErr := f.File.Write(p[:min(max(short.N, 0), len(p))])
	if writeErr != nil {
		return n, writeErr
	}
	return n, err
}

// Truncate implements File.
func (f *faultyFile) Truncate(size int64) error {
	if err := f.before(OpTruncate, int(size)); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// Sync implements File.
func (f *faultyFile) Sync() error {
	if err := f.before(OpSync, 0); err != nil {
		return err
	}
	return f.File.Sync()
}

// Stat implements File.
func (f *faultyFile) Stat() (vfs.Stat, error) {
	if err := f.before(OpStat, 0); err != nil {
		return vfs.Stat{}, err
	}
	return f.File.Stat()
}

// TryLock implements File.
func (f *faultyFile) TryLock() (bool, error) {
	if err := f.before(OpLock, 0); err != nil {
		return false, err
	}
	return f.File.TryLock()
}

// TryRLock implements File.
func (f *faultyFile) TryRLock() (bool, error) {
	if err := f.before(OpLock, 0); err != nil {
		return false, err
	}
	return f.File.TryRLock()
}

// Unlock implements File.
func (f *faultyFile) Unlock() error {
	if err := f.before(OpUnlock, 0); err != nil {
		return err
	}
	return f.File.Unlock()
}

// Close implements File.
func (f *faultyFile) Close() error {
	err := f.before(OpClose, 0)
	if closeErr := f.File.Close(); err == nil {
		err = closeErr
	}
	return err
}
