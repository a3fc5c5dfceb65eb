package vfstest

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"syscall"
	"time"

	"github.com/coppice-dev/coppice/store/vfs"
)

// content is the bytes of a file: those that programs see, and those that are durable.
type content struct {
	data    []byte
	synced  []byte        // what the last Sync saw; never modified in place
	changes []contentEdit // made since then, in order
	// frozen is how far the array of data may be shared with synced slices, of
	// this file or of a clone. Changing a byte before it needs a new array.
	// Sharing makes Sync and CrashClone free of copying.
	frozen int
}

// contentEdit is a write of data at an offset, or a truncation to it.
type contentEdit struct {
	off      int64
	data     []byte
	truncate bool
}

// durableContent returns content that is all durable. The bytes must not change
// afterwards.
func durableContent(b []byte) content {
	b = slices.Clip(b)
	return content{data: b, synced: b, frozen: len(b)}
}

// reach makes bytes from start on safe to change, and extends the data with
// NULs to at least size.
func (c *content) reach(start, size int64) {
	if min(start, int64(len(c.data))) < int64(c.frozen) {
		c.data, c.frozen = slices.Clone(c.data), 0
	}
	c.data = extend(c.data, size)
}

func extend(b []byte, size int64) []byte {
	if missing := size - int64(len(b)); missing > 0 {
		b = append(b, make([]byte, missing)...)
	}
	return b
}

func (c *content) sync() {
	c.synced, c.changes = slices.Clip(c.data), nil
	c.frozen = max(c.frozen, len(c.data))
}

func (n *node) write(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	n.reach(off, off)
	overlap := copy(n.data[off:], p)
	n.data = append(n.data, p[overlap:]...)
	n.changes = append(n.changes, contentEdit{off: off, data: bytes.Clone(p)})
	n.modified = time.Now()
}

func (n *node) truncate(size int64) {
	if size <= int64(len(n.data)) {
		n.data = n.data[:size]
	} else {
		n.reach(int64(len(n.data)), size)
	}
	n.changes = append(n.changes, contentEdit{off: size, truncate: true})
	n.modified = time.Now()
}

// memoryFile is an open file of a Memory, whose mutex guards it.
type memoryFile struct {
	m      *Memory
	n      *node
	name   string
	flag   int
	off    int64 // where the next Write goes without O_APPEND
	closed bool
}

const accessMode = os.O_RDONLY | os.O_WRONLY | os.O_RDWR

func (f *memoryFile) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

// begin locks the file system for a call on an open file; the caller unlocks
// it if there is no error.
func (f *memoryFile) begin(op string) error {
	f.m.mu.Lock()
	if f.closed {
		f.m.mu.Unlock()
		return f.fail(op, fs.ErrClosed)
	}
	return nil
}

// ReadAt implements File.
func (f *memoryFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.begin("read"); err != nil {
		return 0, err
	}
	defer f.m.mu.Unlock()
	switch {
	case f.flag&accessMode == os.O_WRONLY:
		return 0, f.fail("read", syscall.EBADF)
	case off < 0:
		return 0, f.fail("read", syscall.EINVAL)
	case len(p) == 0:
		return 0, nil
	case off >= int64(len(f.n.data)):
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Write implements File.
func (f *memoryFile) Write(p []byte) (int, error) {
	if err := f.begin("write"); err != nil {
		return 0, err
	}
	defer f.m.mu.Unlock()
	if f.flag&accessMode == os.O_RDONLY {
		return 0, f.fail("write", syscall.EBADF)
	}
	if f.flag&os.O_APPEND != 0 {
		f.off = int64(len(f.n.data))
	}
	f.n.write(p, f.off)
	f.off += int64(len(p))
	return len(p), nil
}

// Truncate implements File.
func (f *memoryFile) Truncate(size int64) error {
	if err := f.begin("truncate"); err != nil {
		return err
	}
	defer f.m.mu.Unlock()
	if f.flag&accessMode == os.O_RDONLY || size < 0 {
		return f.fail("truncate", syscall.EINVAL)
	}
	f.n.truncate(size)
	return nil
}

// Sync implements File.
func (f *memoryFile) Sync() error {
	if err := f.begin("sync"); err != nil {
		return err
	}
	defer f.m.mu.Unlock()
	f.n.sync()
	return nil
}

// Stat implements File.
func (f *memoryFile) Stat() (vfs.Stat, error) {
	if err := f.begin("stat"); err != nil {
		return vfs.Stat{}, err
	}
	defer f.m.mu.Unlock()
	return f.n.stat(), nil
}

func (n *node) stat() vfs.Stat {
	return vfs.Stat{Size: int64(len(n.data)), File: vfs.FileID{File: uint64(reflect.ValueOf(n).Pointer())}}
}

// TryLock implements File.
func (f *memoryFile) TryLock() (bool, error) {
	if err := f.begin("lock"); err != nil {
		return false, err
	}
	defer f.m.mu.Unlock()
	if slices.Contains(f.n.sharers, f) {
		return false, f.fail("lock", fs.ErrInvalid)
	}
	if f.n.holder == nil && len(f.n.sharers) == 0 {
		f.n.holder = f
	}
	return f.n.holder == f, nil
}

// TryRLock implements File.
func (f *memoryFile) TryRLock() (bool, error) {
	if err := f.begin("lock"); err != nil {
		return false, err
	}
	defer f.m.mu.Unlock()
	switch {
	case f.n.holder == f:
		return false, f.fail("lock", fs.ErrInvalid)
	case f.n.holder != nil:
		return false, nil
	case !slices.Contains(f.n.sharers, f):
		f.n.sharers = append(f.n.sharers, f)
	}
	return true, nil
}

// Unlock implements File.
func (f *memoryFile) Unlock() error {
	if err := f.begin("unlock"); err != nil {
		return err
	}
	defer f.m.mu.Unlock()
	f.unlock()
	return nil
}

func (f *memoryFile) unlock() {
	if f.n.holder == f {
		f.n.holder = nil
	}
	f.n.sharers = slices.DeleteFunc(f.n.sharers, func(other *memoryFile) bool { return other == f })
}

// Close implements File.
func (f *memoryFile) Close() error {
	if err := f.begin("close"); err != nil {
		return err
	}
	defer f.m.mu.Unlock()
	f.unlock()
	f.closed = true
	return nil
}
