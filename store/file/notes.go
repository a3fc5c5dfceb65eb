package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Notes is a room for small documents beside the logs: what a part of the program
// has to remember about the store. Each is there whole or not at all, whatever
// happens to the machine. All methods may be called concurrently.
type Notes struct {
	store *Store
	room  string
}

// Notes returns the notes of a room of the store's house keeping directory. Rooms
// of other content are not for notes.
func (s *Store) Notes(room string) *Notes { return &Notes{s, room} }

// Path returns where a note is or would be.
func (n *Notes) Path(name string) string { return n.store.room(n.room, name) }

// Read returns a note, or store.ErrNotExist.
func (n *Notes) Read(name string) ([]byte, error) {
	if err := n.check(name); err != nil {
		return nil, err
	}
	data, err := readFile(n.store.fs, n.Path(name))
	return data, n.fail("read note", name, err)
}

// Note is a note in a listing.
type Note struct {
	Name     string
	Size     int64
	Modified time.Time
}

// List returns the notes of the room, sorted by name.
func (n *Notes) List() ([]Note, error) {
	entries, err := n.store.fs.ReadDir(n.Path(""))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var notes []Note
	for _, e := range entries {
		info, infoErr := e.Info()
		if infoErr != nil || !info.Mode().IsRegular() {
			continue // removed meanwhile, or no note
		}
		notes = append(notes, Note{e.Name(), info.Size(), info.ModTime()})
	}
	return notes, n.fail("list notes", "", err)
}

// Write makes or replaces a note. It is durable when Write returns, unless the store
// never syncs.
func (n *Notes) Write(name string, data []byte) error {
	if err := n.check(name); err != nil {
		return err
	}
	return n.write(name, func() error { return n.store.publish(n.Path(name), vfs.Data(data)) })
}

// write makes the room again if it was deleted: its notes are lost already.
func (n *Notes) write(name string, write func() error) error {
	return n.fail("write note", name, n.store.again(write))
}

// Change replaces a note by what change returns for it; a missing note is nil. During
// the call no process makes another Change of a note of this store.
func (n *Notes) Change(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	if err := n.check(name); err != nil {
		return err
	}
	lock, err := n.store.lockName(ctx, notesLock)
	if err != nil {
		return n.fail("change note", name, err)
	}
	defer lock.release()
	old, err := n.Read(name)
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return err
	}
	changed, err := change(old)
	if err != nil {
		return err
	}
	return n.Write(name, changed)
}

// notesLock is the lock of all notes. It is not in the room of the logs' locks,
// where any name may be that of a log.
const notesLock = "../notes"

// WriteHint is Write for what can be found out again: it syncs nothing. After a
// power cut the note may be gone, old or damaged.
func (n *Notes) WriteHint(name string, data []byte) error {
	if err := n.check(name); err != nil {
		return err
	}
	return n.write(name, func() error {
		for _, dir := range []string{n.store.room("tmp"), filepath.Dir(n.Path(name))} {
			if err := n.store.mkdir(dir); err != nil {
				return err
			}
		}
		how := vfs.Replacement{Perm: filePerm, Temp: n.store.temp(), NoSync: true}
		return vfs.Replace(n.store.fs, n.Path(name), how, vfs.Data(data))
	})
}

// Remove deletes a note, durably. A missing note is not an error.
func (n *Notes) Remove(name string) error {
	if err := n.check(name); err != nil {
		return err
	}
	return n.fail("remove note", name, n.store.discard(n.Path(name)))
}

func (n *Notes) check(name string) error {
	n.store.mu.Lock()
	closed := n.store.closed
	n.store.mu.Unlock()
	if closed {
		return &store.Error{Op: "notes", Path: n.Path(""), Kind: store.ErrClosed}
	}
	if strings.Trim(name, ".") == "" || name != filepath.Base(name) || strings.ContainsAny(name, `/\:`) {
		return &store.Error{Op: "notes", Path: n.Path(""), Kind: store.ErrInvalid, Err: fmt.Errorf("a note cannot have the name %.80q", name)}
	}
	return nil
}

func (n *Notes) fail(op, name string, err error) error {
	var done *store.Error
	if err == nil || errors.As(err, &done) {
		return err
	}
	e := &store.Error{Op: op, Path: n.Path(name), Err: err}
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
