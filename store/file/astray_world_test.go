//go:build unix

package file_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// astrayWorld does to the files of a store what people and programs do.
type astrayWorld struct {
	top, dir string // dir is the store, top has also what is beside it
	store    *file.Store
	rand     *rand.Rand
	changes  map[string][]astrayChange // by log, in their order
	copies   map[string][]string       // by log, older copies of its file
	done     map[string]int
	latest   []string
	files    int
}

func newAstrayWorld(t *testing.T, rng *rand.Rand) *astrayWorld {
	t.Helper()
	top, err := os.MkdirTemp("", "astray")
	must(t, err)
	w := &astrayWorld{
		top: top, dir: filepath.Join(top, "sessions"),
		rand:    rng,
		changes: make(map[string][]astrayChange), copies: make(map[string][]string), done: make(map[string]int),
	}
	w.store, err = file.Open(w.dir, &file.Options{Sync: file.Never})
	must(t, err)
	t.Cleanup(func() { w.store.Close() })
	for _, name := range astrayLogs {
		w.create(t, name)
	}
	return w
}

// create makes a log with a header that no other log has.
func (w *astrayWorld) create(t *testing.T, name string) {
	t.Helper()
	w.files++
	log, err := w.store.Create(t.Context(), name, store.Lines(fmt.Appendf(nil, `{"header":"%s","made":%d,"say":"hello"}`, name, w.files)))
	must(t, err)
	must(t, log.Close())
}

// content returns the lines of a log by their ids, and how often each is there.
func (w *astrayWorld) content(t *testing.T, name string) map[string]int {
	t.Helper()
	log, err := w.store.Open(t.Context(), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	must(t, err)
	defer log.Close()
	var all [][]byte
	for line, err := range log.Forward(t.Context(), 0) {
		must(t, err)
		all = append(all, bytes.Clone(line.Data))
	}
	return idsOf(all)
}

func idsOf(lines [][]byte) map[string]int {
	ids := make(map[string]int)
	for _, line := range lines {
		var l astrayLine
		if json.Unmarshal(line, &l) == nil && l.ID != "" {
			ids[l.ID]++
		}
	}
	return ids
}

// idsIn returns the ids of the lines in a file.
func idsIn(t *testing.T, path string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return idsOf(bytes.Split(data, []byte("\n")))
}

// meddle does something to one log, or to all.
func (w *astrayWorld) meddle(t *testing.T) {
	t.Helper()
	all := []struct {
		what string
		do   func(t *testing.T, what, name string)
	}{
		{"link, archive", w.archive},
		{"link, archive, unarchive", w.unarchive},
		{"link, redact", w.redact},
		{"link, repair", w.repair},
		{"link, remove, restore", w.removeAndRestore},
		{"link, remove, create", w.removeAndCreate},
		{"move away and back", w.moveAwayAndBack},
		{"sed -i", w.edit},
		{"sed -i.bak", w.editWithBackup},
		{"copy", w.copy},
		{"restore an older copy", w.restoreCopy},
		{"restore an older copy in place", w.restoreCopyInPlace},
		{"delete and create", w.deleteAndCreate},
		{"move the directory away and back", w.moveDirectory},
		{"replace the directory by a copy", w.replaceDirectory},
		{"delete the lock file", w.deleteLock},
		{"replace by a symbolic link", w.symlink},
	}
	one := all[w.rand.IntN(len(all))]
	name := astrayLogs[w.rand.IntN(len(astrayLogs))]
	w.latest = append(w.latest, fmt.Sprintf("%s: %s at %s", name, one.what, time.Now().Format("05.000000")))
	one.do(t, one.what, name)
	w.done[one.what]++
}

// again repeats what the store says cannot be found: a writer whose lock file was
// deleted in the middle of an append may be bringing the log back from its archive.
func again(do func() error) error {
	err := do()
	for start := time.Now(); errors.Is(err, store.ErrNotExist) && time.Since(start) < time.Minute; {
		time.Sleep(time.Millisecond)
		err = do()
	}
	return err
}

func (w *astrayWorld) pause() { time.Sleep(time.Duration(w.rand.IntN(3_000)) * time.Microsecond) }

// beside returns a new path beside the store.
func (w *astrayWorld) beside(name string) string {
	w.files++
	return filepath.Join(w.top, fmt.Sprintf("%s-%d", name, w.files))
}

// change notes a change of what is at a log's path. do makes it, and returns what
// is there then; it is given what was there.
func (w *astrayWorld) change(t *testing.T, what, name string, locked bool, do func(before map[string]int) (after map[string]int)) {
	t.Helper()
	c := astrayChange{what: what, start: time.Now().UnixNano(), locked: locked}
	c.before = w.content(t, name)
	c.after = do(c.before)
	c.end = time.Now().UnixNano()
	w.changes[name] = append(w.changes[name], c)
}

// link makes a hard link of the log, and of its lock, as cp -al does.
func (w *astrayWorld) link(t *testing.T, name string) {
	t.Helper()
	if w.rand.IntN(4) == 0 {
		return
	}
	for _, path := range []string{w.store.Path(name), w.lockPath(name)} {
		// A log that is archived has no file, one that nobody wrote to has no lock.
		if err := os.Link(path, w.beside("link")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func (w *astrayWorld) lockPath(name string) string {
	return filepath.Join(w.dir, ".coppice", "locks", name+".lock")
}

// What the store does needs no note as long as it keeps every line: an append
// comes before or after it, and is there in any case.

func (w *astrayWorld) archive(t *testing.T, _, name string) {
	w.link(t, name)
	err := again(func() error { return w.store.Archive(t.Context(), name) })
	if !errors.Is(err, store.ErrConflict) { // a writer of a copy of the directory was at work: it is not archived
		must(t, err)
	}
}

func (w *astrayWorld) unarchive(t *testing.T, what, name string) {
	w.archive(t, what, name)
	w.pause()
	must(t, again(func() error { return w.store.Unarchive(t.Context(), name) }))
}

// redact replaces the log by one with another header, as redaction does.
func (w *astrayWorld) redact(t *testing.T, what, name string) {
	w.link(t, name)
	w.rewrite(t, name, func(raw store.Raw, pieces []store.Piece) error {
		w.files++
		pieces[0].Line = fmt.Appendf(nil, `{"header":"%s","redacted":%d,"say":"hello"}`, name, w.files)
		return raw.Replace(t.Context(), seq(pieces))
	})
}

// repair takes out a line that is none.
func (w *astrayWorld) repair(t *testing.T, _, name string) {
	if f, err := os.OpenFile(w.store.Path(name), os.O_WRONLY|os.O_APPEND, 0); err == nil {
		_, err = f.WriteString("garbage\n")
		must(t, errors.Join(err, f.Close()))
	}
	w.link(t, name)
	w.rewrite(t, name, func(raw store.Raw, pieces []store.Piece) error {
		_, err := raw.Rewrite(t.Context(), seq(slices.DeleteFunc(pieces, func(p store.Piece) bool {
			return string(p.Line) == "garbage"
		})))
		return err
	})
}

func (w *astrayWorld) rewrite(t *testing.T, name string, replace func(store.Raw, []store.Piece) error) {
	t.Helper()
	err := fmt.Errorf("%w", store.ErrConflict)
	for try := 0; errors.Is(err, store.ErrConflict) && try < 1000; try++ { // somebody appended meanwhile
		raw, openErr := w.store.OpenRaw(t.Context(), name)
		must(t, openErr)
		var pieces []store.Piece
		for line, err := range raw.Lines(t.Context()) {
			must(t, err)
			if line.Torn {
				continue // the rewriting would come too late anyway
			}
			pieces = append(pieces, store.Piece{Line: bytes.Clone(line.Data)})
		}
		err = replace(raw, pieces)
		must(t, raw.Close())
	}
	if err != nil && !errors.Is(err, store.ErrConflict) {
		t.Fatal(err)
	}
}

func seq(pieces []store.Piece) func(func(store.Piece, error) bool) {
	return func(yield func(store.Piece, error) bool) {
		for _, p := range pieces {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// remove moves a log to the trash and returns where its file is there, and its id.
func (w *astrayWorld) remove(t *testing.T, what, name string) (id string) {
	t.Helper()
	w.change(t, what, name, true, func(before map[string]int) map[string]int {
		must(t, again(func() error { return w.store.Remove(t.Context(), name) }))
		trash, err := w.store.Trash().List(t.Context())
		must(t, err)
		for _, item := range trash {
			if item.Name == name {
				id = item.ID
				break // the latest comes first
			}
		}
		// Between our look and the removal there may have been more appends.
		maps.Copy(before, w.inTrash(t, id))
		return nil
	})
	return id
}

func (w *astrayWorld) inTrash(t *testing.T, id string) map[string]int {
	t.Helper()
	copies, err := w.store.Parts().Copies(t.Context(), "")
	must(t, err)
	for _, c := range copies {
		if filepath.Base(filepath.Dir(c.Place)) != "trash" || !strings.HasPrefix(filepath.Base(c.Place), id) {
			continue
		}
		var lines [][]byte
		for line, err := range w.store.Parts().Lines(t.Context(), c) {
			must(t, err)
			lines = append(lines, bytes.Clone(line.Data))
		}
		return idsOf(lines)
	}
	t.Fatalf("%s is not in the trash", id)
	return nil
}

func (w *astrayWorld) removeAndRestore(t *testing.T, what, name string) {
	w.link(t, name)
	id := w.remove(t, what+" (remove)", name)
	w.pause()
	w.change(t, what+" (restore)", name, true, func(map[string]int) map[string]int {
		after := w.inTrash(t, id)
		must(t, w.store.Trash().Restore(t.Context(), id))
		return after
	})
}

func (w *astrayWorld) removeAndCreate(t *testing.T, what, name string) {
	w.link(t, name)
	w.remove(t, what, name)
	w.pause()
	w.create(t, name)
}

// plainly makes sure that the log is a plain file, for those who change it by hand.
func (w *astrayWorld) plainly(t *testing.T, name string) string {
	t.Helper()
	must(t, again(func() error { return w.store.Unarchive(t.Context(), name) }))
	return w.store.Path(name)
}

func (w *astrayWorld) moveAwayAndBack(t *testing.T, what, name string) {
	path, away := w.plainly(t, name), w.beside("moved")
	w.change(t, what+" (away)", name, false, func(map[string]int) map[string]int {
		must(t, os.Rename(path, away))
		return nil
	})
	w.pause()
	w.putBack(t, what+" (back)", name, away)
}

// putBack moves a file to a log's path, at which there is none.
func (w *astrayWorld) putBack(t *testing.T, what, name, away string) {
	t.Helper()
	w.change(t, what, name, false, func(before map[string]int) map[string]int {
		if before != nil {
			t.Errorf("%s: somebody made %s again", what, name)
		}
		must(t, os.Rename(away, w.store.Path(name)))
		return idsIn(t, w.store.Path(name))
	})
}

// edited returns a new file with the content of another, one word of which may be
// changed.
func (w *astrayWorld) edited(t *testing.T, path string) (string, map[string]int) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	switch w.rand.IntN(3) {
	case 0: // in the header
		data = bytes.Replace(data, []byte("hello"), []byte("hallo"), 1)
	case 1: // so that the positions change
		data = bytes.Replace(data, []byte("lorem ipsum"), []byte("dolor"), 1)
	}
	changed := w.beside("edited")
	must(t, os.WriteFile(changed, data, 0o600))
	return changed, idsOf(bytes.Split(data, []byte("\n")))
}

func (w *astrayWorld) edit(t *testing.T, what, name string) {
	path := w.plainly(t, name)
	w.change(t, what, name, false, func(map[string]int) map[string]int {
		changed, after := w.edited(t, path)
		must(t, os.Rename(changed, path))
		return after
	})
}

// editWithBackup leaves the file as it was under another name.
func (w *astrayWorld) editWithBackup(t *testing.T, what, name string) {
	path := w.plainly(t, name)
	w.change(t, what, name, false, func(map[string]int) map[string]int {
		changed, after := w.edited(t, path)
		must(t, os.Rename(path, path+".bak"))
		if w.rand.IntN(2) == 0 {
			w.pause()
		}
		must(t, os.Rename(changed, path))
		return after
	})
}

// copy keeps a copy of the file as it is.
func (w *astrayWorld) copy(t *testing.T, _, name string) {
	data, err := os.ReadFile(w.store.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return // it is archived
	}
	must(t, err)
	path := w.beside("copy")
	must(t, os.WriteFile(path, data, 0o600))
	w.copies[name] = append(w.copies[name], path)
}

func (w *astrayWorld) restoreCopy(t *testing.T, what, name string) {
	if len(w.copies[name]) == 0 {
		return
	}
	from := w.copies[name][w.rand.IntN(len(w.copies[name]))]
	path := w.plainly(t, name)
	w.change(t, what, name, false, func(map[string]int) map[string]int {
		data, err := os.ReadFile(from)
		must(t, err)
		fresh := w.beside("fresh")
		must(t, os.WriteFile(fresh, data, 0o600))
		must(t, os.Rename(fresh, path))
		return idsOf(bytes.Split(data, []byte("\n")))
	})
}

// restoreCopyInPlace overwrites the file, as cp does. A writer that comes in the
// middle takes half a line for torn and cuts it off, so nobody can say which
// lines are there afterwards.
func (w *astrayWorld) restoreCopyInPlace(t *testing.T, what, name string) {
	if len(w.copies[name]) == 0 {
		return
	}
	from := w.copies[name][w.rand.IntN(len(w.copies[name]))]
	path := w.plainly(t, name)
	w.change(t, what, name, false, func(map[string]int) map[string]int {
		data, err := os.ReadFile(from)
		must(t, err)
		must(t, os.WriteFile(path, data, 0o600))
		log, err := w.store.Open(t.Context(), name)
		must(t, err)
		release, err := log.Pin(t.Context()) // such a writer has the lock until it is done
		must(t, err)
		release()
		must(t, log.Close())
		return nil
	})
}

func (w *astrayWorld) deleteAndCreate(t *testing.T, what, name string) {
	path := w.plainly(t, name)
	w.change(t, what, name, false, func(map[string]int) map[string]int {
		if w.rand.IntN(2) == 0 {
			must(t, os.Link(path, w.beside("link")))
		}
		must(t, os.Remove(path))
		return nil
	})
	w.pause()
	w.create(t, name)
}

// changeAll is change for all logs at once.
func (w *astrayWorld) changeAll(t *testing.T, what string, do func(), after func(name string, before map[string]int) map[string]int) {
	t.Helper()
	start := time.Now().UnixNano()
	before := make(map[string]map[string]int)
	for _, name := range astrayLogs {
		before[name] = w.content(t, name)
	}
	do()
	for _, name := range astrayLogs {
		c := astrayChange{what: what, start: start, before: before[name]}
		c.after = after(name, before[name])
		c.end = time.Now().UnixNano()
		w.changes[name] = append(w.changes[name], c)
	}
}

func nothing(string, map[string]int) map[string]int { return nil }

func (w *astrayWorld) now(t *testing.T) func(string, map[string]int) map[string]int {
	return func(name string, _ map[string]int) map[string]int { return w.content(t, name) }
}

func (w *astrayWorld) moveDirectory(t *testing.T, what, _ string) {
	away := w.beside("store")
	w.changeAll(t, what+" (away)", func() { must(t, os.Rename(w.dir, away)) }, nothing)
	w.pause()
	w.changeAll(t, what+" (back)", func() { w.putDirectory(t, away) }, w.now(t))
}

// replaceDirectory puts a copy in the place of the directory, as a restoring from
// a snapshot does.
func (w *astrayWorld) replaceDirectory(t *testing.T, what, _ string) {
	away, fresh := w.beside("store"), w.beside("store")
	w.changeAll(t, what+" (away)", func() { must(t, os.Rename(w.dir, away)) }, nothing)
	must(t, os.CopyFS(fresh, os.DirFS(away)))
	w.pause()
	w.changeAll(t, what+" (back)", func() { w.putDirectory(t, fresh) }, w.now(t))
}

// putDirectory moves a directory to where the store was.
func (w *astrayWorld) putDirectory(t *testing.T, from string) {
	t.Helper()
	err := os.Rename(from, w.dir)
	for try := 0; errors.Is(err, fs.ErrExist) && try < 100; try++ {
		// A writer looked whether the directory is there just before it was moved,
		// and made it again. It holds nothing.
		logs, _ := filepath.Glob(filepath.Join(w.dir, "*.jsonl"))
		if len(logs) > 0 {
			t.Errorf("somebody made %q while the store was away", logs)
		}
		w.done["(the directory was made again)"]++
		_ = os.RemoveAll(w.dir) // until nobody puts anything into it
		err = os.Rename(from, w.dir)
	}
	must(t, err)
}

// deleteLock changes nothing at the log's path, but an append that is under way
// is no longer protected.
func (w *astrayWorld) deleteLock(t *testing.T, what, name string) {
	w.change(t, what, name, false, func(before map[string]int) map[string]int {
		if w.rand.IntN(2) == 0 {
			w.link(t, name)
		}
		if err := os.Remove(w.lockPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return before
	})
}

// symlink puts a symbolic link to a copy in the place of the file, for a while.
func (w *astrayWorld) symlink(t *testing.T, what, name string) {
	path, away := w.plainly(t, name), w.beside("moved")
	var target string
	w.change(t, what, name, false, func(map[string]int) map[string]int {
		var after map[string]int
		target, after = w.edited(t, path)
		must(t, os.Rename(path, away))
		must(t, os.Symlink(target, path))
		return after
	})
	w.pause()
	c := astrayChange{what: what + " (back)", start: time.Now().UnixNano(), before: idsIn(t, target)}
	must(t, syscall.Unlink(path))
	must(t, os.Rename(away, path))
	c.after = idsIn(t, path)
	c.end = time.Now().UnixNano()
	w.changes[name] = append(w.changes[name], c)
}
