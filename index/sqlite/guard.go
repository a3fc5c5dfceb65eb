package sqlite

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// guard is the lock of an index, and the mark in it.
type guard struct {
	path string // of the lock file

	// mu guards what follows. It is held while waiting for the lock: the other
	// goroutines of this index would have to wait as well.
	mu    gate.Mutex
	file  vfs.File
	users int // how many callers of this index have the lock
	// patience is how long to wait for the lock. If the wait fails, the guard is stuck: from
	// then on it tries once without waiting, because the holder may hang for good.
	patience time.Duration
	stuck    bool
}

func newGuard(path string) *guard {
	return &guard{path: path + lockSuffix, patience: busyMillis * time.Millisecond}
}

// hold calls f with the lock. Within f it may be called again: opening a
// connection takes the lock, and a writer may have to.
func (g *guard) hold(ctx context.Context, f func() error) error {
	if err := g.mu.LockContext(ctx); err != nil {
		return err
	}
	if g.users == 0 {
		if err := g.acquire(ctx); err != nil {
			g.mu.Unlock()
			return err
		}
	}
	g.users++
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.users--; g.users == 0 && g.file.Unlock() != nil {
			g.close()
		}
	}()
	return f()
}

// acquire waits for the lock. A deleted lock file locks nothing; then it takes the new one.
func (g *guard) acquire(ctx context.Context) error {
	deadline := time.Now().Add(g.patience)
	if g.stuck {
		deadline = time.Now()
	}
	for pause := 50 * time.Microsecond; ; {
		if g.file == nil {
			f, err := g.open()
			if err != nil {
				return err
			}
			g.file = f
		}
		ok, err := g.file.TryLock()
		if err == nil && ok {
			var named bool
			if named, err = vfs.HasName(vfs.OS{}, g.file, g.path); err == nil && named {
				g.stuck = false
				return nil
			}
		}
		if err != nil || ok {
			g.close()
		}
		switch {
		case err != nil:
			return err
		case ok:
			continue
		case !time.Now().Before(deadline):
			g.stuck = true
			return &store.Error{
				Op: "lock index", Path: g.path, Kind: store.ErrLocked,
				Err:  errors.New("another process holds the lock of the index"),
				Hint: "that process seems to be stuck; end it if it is yours",
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, 5*time.Millisecond)
	}
}

// open opens the lock file. It recreates a deleted directory, but not the one above it: a
// store that was moved away must not come back as an empty one.
func (g *guard) open() (vfs.File, error) {
	disk := vfs.OS{KeepOwner: true}
	f, err := disk.OpenFile(g.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	dir := filepath.Dir(g.path)
	if _, noParent := os.Lstat(filepath.Dir(dir)); !errors.Is(err, fs.ErrNotExist) || noParent != nil {
		return f, err
	}
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return disk.OpenFile(g.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
}

func (g *guard) close() {
	if g.file != nil {
		g.file.Close()
		g.file = nil
	}
}

// guardMark is the mark.
const guardMark = "in use\n"

// read returns what the lock file says: how many changes the database had when it was last
// closed, or 0 if that is not known, and whether some changes may be only in the -wal. Like
// mark and unmark it needs the lock.
func (g *guard) read() (changes int64, marked bool, err error) {
	data := make([]byte, 64)
	n, err := g.file.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, false, err
	}
	said, marked := strings.CutSuffix(string(data[:n]), guardMark)
	changes, err = strconv.ParseInt(strings.TrimSpace(said), 10, 64)
	if err != nil {
		return 0, n > 0, nil // it is empty, or not ours
	}
	return changes, marked, nil
}

func (g *guard) mark() error {
	if _, marked, err := g.read(); marked || err != nil {
		return err
	}
	_, err := g.file.Write([]byte(guardMark))
	return err
}

// unmark removes the mark and records how many changes the database has had.
func (g *guard) unmark(changes int64) error {
	err := g.file.Truncate(0)
	if err == nil && changes > 0 {
		_, err = g.file.Write(append(strconv.AppendInt(nil, changes, 10), '\n'))
	}
	return err
}
