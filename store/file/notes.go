package file

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// notes is a room of the housekeeping directory for notes. Rooms with other content cannot
// hold notes.
type notes struct {
	store *Store
	room  string
}

// Notes implements store.Store.
func (s *Store) Notes(room string) store.Notes { return &notes{s, room} }

func (n *notes) path(name string) string { return n.store.housePath(n.room, name) }

// Read returns a note, or store.ErrNotExist.
func (n *notes) Read(ctx context.Context, name string) ([]byte, error) {
	if err := n.check(ctx, name); err != nil {
		return nil, err
	}
	data, err := readFile(n.store.fs, n.path(name))
	return data, n.fail("read note", name, err)
}

// List returns the notes of the room, sorted by name.
func (n *notes) List(ctx context.Context) ([]store.Note, error) {
	if err := n.check(ctx, "list"); err != nil {
		return nil, err
	}
	entries, err := n.store.fs.ReadDir(n.path(""))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []store.Note
	for _, e := range entries {
		info, infoErr := e.Info()
		if infoErr != nil || !info.Mode().IsRegular() {
			continue // removed in the meantime, or not a note
		}
		all = append(all, store.Note{Name: e.Name(), Size: info.Size(), Modified: info.ModTime()})
	}
	return all, n.fail("list notes", "", err)
}

// Write creates or replaces a note. The note is durable when Write returns, unless the store
// has Sync: Never.
func (n *notes) Write(ctx context.Context, name string, data []byte) error {
	if err := n.check(ctx, name); err != nil {
		return err
	}
	return n.write(name, func() error { return n.store.publish(n.path(name), vfs.Data(data)) })
}

// write recreates the room if it was deleted: its notes are lost already.
func (n *notes) write(name string, write func() error) error {
	return n.fail("write note", name, n.store.again(write))
}

// Change replaces a note by the result of change, which gets the old note, or nil if there is
// none. No other Change of a note of this store runs at the same time, in any process.
func (n *notes) Change(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	if err := n.check(ctx, name); err != nil {
		return err
	}
	lock, err := n.store.lockName(ctx, notesLock)
	if err != nil {
		return n.fail("change note", name, err)
	}
	defer lock.release()
	old, err := n.Read(ctx, name)
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return err
	}
	changed, err := change(old)
	if err != nil {
		return err
	}
	return n.Write(ctx, name, changed)
}

// notesLock is the lock of all notes. It is not among the locks of logs, where any name may
// belong to a log.
const notesLock = "../notes"

// WriteHint is Write for notes that can be recomputed: it syncs nothing. After a power cut
// the note may be gone, old or damaged.
func (n *notes) WriteHint(ctx context.Context, name string, data []byte) error {
	if err := n.check(ctx, name); err != nil {
		return err
	}
	return n.write(name, func() error {
		for _, dir := range []string{n.store.housePath("tmp"), filepath.Dir(n.path(name))} {
			if err := n.store.mkdir(dir); err != nil {
				return err
			}
		}
		how := vfs.Replacement{Perm: filePerm, Temp: n.store.temp(), NoSync: true}
		return vfs.Replace(n.store.fs, n.path(name), how, vfs.Data(data))
	})
}

// Remove deletes a note, durably. A missing note is not an error.
func (n *notes) Remove(ctx context.Context, name string) error {
	if err := n.check(ctx, name); err != nil {
		return err
	}
	return n.fail("remove note", name, n.store.discard(n.path(name)))
}

func (n *notes) check(ctx context.Context, name string) error {
	n.store.mu.Lock()
	closed := n.store.closed
	n.store.mu.Unlock()
	if closed {
		return &store.Error{Op: "notes", Path: n.path(""), Kind: store.ErrClosed}
	}
	if err := store.CheckRoom(n.room); err != nil {
		return err
	}
	if err := store.CheckName(name); err != nil {
		return err
	}
	return ctx.Err()
}

func (n *notes) fail(op, name string, err error) error {
	var done *store.Error
	if err == nil || errors.As(err, &done) {
		return err
	}
	e := &store.Error{Op: op, Path: n.path(name), Err: err}
	if errors.Is(err, fs.ErrNotExist) {
		e.Kind = store.ErrNotExist
	}
	return e
}

func readFile(fsys vfs.FS, path string) ([]byte, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, stat.Size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, stat.Size), data); err != nil {
		return nil, err
	}
	return data, nil
}
