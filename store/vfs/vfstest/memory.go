package vfstest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coppice-dev/coppice/store/vfs"
)

// Memory is a file system in memory that knows which of its content would
// survive a power cut; see CrashClone. It has no symbolic links, a relative
// name means the same as from the root, and permissions are recorded but not
// enforced. Make one with NewMemory.
type Memory struct {
	mu   sync.Mutex // guards all fields, nodes and open files of this Memory
	root *node
	// pending has the changes of directories that no SyncDir has covered, in
	// the order in which they were made.
	pending []dirChange
}

var (
	_ vfs.FS   = (*Memory)(nil)
	_ vfs.File = (*memoryFile)(nil)
)

// NewMemory returns a file system that has only its root directory.
func NewMemory() *Memory {
	return &Memory{root: newNode(fs.ModeDir | 0o755)}
}

// node is a directory or a file. A directory has one name.
type node struct {
	mode     fs.FileMode
	modified time.Time

	entries []entry // of a directory, sorted by name

	content               // of a file
	holder  *memoryFile   // who has the file's exclusive lock
	sharers []*memoryFile // who has a shared lock
}

type entry struct {
	name string
	node *node
}

// dirChange is one creation, renaming or removal: what happens at once.
type dirChange struct {
	edits []edit // one, or two for a rename
	// barrier orders the removal or renaming of a directory after all changes
	// before it and before the unsynced ones after it, so that no crash can
	// leave a directory inside itself, or a file in a directory that is gone.
	barrier bool
}

// edit says that a name led to one node and then to another; nil means none.
type edit struct {
	dir      *node
	name     string
	old, new *node
}

func newNode(mode fs.FileMode) *node {
	return &node{mode: mode, modified: time.Now()}
}

func compareName(e entry, name string) int { return strings.Compare(e.name, name) }

// child returns the node of a name, or nil.
func (n *node) child(name string) *node {
	i, found := slices.BinarySearchFunc(n.entries, name, compareName)
	if !found {
		return nil
	}
	return n.entries[i].node
}

// bind makes a name in a sorted list lead to a node, or to nothing if nil.
func bind(entries []entry, name string, to *node) []entry {
	i, found := slices.BinarySearchFunc(entries, name, compareName)
	switch {
	case to == nil && found:
		return slices.Delete(entries, i, i+1)
	case to == nil:
		return entries
	case found:
		entries[i].node = to
		return entries
	}
	return slices.Insert(entries, i, entry{name, to})
}

// change applies the edits and remembers them until a SyncDir. The caller
// holds mu.
func (m *Memory) change(barrier bool, edits ...edit) {
	for i := range edits {
		e := &edits[i]
		e.old = e.dir.child(e.name)
		e.dir.entries = bind(e.dir.entries, e.name, e.new)
		e.dir.modified = time.Now()
	}
	m.pending = append(m.pending, dirChange{edits, barrier})
}

// clean returns a name as elements separated by one separator each, without
// a leading one. The root is "".
func clean(name string) string {
	return filepath.Clean(string(filepath.Separator) + name)[1:]
}

// find returns the node of a name. The caller holds mu.
func (m *Memory) find(name string) (*node, error) {
	if name == "" {
		return nil, syscall.ENOENT
	}
	n, rest := m.root, clean(name)
	for rest != "" {
		var element string
		element, rest, _ = strings.Cut(rest, string(filepath.Separator))
		if !n.mode.IsDir() {
			return nil, syscall.ENOTDIR
		}
		if n = n.child(element); n == nil {
			return nil, syscall.ENOENT
		}
	}
	return n, nil
}

// findParent returns the directory that has, or would have, a name. The caller
// holds mu.
func (m *Memory) findParent(name string) (dir *node, base string, err error) {
	if name == "" {
		return nil, "", syscall.ENOENT
	}
	full := clean(name)
	if full == "" {
		return nil, "", syscall.EINVAL // the root has no parent
	}
	parent, base := filepath.Split(full)
	dir, err = m.find(string(filepath.Separator) + parent)
	if err == nil && !dir.mode.IsDir() {
		err = syscall.ENOTDIR
	}
	return dir, base, err
}

// OpenFile implements FS.
func (m *Memory) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.open(name, flag, perm)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &memoryFile{m: m, n: n, name: name, flag: flag}, nil
}

func (m *Memory) open(name string, flag int, perm fs.FileMode) (*node, error) {
	dir, base, err := m.findParent(name)
	if err != nil {
		return nil, err
	}
	n := dir.child(base)
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, syscall.ENOENT
	case n == nil:
		n = newNode(perm.Perm())
		m.change(false, edit{dir: dir, name: base, new: n})
		return n, nil
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return nil, syscall.EEXIST
	case n.mode.IsDir():
		return nil, syscall.EISDIR
	}
	if flag&os.O_TRUNC != 0 {
		n.truncate(0)
	}
	return n, nil
}

// MkdirAll implements FS.
func (m *Memory) MkdirAll(name string, perm fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "" {
		return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOENT}
	}
	n := m.root
	for element := range strings.SplitSeq(clean(name), string(filepath.Separator)) {
		if element == "" { // the root itself
			break
		}
		next := n.child(element)
		if next == nil {
			next = newNode(fs.ModeDir | perm.Perm())
			m.change(false, edit{dir: n, name: element, new: next})
		}
		if !next.mode.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
		}
		n = next
	}
	return nil
}

// Rename implements FS. It can move a directory too, but not replace one.
func (m *Memory) Rename(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.rename(oldname, newname); err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	return nil
}

func (m *Memory) rename(oldname, newname string) error {
	from, oldbase, err := m.findParent(oldname)
	if err != nil {
		return err
	}
	n := from.child(oldbase)
	if n == nil {
		return syscall.ENOENT
	}
	to, newbase, err := m.findParent(newname)
	if err != nil {
		return err
	}
	replaced := to.child(newbase)
	switch {
	case replaced == n:
		return nil
	case replaced != nil && replaced.mode.IsDir():
		return syscall.EEXIST
	case replaced != nil && n.mode.IsDir():
		return syscall.ENOTDIR
	case n.mode.IsDir() && within(clean(newname), clean(oldname)):
		return syscall.EINVAL
	}
	m.change(n.mode.IsDir(), edit{dir: from, name: oldbase}, edit{dir: to, name: newbase, new: n})
	return nil
}

func within(name, dir string) bool {
	return strings.HasPrefix(name, dir+string(filepath.Separator))
}

// Link implements FS.
func (m *Memory) Link(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.link(oldname, newname); err != nil {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: err}
	}
	return nil
}

func (m *Memory) link(oldname, newname string) error {
	n, err := m.find(oldname)
	if err != nil {
		return err
	}
	to, base, err := m.findParent(newname)
	switch {
	case err != nil:
		return err
	case to.child(base) != nil:
		return syscall.EEXIST
	case n.mode.IsDir():
		return syscall.EPERM
	}
	m.change(false, edit{dir: to, name: base, new: n})
	return nil
}

// Remove implements FS.
func (m *Memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.remove(name); err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

func (m *Memory) remove(name string) error {
	dir, base, err := m.findParent(name)
	if err != nil {
		return err
	}
	n := dir.child(base)
	switch {
	case n == nil:
		return syscall.ENOENT
	case len(n.entries) > 0:
		return syscall.ENOTEMPTY
	}
	m.change(n.mode.IsDir(), edit{dir: dir, name: base})
	return nil
}

// ReadDir implements FS.
func (m *Memory) ReadDir(name string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, err := m.find(name)
	if err == nil && !dir.mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	list := make([]fs.DirEntry, len(dir.entries))
	for i, e := range dir.entries {
		list[i] = fs.FileInfoToDirEntry(e.node.info(e.name))
	}
	return list, nil
}

// Lstat implements FS.
func (m *Memory) Lstat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	return n.info(filepath.Base(name)), nil
}

// Stat implements FS.
func (m *Memory) Stat(name string) (vfs.Stat, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err != nil {
		return vfs.Stat{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return n.stat(), nil
}

// Chtimes implements FS.
func (m *Memory) Chtimes(name string, modified time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err != nil {
		return &fs.PathError{Op: "chtimes", Path: name, Err: err}
	}
	n.modified = modified
	return nil
}

// Chmod implements FS.
func (m *Memory) Chmod(name string, mode fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if err != nil {
		return &fs.PathError{Op: "chmod", Path: name, Err: err}
	}
	n.mode = n.mode.Type() | mode.Perm()
	return nil
}

// SyncDir implements FS.
func (m *Memory) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, err := m.find(name)
	if err == nil && !dir.mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	m.makeDurable(dir)
	return nil
}

// info is a node as it was when Lstat or ReadDir looked at it.
type info struct {
	name     string
	size     int64
	mode     fs.FileMode
	modified time.Time
}

func (n *node) info(name string) fs.FileInfo {
	return info{name, int64(len(n.data)), n.mode, n.modified}
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.modified }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
