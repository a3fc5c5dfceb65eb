package home

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/vfs"
)

// temporary is a directory for an index that has no other place. A process that is killed
// leaves it behind, with the words of all sessions. So it has a lock, which the system
// releases when the process ends, and the next process deletes it.
type temporary struct {
	dir  string
	lock vfs.File
}

const (
	temporaryPrefix = "coppice-index-"
	temporaryLock   = "lock"
	temporaryOf     = "of" // has the directory of the sessions
	// abandonedAfter is how old a directory without a lock is before it counts as
	// abandoned: a process may be about to lock it.
	abandonedAfter = time.Hour
)

// newTemporary makes one for an index of the sessions in a directory. Until it is locked,
// another process that sweeps may take it for abandoned and delete it; then newTemporary
// makes another.
func newTemporary(sessions string) (*temporary, error) {
	for tries := 0; ; tries++ {
		t, err := tryTemporary(sessions)
		if err == nil || !errors.Is(err, errSwept) && !errors.Is(err, fs.ErrNotExist) || tries == 10 {
			return t, err
		}
	}
}

var errSwept = errors.New("another process deleted the temporary directory")

func tryTemporary(sessions string) (*temporary, error) {
	dir, err := os.MkdirTemp("", temporaryPrefix)
	if err != nil {
		return nil, err
	}
	t := &temporary{dir: dir}
	t.lock, err = vfs.OS{}.OpenFile(filepath.Join(dir, temporaryLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		var ours bool
		if ours, err = t.lock.TryLock(); err == nil && !ours {
			err = errSwept
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, temporaryOf), []byte(sessions), 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, t.remove())
	}
	return t, nil
}

// remove deletes the directory while it is locked; otherwise another process could begin to
// use it. Windows does not delete open files, so remove tries again after unlocking.
func (t *temporary) remove() (err error) {
	left := os.RemoveAll(t.dir)
	if t.lock != nil {
		err = t.lock.Close()
	}
	if left != nil {
		left = os.RemoveAll(t.dir)
	}
	return errors.Join(err, left)
}

// sweepTemporary deletes what killed processes of this user left behind. It returns what
// remains that may be an index of the sessions in a directory.
func sweepTemporary(sessions string) (left []clean.Left) {
	entries, _ := os.ReadDir(os.TempDir())
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), temporaryPrefix) {
			continue
		}
		t := &temporary{dir: filepath.Join(os.TempDir(), e.Name())}
		if t.isAbandoned() {
			if err := t.remove(); err != nil {
				left = append(left, clean.Left{Path: t.dir, Why: err.Error()})
			}
		} else if t.isOf(sessions) {
			left = append(left, clean.Left{Path: t.dir, Why: "the index of a program that is running: it changes when it is used next, and goes when the program ends"})
		}
	}
	return left
}

// isOf reports whether it belongs to the sessions in a directory, whatever path leads there.
func (t *temporary) isOf(sessions string) bool {
	path, err := vfs.ReadFile(filepath.Join(t.dir, temporaryOf), vfs.SmallFile)
	if err != nil {
		return false
	}
	theirs, err := os.Stat(string(path))
	if err != nil {
		return false
	}
	ours, err := os.Stat(sessions)
	return err == nil && os.SameFile(theirs, ours)
}

func (t *temporary) isAbandoned() (yes bool) {
	var err error
	t.lock, err = vfs.OS{}.OpenFile(filepath.Join(t.dir, temporaryLock), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		t.lock = nil
		info, err := os.Stat(t.dir)
		return err == nil && time.Since(info.ModTime()) > abandonedAfter
	}
	if err != nil {
		t.lock = nil
		return false
	}
	free, err := t.lock.TryLock()
	if !free || err != nil {
		_ = t.lock.Close()
	}
	return free && err == nil
}
