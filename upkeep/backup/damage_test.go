package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
	"github.com/coppice-dev/coppice/upkeep/backup"
)

// objectOf returns the file that has the content of a log.
func (w *world) objectOf(below string) string {
	w.Helper()
	want := tree(w.T, w.disk, "/home")[below]
	for path, text := range tree(w.T, w.disk, "/b/dir/objects") {
		if text == want {
			return "/b/dir/objects/" + path
		}
	}
	w.Fatalf("the backup has no %s", below)
	return ""
}

func blobOf(t *testing.T, w *world) string {
	t.Helper()
	for below := range tree(t, w.disk, "/home") {
		if strings.HasPrefix(below, ".coppice/blobs/") {
			return below
		}
	}
	t.Fatal("there is no blob")
	return ""
}

// Whatever is damaged in a backup is named, by a check and by a restore. A restore of the
// rest brings everything else, and a damaged session as it is.
func TestDamagedBackup(t *testing.T) {
	t.Parallel()
	flip := func(w *world, path string) {
		text := []byte(tree(w.T, w.disk, filepath.Dir(path))[filepath.Base(path)])
		text[len(text)-3] ^= 1
		w.write(path, string(text))
	}
	for name, tt := range map[string]struct {
		damage func(w *world) string // and what is damaged
		left   bool                  // it comes back all the same
		lost   int                   // so many sessions do not come back
	}{
		"a flipped bit in a log":  {func(w *world) string { flip(w, w.objectOf("plain1.jsonl")); return "plain1.jsonl" }, true, 0},
		"a flipped bit in a blob": {func(w *world) string { b := blobOf(w.T, w); flip(w, w.objectOf(b)); return b }, false, 0},
		"a missing log":           {func(w *world) string { w.must(w.disk.Remove(w.objectOf("plain1.jsonl"))); return "plain1.jsonl" }, false, 1},
		"an empty log":            {func(w *world) string { w.write(w.objectOf("plain1.jsonl"), ""); return "plain1.jsonl" }, false, 1},
		"a log cut short":         {func(w *world) string { w.write(w.objectOf("plain1.jsonl"), "{}\n"); return "plain1.jsonl" }, true, 0},
		"a log that is no JSON":   {func(w *world) string { w.write(w.objectOf("plain1.jsonl"), "x\n"+lineOf("cd")); return "plain1.jsonl" }, true, 0},
		"an empty note": {func(w *world) string {
			w.write(w.objectOf(".coppice/imports/x.json"), "")
			return ".coppice/imports/x.json"
		}, false, 0},
	} {
		w := newWorld(t)
		w.backup("/b/dir")
		want := w.kept(w.disk, "/home")
		broken := tt.damage(w)
		c, err := backup.Verify(t.Context(), backup.VerifyRequest{Path: "/b/dir", FS: w.disk})
		if err != nil || len(c.Damaged) != 1 || c.Damaged[0].Path != broken {
			t.Errorf("%s: %+v, %v; want %s", name, c, err, broken)
		}
		if len(c.Unreadable)+len(c.Missing) > 0 {
			t.Errorf("%s: the home is blamed for %+v", name, c)
		}
		_, err = backup.Restore(t.Context(), backup.RestoreRequest{From: "/b/dir", Dir: "/new", FS: w.disk})
		if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), broken) {
			t.Errorf("%s: restoring: %v", name, err)
		}
		if got := tree(t, w.disk, "/new"); len(got) > 0 {
			t.Errorf("%s: a damaged backup became a home of %d files", name, len(got))
		}
		c, err = backup.Restore(t.Context(), backup.RestoreRequest{From: "/b/dir", Dir: "/new", FS: w.disk, Partial: true})
		got := tree(t, w.disk, "/new")
		if err != nil || len(c.Damaged) != 1 || c.Damaged[0].Lost == tt.left || c.Sessions != 5-tt.lost || c.Files != len(got) {
			t.Errorf("%s: restoring the rest: %+v, %v; there are %d files", name, c, err, len(got))
		}
		if isLog := broken == "plain1.jsonl"; isLog != (c.Damaged[0].Session == "plain1") {
			t.Errorf("%s: the damaged session is %q", name, c.Damaged[0].Session)
		}
		if _, there := got[broken]; there != tt.left {
			t.Errorf("%s: what is damaged is there: %v", name, there)
		}
		delete(got, broken)
		delete(want, broken)
		if !maps.Equal(got, want) {
			t.Errorf("%s: the rest is %v", name, slices.Sorted(maps.Keys(got)))
		}
		// The next backup finds the damage, and puts it right.
		if r := w.backup("/b/dir"); r.Copied != 1 || (r.Mended == 1) == (name == "a missing log") {
			t.Errorf("%s: the next backup: %+v", name, r)
		}
		w.must(w.disk.Rename("/new", "/newer"))
		w.comesBack(name, "/b/dir")
	}
}

// lineOf is a line that refers to content.
func lineOf(digit string) string {
	return `{"type":"message","id":"m","message":{"role":"tool","parts":[{"blob":"sha256:` + strings.Repeat(digit, 32) + `"}]}}` + "\n"
}

// The backup keeps its copy of a blob if the home's copy is damaged or gone.
func TestBackupKeepsWhatTheHomeLost(t *testing.T) {
	t.Parallel()
	for _, to := range targets {
		for name, text := range map[string]string{"cut short": "out", "longer": strings.Repeat("x", 5000), "other bits": "", "gone": ""} {
			w := newWorld(t)
			w.backup(to)
			blob := blobOf(t, w)
			good := tree(t, w.disk, "/home")[blob]
			if text == "" {
				text = strings.Repeat("y", len(good))
			}
			w.write("/home/"+blob, text)
			if name == "gone" {
				w.must(w.disk.Remove("/home/" + blob))
			}
			for range 2 {
				w.backup(to)
			}
			w.comesBack(name, to)
			if got := tree(t, w.disk, "/new")[blob]; got != good {
				t.Errorf("%s, %s: the blob comes back as %.20q", to, name, got)
			}
		}
	}
}

// What a damaged list of files still names comes back, and a backup that fails deletes
// nothing that only that list knew.
func TestSalvagedManifest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backup("/b/dir")
	want := w.kept(w.disk, "/home")
	good := tree(t, w.disk, "/b/dir")["manifest.jsonl"]
	blob := blobOf(t, w)
	bad := strings.Replace(good, `"path":"plain1.jsonl"`, `"path":"plain1.j`, 1)
	w.write("/b/dir/manifest.jsonl", strings.Replace(bad, blob, blob[:len(blob)-1]+"$", 1))
	ctx, cancel := context.WithCancel(t.Context())
	reading := w.open(&vfstest.Faulty{FS: w.disk, Before: func(op vfstest.Op) error {
		if op.Kind == vfstest.OpRead {
			cancel()
		}
		return nil
	}}, "/home")
	before := tree(t, w.disk, "/b/dir/objects")
	if _, err := backup.Make(ctx, reading, backup.Request{To: "/b/dir", FS: w.disk}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if !maps.Equal(before, tree(t, w.disk, "/b/dir/objects")) {
		t.Error("a backup that failed deleted content")
	}
	c, err := backup.Restore(t.Context(), backup.RestoreRequest{From: "/b/dir", Dir: "/new", FS: w.disk, Partial: true})
	if err != nil || len(c.Damaged) != 1 || c.Damaged[0].Path != "manifest.jsonl" || c.Sessions != 4 || c.Created.IsZero() {
		t.Errorf("%+v, %v", c, err)
	}
	delete(want, "plain1.jsonl")
	delete(want, blob)
	if got := tree(t, w.disk, "/new"); !maps.Equal(got, want) {
		t.Errorf("it has %v", slices.Sorted(maps.Keys(got)))
	}
}

// A list of files that is damaged or cut off is not believed.
func TestDamagedManifest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backup("/b/dir")
	good := tree(t, w.disk, "/b/dir")["manifest.jsonl"]
	lines := strings.SplitAfter(good, "\n")
	for name, bad := range map[string]string{
		"empty":       "",
		"cut":         strings.Join(lines[:5], ""),
		"a line less": strings.Join(slices.Delete(slices.Clone(lines), 2, 3), ""),
		"other path":  strings.Replace(good, "plain1.jsonl", "plainX.jsonl", 1),
		"not JSON":    "x\ny\n",
	} {
		w.write("/b/dir/manifest.jsonl", bad)
		c, err := backup.Verify(t.Context(), backup.VerifyRequest{Path: "/b/dir", FS: w.disk})
		if err != nil || len(c.Damaged) != 1 || c.Damaged[0].Path != "manifest.jsonl" {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	w.write("/b/dir/manifest.jsonl", "")
	w.backup("/b/dir") // which makes another
	w.comesBack("after a damaged manifest", "/b/dir")
}

// A program that does not know a backup's version leaves it alone.
func TestNewerBackupStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backup("/b/dir")
	list := strings.Replace(tree(t, w.disk, "/b/dir")["manifest.jsonl"], `"coppice_backup":1`, `"coppice_backup":2`, 1)
	w.write("/b/dir/manifest.jsonl", list)
	w.session("later", "hello", "x")
	before := tree(t, w.disk, "/b/dir")
	_, err := backup.Make(t.Context(), w.st, backup.Request{To: "/b/dir", FS: w.disk})
	if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "/b/dir") {
		t.Error(err)
	}
	if !maps.Equal(tree(t, w.disk, "/b/dir"), before) {
		t.Error("it is another backup now")
	}
}

// Without its manifest, a backup is of use only to somebody who searches its objects. They stay until
// the next backup is complete.
func TestObjectsOfALostManifestStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backup("/b/dir")
	w.must(w.disk.Remove("/b/dir/manifest.jsonl"))
	objects := tree(t, w.disk, "/b/dir/objects")
	ctx, cancel := context.WithCancel(t.Context())
	reads := 0
	reading := w.open(&vfstest.Faulty{FS: w.disk, Before: func(op vfstest.Op) error {
		if reads++; reads == 20 {
			cancel()
		}
		return nil
	}}, "/home")
	if _, err := backup.Make(ctx, reading, backup.Request{To: "/b/dir", FS: w.disk}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for path := range objects {
		if _, ok := tree(t, w.disk, "/b/dir/objects")[path]; !ok {
			t.Errorf("%s is gone", path)
		}
	}
	w.backup("/b/dir")
	w.restore("/b/dir")
}

// What is not there, or is no backup, is not taken for one.
func TestNoBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, want := range map[string]error{"/nothing": store.ErrNotExist, "/home": store.ErrNotExist} {
		if _, err := backup.Verify(t.Context(), backup.VerifyRequest{Path: path, FS: w.disk}); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	w.write("/text", "this is something else")
	if _, err := backup.Verify(t.Context(), backup.VerifyRequest{Path: "/text", FS: w.disk}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a text: %v", err)
	}
	w.write("/x.tar.zst", "this is not zstd, and not tar")
	c, err := backup.Verify(t.Context(), backup.VerifyRequest{Path: "/x.tar.zst", FS: w.disk})
	if err != nil || len(c.Damaged) == 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// An archive that was cut off anywhere is damaged, and what is before the cut comes back.
func TestCutArchive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 20 { // so that there is more than one block
		var text strings.Builder
		for n := range 300 {
			fmt.Fprintf(&text, "%x\n", sha256.Sum256([]byte{byte(i), byte(n), byte(n >> 8)}))
		}
		w.session(fmt.Sprint("more", i), text.String(), "x")
	}
	w.backup("/b/file.tar.zst")
	whole := tree(t, w.disk, "/b")["file.tar.zst"]
	want := w.kept(w.disk, "/home")
	for _, n := range []int{0, 10, len(whole) / 2, len(whole) - 1} {
		w.write("/b/cut.tar.zst", whole[:n])
		_, err := backup.Restore(t.Context(), backup.RestoreRequest{From: "/b/cut.tar.zst", Dir: "/new", FS: w.disk})
		if !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
		dir := fmt.Sprint("/new", n)
		c, err := backup.Restore(t.Context(), backup.RestoreRequest{From: "/b/cut.tar.zst", Dir: dir, FS: w.disk, Partial: true})
		if err != nil || len(c.Damaged) == 0 {
			t.Errorf("%d of %d bytes: %+v, %v", n, len(whole), c, err)
		}
		got := tree(t, w.disk, dir)
		for below, text := range got {
			if !strings.HasPrefix(want[below], text) {
				t.Errorf("%d of %d bytes: %s is made up", n, len(whole), below)
			}
		}
		if n < len(whole)/2 {
			continue // not even the list of files can be read
		}
		damaged := func(below string) bool {
			return slices.ContainsFunc(c.Damaged, func(d backup.Fault) bool { return d.Path == below })
		}
		for below := range want {
			if got[below] != want[below] && !damaged(below) {
				t.Errorf("%d of %d bytes: nobody says that %s is missing", n, len(whole), below)
			}
		}
	}
}

// An archive by an attacker writes nothing outside of the home, and nothing in it that a
// backup does not have.
func TestHostileArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	for i, h := range []tar.Header{
		{Name: "home/../../outside"},
		{Name: "home/../outside"},
		{Name: "/" + outside},
		{Name: "home/" + outside},
		{Name: "home/.coppice/../../../outside"},
		{Name: "home/.coppice/blobs/../../../outside"},
		{Name: `home/..\outside`},
		{Name: "home/.coppice/index.db"},
		{Name: "home/.coppice/locks/x.lock"},
		{Name: "home/.bashrc"},
		{Name: "home/sub/x.jsonl"},
		{Name: "home/.coppice"},
		{Name: "home/x.jsonl", Typeflag: tar.TypeSymlink, Linkname: outside},
		{Name: "home/x.jsonl", Typeflag: tar.TypeLink, Linkname: outside},
		{Name: "home/.coppice", Typeflag: tar.TypeSymlink, Linkname: dir},
		{Name: "home/x.jsonl", Typeflag: tar.TypeFifo},
		{Name: "home/x.jsonl", Typeflag: tar.TypeChar},
	} {
		for what, list := range map[string]string{
			"no list":        "",
			"not listed":     manifest("good.jsonl"),
			"listed":         manifest("good.jsonl", strings.TrimPrefix(h.Name, "home/")),
			"listed as such": manifest("good.jsonl", h.Name),
		} {
			path := filepath.Join(dir, fmt.Sprint(i, what, ".tar.zst"))
			if err := os.WriteFile(path, archive(t, list, h), 0o600); err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(dir, fmt.Sprint("home", i, what))
			for _, partial := range []bool{false, true} {
				c, err := backup.Restore(t.Context(), backup.RestoreRequest{From: path, Dir: to, Partial: partial})
				if !partial && !errors.Is(err, store.ErrCorrupt) || partial && (err != nil || len(c.Damaged) == 0) {
					t.Errorf("%s, %s: %+v, %v", h.Name, what, c, err)
				}
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Fatalf("%s, %s: something was written outside", h.Name, what)
			}
			got := slices.Sorted(maps.Keys(tree(t, vfs.OS{}, to)))
			if want := []string{"good.jsonl"}; len(got) > 0 && !slices.Equal(got, want) || what == "not listed" && len(got) == 0 {
				t.Errorf("%s, %s: the home has %q", h.Name, what, got)
			}
		}
	}
}

// manifest is a list of files that all have the content "{}\n".
func manifest(paths ...string) string {
	slices.Sort(paths)
	list := `{"coppice_backup":1,"created":"2026-01-01T00:00:00Z"}` + "\n"
	for _, path := range slices.Compact(paths) {
		quoted, _ := json.Marshal(path)
		list += fmt.Sprintf(`{"path":%s,"size":3,"sha256":"%x","modified":"2026-01-01T00:00:00Z"}`+"\n", quoted, sha256.Sum256([]byte("{}\n")))
	}
	return list + fmt.Sprintf(`{"files":%d,"sha256":"%x"}`+"\n", len(slices.Compact(paths)), sha256.Sum256([]byte(list)))
}

// archive makes an archive with a list, if there is one, a session, and another entry.
func archive(t *testing.T, list string, h tar.Header) []byte {
	t.Helper()
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, h := range []tar.Header{{Name: "manifest.jsonl"}, {Name: "home/good.jsonl"}, h} {
		text := "{}\n"
		if h.Name == "manifest.jsonl" {
			if text = list; list == "" {
				continue
			}
		}
		if h.Typeflag != 0 && h.Typeflag != tar.TypeReg {
			text = ""
		}
		h.Size, h.Mode = int64(len(text)), 0o777
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// A check tells apart what the home lacked from what the backup lost.
func TestVerifyTellsWhatTheHomeLacked(t *testing.T) {
	t.Parallel()
	for _, to := range targets {
		w := newWorld(t)
		blob := blobOf(t, w)
		w.must(w.disk.Remove("/home/" + blob))
		w.write("/home/broken.jsonl", `{"type":"session","id":"broken","version":1,"timestamp":"2026-01-01T00:00:00.000Z"}`+"\nnot JSON\n"+
			`{"type":"message","id":"m","message":{"role":"user","content":"the image sha256:`+strings.Repeat("ab", 32)+`"}}`+"\n")
		w.backup(to)
		c, err := backup.Verify(t.Context(), backup.VerifyRequest{Path: to, FS: w.disk})
		want := store.Ref("sha256:" + filepath.Base(blob))
		if err != nil || len(c.Damaged) > 0 || !slices.Equal(c.Missing, []store.Ref{want}) ||
			!slices.Equal(c.Unreadable, []backup.Unreadable{{Path: "broken.jsonl", Lines: 1}}) {
			t.Errorf("%s: %+v, %v", to, c, err)
		}
	}
}

// damaged returns a world that was backed up and in which the archive of a log was cut off since.
func damaged(t *testing.T, to string, more bool) (w *world, good string) {
	t.Helper()
	w = newWorld(t)
	w.backup(to)
	good = tree(t, w.disk, "/home")["plain1.jsonl"]
	if more { // lines that no backup has
		s, err := session.Open(t.Context(), w.st, "plain1", nil)
		w.must(err)
		for range 20 {
			_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("more")})
			w.must(err)
		}
		w.must(s.Close())
	}
	w.must(w.st.Archive(t.Context(), "plain1"))
	packed := tree(t, w.disk, "/home/.coppice/archive")["plain1.jsonl.zst"]
	w.write("/home/.coppice/archive/plain1.jsonl.zst", packed[:len(packed)/2])
	return w, good
}

// A log whose archive was cut off does not take the place of a better one. The backup says so,
// each time, and has both.
func TestBackupKeepsTheBetterVersion(t *testing.T) {
	t.Parallel()
	for _, to := range targets {
		for _, more := range []bool{false, true} {
			w, good := damaged(t, to, more)
			for range 2 {
				r := w.backup(to)
				if r.Kept || len(r.Unread) > 0 || len(r.Older) != 1 || r.Older[0].Session != "plain1" || !strings.Contains(r.Older[0].Why, "in the older backup") || r.Sessions != 5 {
					t.Fatalf("%s: %+v", to, r)
				}
				c, err := backup.Verify(t.Context(), backup.VerifyRequest{Path: to, FS: w.disk})
				if err != nil || len(c.Damaged)+len(c.Unreadable)+len(c.Missing) > 0 || c.Files != r.Files || c.Sessions != 5 {
					t.Errorf("%s: %+v, %v", to, c, err)
				}
			}
			w.comesBack(to, to)
			got := tree(t, w.disk, "/new")
			if got["plain1.jsonl"] != good {
				t.Errorf("%s: the session comes back as %q", to, got["plain1.jsonl"])
			}
			cut := tree(t, w.disk, "/home/.coppice/archive")["plain1.jsonl.zst"]
			found, err := w.open(w.disk, "/new").Quarantined(t.Context())
			if err != nil || len(found) != 2 || got[".coppice/archive/plain1.jsonl.zst"] != "" ||
				!slices.ContainsFunc(found, func(q store.Quarantined) bool { return got[".coppice/quarantine/"+q.ID] == cut && q.Name == "plain1" }) {
				t.Errorf("%s: in quarantine are %+v, %v", to, found, err)
			}
			// After a repair, the backup takes the home's version again.
			w.must(w.disk.Remove("/home/.coppice/archive/plain1.jsonl.zst"))
			w.write("/home/plain1.jsonl", strings.Join(strings.SplitAfter(good, "\n")[:2], ""))
			if r := w.backup(to); len(r.Older) > 0 {
				t.Errorf("%s: after a repair: %+v", to, r)
			}
		}
	}
}

// A redaction during a backup reaches the older version of a session that is damaged: the backup
// has nothing of it if it has another session as the redaction left that.
func TestBackupKeepsNoSecretOfADamagedLog(t *testing.T) {
	t.Parallel()
	const secret = "kX9#mQ2$vL"
	base := newWorld(t)
	for _, name := range []string{"leak", "other"} {
		base.session(name, "DB_PASSWORD="+secret, "x")
	}
	base.backup("/b/dir")
	base.write("/home/leak.jsonl", "not JSON\n")
	kept := 0
	for at := int64(1); ; at += 3 {
		w := base.clone()
		n, changed := int64(0), false
		reading := w.open(&vfstest.Faulty{FS: w.disk, Before: func(op vfstest.Op) error {
			if n++; n == at {
				changed = true
				sweep, err := clean.Look(t.Context(), w.st)
				w.must(err)
				_, err = sweep.Apply(t.Context())
				w.must(err)
			}
			return nil
		}}, "/home")
		r, err := backup.Make(t.Context(), reading, backup.Request{To: "/b/dir", FS: w.disk})
		w.must(err)
		if kept += len(r.Older); !changed {
			break
		}
		_, err = backup.Restore(t.Context(), backup.RestoreRequest{From: "/b/dir", Dir: "/new", FS: w.disk})
		w.must(err)
		got := tree(t, w.disk, "/new")
		if strings.Contains(got["leak.jsonl"], secret) && !strings.Contains(got["other.jsonl"], secret) {
			t.Errorf("at %d: the older version has the secret", at)
		}
	}
	if kept < 2 {
		t.Errorf("the older version was kept %d times", kept)
	}
}

// A damaged log of which the older backup has less, or nothing that may be kept, is backed up as it
// is.
func TestBackupTakesADamagedLog(t *testing.T) {
	t.Parallel()
	for _, to := range targets {
		for name, change := range map[string]func(w *world){
			"grown by a damaged line": func(w *world) {
				w.write("/home/plain1.jsonl", tree(t, w.disk, "/home")["plain1.jsonl"]+"not JSON\n")
			},
			"torn": func(w *world) {
				w.write("/home/plain1.jsonl", tree(t, w.disk, "/home")["plain1.jsonl"]+`{"type":`)
			},
			"the backup's version is damaged, too": func(w *world) {
				if to == "/b/dir" {
					w.write(w.objectOf("plain1.jsonl"), "x")
				} else {
					w.write(to, "x")
				}
				w.write("/home/plain1.jsonl", "not JSON\n")
			},
		} {
			w := newWorld(t)
			w.backup(to)
			change(w)
			if r := w.backup(to); len(r.Older)+len(r.Unread) > 0 {
				t.Errorf("%s, %s: %+v", to, name, r)
			}
			w.comesBack(name, to)
			if want, got := tree(t, w.disk, "/home")["plain1.jsonl"], tree(t, w.disk, "/new")["plain1.jsonl"]; got != want {
				t.Errorf("%s, %s: it comes back as %q", to, name, got)
			}
		}
	}
}
