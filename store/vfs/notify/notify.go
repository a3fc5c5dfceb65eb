// Package notify has the operating system tell of changes in directories. Give a New to
// vfs.OS.Notices.
package notify

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"

	"github.com/coppice-dev/coppice/store/vfs"
)

// Notices is a vfs.Notifier. It has one connection to the operating system, of which a user may
// have few, and only as long as there are listeners. All methods may be called concurrently.
type Notices struct {
	mu   sync.Mutex // guards what follows
	from *fsnotify.Watcher
	dirs map[string]map[*listener]bool
}

// listener is one call of Notify. Its address is what identifies it.
type listener struct{ changed func(name string) }

var _ vfs.Notifier = (*Notices)(nil)

// New returns what tells of changes. It does nothing until it is asked to.
func New() *Notices { return &Notices{dirs: make(map[string]map[*listener]bool)} }

// Notify implements vfs.Notifier. Directories are watched, not files: there may be few watches.
func (n *Notices) Notify(dir string, changed func(name string)) (stop func(), err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err := canTell(dir); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.from == nil {
		if n.from, err = fsnotify.NewWatcher(); err != nil {
			return nil, fmt.Errorf("no notices of changes can be had: %w", err)
		}
		go n.run(n.from)
	}
	if n.dirs[dir] == nil {
		if err := n.from.Add(dir); err != nil {
			n.closeIdle()
			return nil, fmt.Errorf("no notices of changes can be had of %s: %w", dir, err)
		}
		n.dirs[dir] = make(map[*listener]bool)
	}
	l := &listener{changed}
	n.dirs[dir][l] = true
	return func() { n.stop(dir, l) }, nil
}

func (n *Notices) stop(dir string, l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.dirs[dir][l] {
		return // the directory is gone, and perhaps watched again by others
	}
	if delete(n.dirs[dir], l); len(n.dirs[dir]) == 0 {
		delete(n.dirs, dir)
		_ = n.from.Remove(dir)
	}
	n.closeIdle()
}

// closeIdle gives the connection back if there are no listeners. The caller holds the mutex.
func (n *Notices) closeIdle() {
	if len(n.dirs) == 0 {
		_ = n.from.Close()
		n.from = nil
	}
}

// run passes on what the operating system tells, until the connection is closed. It calls nobody
// with the mutex held.
func (n *Notices) run(from *fsnotify.Watcher) {
	for {
		select {
		case e, ok := <-from.Events:
			if !ok {
				return
			}
			n.pass(from, e)
		case err, ok := <-from.Errors:
			if !ok {
				return
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				n.lost(from)
			}
		}
	}
}

func (n *Notices) pass(from *fsnotify.Watcher, e fsnotify.Event) {
	n.mu.Lock()
	var listeners []*listener
	name := filepath.Base(e.Name)
	switch {
	case n.from != from: // everybody has left
	case n.dirs[e.Name] != nil && e.Has(fsnotify.Remove|fsnotify.Rename):
		listeners, name = slices.Collect(maps.Keys(n.dirs[e.Name])), ""
		delete(n.dirs, e.Name)
		_ = from.Remove(e.Name) // of a directory that was renamed, it would still tell
		n.closeIdle()
	default:
		listeners = slices.Collect(maps.Keys(n.dirs[filepath.Dir(e.Name)]))
	}
	n.mu.Unlock()
	for _, l := range listeners {
		l.changed(name)
	}
}

// lost says that anything may have changed.
func (n *Notices) lost(from *fsnotify.Watcher) {
	n.mu.Lock()
	var listeners []*listener
	if n.from == from {
		for _, all := range n.dirs {
			listeners = slices.AppendSeq(listeners, maps.Keys(all))
		}
	}
	n.mu.Unlock()
	for _, l := range listeners {
		l.changed("")
	}
}

// errElsewhere is why there are no notices of a directory that other machines write, too.
var errElsewhere = errors.New("other machines may write to this file system, and nobody tells of that")
