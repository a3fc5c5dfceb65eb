package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
	"github.com/coppice-dev/coppice/upkeep/backup"
)

// targets are the two kinds of backups.
var targets = []string{"/b/dir", "/b/file.tar.zst"}

// world is a disk with a home, /home, that has something in every room.
type world struct {
	*testing.T
	disk *vfstest.Memory
	st   *file.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, disk: vfstest.NewMemory()}
	w.st = w.open(w.disk, "/home")
	for i := range 3 {
		w.session(fmt.Sprint("plain", i), "hello", strings.Repeat(fmt.Sprintf("output %d\n", i), 60))
	}
	w.session("packed", "kept cold", strings.Repeat("cold\n", 100))
	w.must(w.st.Archive(t.Context(), "packed"))
	w.session("removed", "in the trash", strings.Repeat("gone\n", 100))
	w.must(w.st.Remove(t.Context(), "removed"))
	w.session("repaired", "one", "two")
	raw, err := w.st.OpenRaw(t.Context(), "repaired")
	w.must(err)
	_, err = raw.Rewrite(t.Context(), func(yield func(store.Piece, error) bool) { yield(store.Piece{To: store.Pos(raw.Size())}, nil) })
	w.must(errors.Join(err, raw.Close()))
	w.must(w.st.Notes("imports").Write(t.Context(), "x.json", []byte(`{"known":1}`)))
	w.must(w.st.Notes("").Write(t.Context(), "redacted.json", []byte(`{"version":1}`)))
	w.write("/home/old.jsonl.bak", "{}\n")
	w.write("/home/.coppice/index.db", "derived")
	w.write("/home/notes.txt", "somebody's own")
	return w
}

// clone returns another world like this one.
func (w *world) clone() *world {
	w.Helper()
	c := &world{T: w.T, disk: w.disk.CrashClone(nil, vfstest.LoseNothing)}
	c.st = c.open(c.disk, "/home")
	return c
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) open(disk vfs.FS, dir string) *file.Store {
	w.Helper()
	st, err := file.Open(dir, &file.Options{FS: disk, Sync: file.Never})
	w.must(err)
	w.Cleanup(func() { st.Close() })
	return st
}

// session makes a session with a prompt and a long result, which is in a blob.
func (w *world) session(name, prompt, result string) {
	w.Helper()
	s, err := session.Create(w.Context(), w.st, session.Header{ID: name}, &session.Options{BlobThreshold: 200})
	w.must(err)
	_, err = s.AppendMessage(session.RoleUser, []session.Content{session.Text(prompt)})
	w.must(err)
	_, err = s.AppendMessage(session.RoleAssistant, []session.Content{session.ToolUse("c", "read", nil)})
	w.must(err)
	_, err = s.AppendMessage(session.RoleTool, []session.Content{session.ToolResult("c", result, false)})
	w.must(err)
	w.must(s.Close())
}

func (w *world) write(path, text string) {
	w.Helper()
	w.must(w.disk.MkdirAll(filepath.Dir(path), 0o700))
	w.must(vfs.Replace(w.disk, path, vfs.Replacement{}, vfs.Data([]byte(text))))
}

func (w *world) backup(to string) *backup.Result {
	w.Helper()
	r, err := backup.Make(w.Context(), w.st, backup.Request{To: to, FS: w.disk})
	w.must(err)
	return r
}

// tree returns the files below a directory and what is in them.
func tree(t *testing.T, disk vfs.FS, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	entries, err := disk.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			for below, text := range tree(t, disk, path) {
				all[e.Name()+"/"+below] = text
			}
			continue
		}
		f, err := disk.OpenFile(path, os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		stat, _ := f.Stat()
		data := make([]byte, stat.Size)
		if stat.Size > 0 {
			if _, err := f.ReadAt(data, 0); err != nil {
				t.Fatal(err)
			}
		}
		f.Close()
		all[e.Name()] = string(data)
	}
	return all
}

// kept is the part of a home that a backup must have.
func (w *world) kept(disk vfs.FS, dir string) map[string]string {
	all := tree(w.T, disk, dir)
	for below := range all {
		if _, ok := file.IsKept(below); !ok {
			delete(all, below)
		}
	}
	return all
}

func TestBackupComesBack(t *testing.T) {
	t.Parallel()
	for _, to := range targets {
		w := newWorld(t)
		r := w.backup(to)
		want := w.kept(w.disk, "/home")
		if r.Sessions != 5 || r.Files != len(want) || len(r.Unread) > 0 {
			t.Errorf("%s: %+v, want 5 sessions in %d files", to, r, len(want))
		}
		c, err := backup.Verify(t.Context(), backup.VerifyRequest{Path: to, FS: w.disk})
		if err != nil || len(c.Damaged)+len(c.Unreadable)+len(c.Missing) > 0 || c.Files != r.Files || !c.Created.Equal(r.Created) {
			t.Errorf("%s: %+v, %v", to, c, err)
		}
		w.must(w.disk.MkdirAll("/new", 0o700)) // an empty directory is fine
		if _, err := backup.Restore(t.Context(), backup.RestoreRequest{From: to, Dir: "/new", FS: w.disk}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, tree(t, w.disk, "/new")); diff != "" {
			t.Errorf("%s: what comes back differs (-want +got):\n%s", to, diff)
		}
		was, _ := w.disk.Lstat("/home/plain1.jsonl")
		is, err := w.disk.Lstat("/new/plain1.jsonl")
		if err != nil || !is.ModTime().Equal(was.ModTime()) || is.Mode().Perm() != 0o600 {
			t.Errorf("a log comes back as %v from %v; it was from %v", is.Mode(), is.ModTime(), was.ModTime())
		}
		if _, err := backup.Restore(t.Context(), backup.RestoreRequest{From: to, Dir: "/new", FS: w.disk}); !errors.Is(err, store.ErrExist) {
			t.Errorf("restoring over a home: %v", err)
		}
	}
}

// What is in a directory already is not written again.
func TestBackupCopiesWhatIsNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.backup("/b/dir")
	if first.Copied != first.Files-1 { // the copy in quarantine is like the log
		t.Errorf("the first backup copies %d of %d files", first.Copied, first.Files)
	}
	counted := &vfstest.Faulty{FS: w.disk}
	if r, err := backup.Make(t.Context(), w.st, backup.Request{To: "/b/dir", FS: counted}); err != nil || r.Copied != 0 || r.Files != first.Files {
		t.Errorf("the second backup: %+v, %v", r, err)
	}
	if n := counted.Count(vfstest.OpCreate); n != 2 {
		t.Errorf("it opens %d files for writing, want the lock and the manifest", n)
	}
	w.session("another", "hi", "short")
	if r := w.backup("/b/dir"); r.Copied != 1 || r.Files != first.Files+1 {
		t.Errorf("after a session more: %+v", r)
	}
}

// A backup that is brought up to date keeps nothing of what was redacted or deleted, not even of a
// session that is damaged by now.
func TestBackupForgetsWhatWasRedacted(t *testing.T) {
	t.Parallel()
	for _, damaged := range []bool{false, true} {
		forgets(t, damaged)
	}
}

func forgets(t *testing.T, damaged bool) {
	t.Helper()
	const secret = "kX9#mQ2$vL"
	w := newWorld(t)
	w.session("leak", "DB_PASSWORD="+secret, strings.Repeat("x\n", 200)+"DB_PASSWORD="+secret)
	w.backup("/b/dir")
	has := func() (n int) {
		for _, text := range tree(t, w.disk, "/b/dir") {
			n += strings.Count(text, secret)
		}
		return n
	}
	if has() != 2 {
		t.Fatalf("the fixture has the secret %d times", has())
	}
	sweep, err := clean.Look(t.Context(), w.st)
	w.must(err)
	_, err = sweep.Apply(t.Context())
	w.must(err)
	if damaged {
		w.write("/home/leak.jsonl", "not JSON\n")
	}
	w.backup("/b/dir")
	if has() > 0 {
		t.Errorf("the backup still has the secret; the log is damaged: %v", damaged)
	}
}

// The home changes while it is read. Whatever becomes of a session, the backup has it
// once, and never an archive of a redacted session together with the session as it was.
func TestBackupOfAHomeThatChanges(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	for what, change := range map[string]func(w *world) error{
		"archived":    func(w *world) error { return w.st.Archive(w.Context(), "plain2") },
		"brought":     func(w *world) error { return w.st.Unarchive(w.Context(), "packed") },
		"removed":     func(w *world) error { return w.st.Remove(w.Context(), "plain0") },
		"back":        restoreRemoved,
		"created":     func(w *world) error { w.session("late", "x", strings.Repeat("late\n", 100)); return nil },
		"rewritten":   rewrite,
		"archived, 0": func(w *world) error { return w.st.Archive(w.Context(), "plain0") },
	} {
		for _, to := range targets {
			for at := int64(1); at < 200; at += 7 {
				w := base.clone()
				n := int64(0)
				changed := false
				reading := w.open(&vfstest.Faulty{FS: w.disk, Before: func(op vfstest.Op) error {
					if n++; n == at && !changed {
						changed = true
						w.must(change(w))
					}
					return nil
				}}, "/home")
				if _, err := backup.Make(t.Context(), reading, backup.Request{To: to, FS: w.disk}); err != nil {
					t.Fatalf("%s at %d: %v", what, at, err)
				}
				w.comesBack(fmt.Sprintf("%s at %d to %s", what, at, to), to)
				if !changed {
					break
				}
			}
		}
	}
}

func restoreRemoved(w *world) error {
	items, err := w.st.Trash().List(w.Context())
	if err != nil || len(items) == 0 {
		return err
	}
	return w.st.Trash().Restore(w.Context(), items[0].ID)
}

// rewrite rewrites two logs, the last of which gets longer, as a redaction does.
func rewrite(w *world) error {
	for _, name := range []string{"plain0", "plain2"} {
		raw, err := w.st.OpenRaw(w.Context(), name)
		if err != nil {
			return err
		}
		err = raw.Replace(w.Context(), func(yield func(store.Piece, error) bool) {
			header := fmt.Sprintf(`{"type":"session","id":%q,"version":1,"timestamp":"2026-01-01T00:00:00.000Z","redacted":%q}`, name, strings.Repeat("now", 1000))
			yield(store.Piece{Line: []byte(header)}, nil)
		})
		if err := errors.Join(err, raw.Close()); err != nil {
			return err
		}
	}
	return nil
}

// comesBack restores a backup and looks at it: every session is there once, with the
// content that it refers to.
func (w *world) comesBack(when, from string) {
	w.Helper()
	if _, err := backup.Restore(w.Context(), backup.RestoreRequest{From: from, Dir: "/new", FS: w.disk}); err != nil {
		w.Fatalf("%s: %v", when, err)
	}
	var names []string
	all := tree(w.T, w.disk, "/new")
	for below := range all {
		for _, name := range []string{"plain0", "plain1", "plain2", "packed", "removed"} {
			if room, _ := file.IsKept(below); strings.HasPrefix(filepath.Base(below), name+".") && room != file.AreaQuarantine {
				names = append(names, name)
			}
		}
	}
	if redacted := strings.Contains(all["plain0.jsonl"], "nownow"); redacted != strings.Contains(all["plain2.jsonl"], "nownow") {
		w.Errorf("%s: one log is redacted, the other is not", when)
	}
	slices.Sort(names)
	if want := []string{"packed", "plain0", "plain1", "plain2", "removed"}; !slices.Equal(names, want) {
		w.Errorf("%s: the backup has %v", when, names)
	}
	st := w.open(w.disk, "/new")
	for below, text := range all {
		if room, _ := file.IsKept(below); room == file.AreaLog {
			store.EachRef([]byte(text), func(ref store.Ref) {
				if _, err := st.Blobs().Get(w.Context(), ref); err != nil {
					w.Errorf("%s: %s: %v", when, below, err)
				}
			})
		}
	}
}

// Files that cannot be read do not cost the older backup.
func TestBackupOfAHomeThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, to := range targets {
		w := newWorld(t)
		reading := w.open(&vfstest.Faulty{FS: w.disk, Before: func(op vfstest.Op) error {
			if op.Kind == vfstest.OpOpen && op.Name == "/home/plain1.jsonl" {
				return syscall.EACCES
			}
			return nil
		}}, "/home")
		first, err := backup.Make(t.Context(), reading, backup.Request{To: to, FS: w.disk})
		if err != nil || first.Kept || len(first.Unread) != 1 || first.Unread[0].Path != "plain1.jsonl" || !strings.Contains(first.Unread[0].Why, "permission denied") {
			t.Fatalf("%s: %+v, %v", to, first, err)
		}
		whole := w.backup(to)
		was := tree(t, w.disk, "/b")
		r, err := backup.Make(t.Context(), reading, backup.Request{To: to, FS: w.disk})
		if err != nil || !r.Kept || len(r.Unread) != 1 {
			t.Errorf("%s: %+v, %v", to, r, err)
		}
		if diff := cmp.Diff(was, tree(t, w.disk, "/b")); diff != "" {
			t.Errorf("%s: the older backup has changed:\n%s", to, diff)
		}
		if r, err = backup.Make(t.Context(), reading, backup.Request{To: to, FS: w.disk, Partial: true}); err != nil || r.Kept || r.Files != whole.Files-1 {
			t.Errorf("%s: with Partial: %+v, %v", to, r, err)
		}
	}
}

// A target that is something else is left alone.
func TestBackupRefusesTargets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("/full/some.txt", "mine")
	w.write("/file", "mine")
	for _, to := range []string{"", "/home", "/home/sub", "/home/.coppice/b", "/full", "/file", "/b/x.zip", "/b/x.tar.gz"} {
		if _, err := backup.Make(t.Context(), w.st, backup.Request{To: to, FS: w.disk}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q: %v", to, err)
		}
	}
	if diff := cmp.Diff(map[string]string{"some.txt": "mine"}, tree(t, w.disk, "/full")); diff != "" {
		t.Error(diff)
	}
}

// Two backups to one place do not get in each other's way.
func TestBackupLocksItsTarget(t *testing.T) {
	t.Parallel()
	for _, to := range targets {
		w := newWorld(t)
		w.backup(to)
		tried := false
		reading := w.open(&vfstest.Faulty{FS: w.disk, Before: func(op vfstest.Op) error {
			if op.Kind == vfstest.OpRead && !tried {
				tried = true
				if _, err := backup.Make(context.Background(), w.st, backup.Request{To: to, FS: w.disk}); !errors.Is(err, store.ErrLocked) {
					t.Errorf("%s: a second backup at the same time: %v", to, err)
				}
			}
			return nil
		}}, "/home")
		_, err := backup.Make(t.Context(), reading, backup.Request{To: to, FS: w.disk})
		w.must(err)
		w.comesBack(to, to)
	}
}

// While secrets are being taken out, a backup would have some of them.
func TestBackupWaitsForARedaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.st.Notes("").Write(t.Context(), "redact.pending", []byte(`{"blobs":[],"all":true}`)))
	ended := false
	n := 0
	reading := w.open(&vfstest.Faulty{FS: w.disk, Before: func(op vfstest.Op) error {
		if n++; n == 30 {
			ended = true
			return w.st.Notes("").Remove(t.Context(), "redact.pending")
		}
		return nil
	}}, "/home")
	_, err := backup.Make(t.Context(), reading, backup.Request{To: "/b/dir", FS: w.disk})
	w.must(err)
	if !ended {
		t.Error("it did not wait")
	}
}
