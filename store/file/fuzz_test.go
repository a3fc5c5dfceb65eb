package file_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// Whatever names files in the store's directories have, listing them tells logs
// and copies from the rest, and never leads outside of their directories.
func FuzzFileNames(f *testing.F) {
	for _, name := range []string{
		"a.jsonl", "a.jsonl.zst", "a.jsonl.bak", "a.lock", ".jsonl", "..jsonl", "a.0.1700000000000000000.torn", "a.b.12.34.replaced.zst",
		"a.20260102T030405.000000000Z.jsonl", ".20260102T030405.000000000Z.jsonl", "a.20260102T030405.000000000Z.jsonl.zst",
		"con.jsonl", "\xff.jsonl", "a.99999999T999999.000000000Z.jsonl", "a\nb.jsonl",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") || len(name) > 200 {
			return // no file can be called that
		}
		disk := vfstest.NewMemory()
		st := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never})
		var rooms []string
		for _, room := range []string{"", "archive", "trash", "quarantine", "locks", "tmp"} {
			dir := filepath.Join("/s/.coppice", room)
			if room == "" {
				dir = "/s"
			}
			rooms = append(rooms, dir)
			must(t, disk.MkdirAll(dir, 0o700))
			putLog(t, disk, filepath.Join(dir, name), []byte("{}\n"))
		}
		storetest.Bounded(t, 32<<20, func() {
			for log, n := range namesOf(t, st) {
				if n != 1 || store.CheckName(log) != nil {
					t.Errorf("log %q is there %d times", log, n)
				}
			}
			copies, err := st.Parts().Copies(t.Context(), "")
			must(t, err)
			for _, c := range copies {
				if store.CheckName(c.Name) != nil || !slices.Contains(rooms, filepath.Dir(c.Place)) || filepath.Base(c.Place) != name {
					t.Errorf("copy %+v", c)
				}
			}
			mustStale(t, st)
			trashed, err := st.Trash().List(t.Context())
			must(t, err)
			for _, item := range trashed {
				if store.CheckName(item.Name) != nil || !strings.HasPrefix(name, item.ID) {
					t.Errorf("removal %+v", item)
				}
				if namesOf(t, st)[item.Name] == 0 {
					must(t, st.Trash().Restore(t.Context(), item.ID))
					if namesOf(t, st)[item.Name] != 1 {
						t.Errorf("%q was restored and is not there", item.Name)
					}
				}
			}
		})
	})
}

// Whatever a blob is called, it is found under that name or refused; no name leads
// out of the directory of blobs.
func FuzzBlobName(f *testing.F) {
	f.Add(string(store.RefOf([]byte("x"))))
	f.Add("sha256:../../../../etc/passwd")
	f.Add("sha256:" + strings.Repeat("A", 64))
	f.Add("sha256:" + strings.Repeat("0", 63) + "/")
	f.Fuzz(func(t *testing.T, name string) {
		st := openAt(t, "/s", &file.Options{FS: vfstest.NewMemory(), Sync: file.Never})
		ref := store.Ref(name)
		if digits, ok := ref.Hex(); ok && (len(digits) != 64 || strings.Trim(digits, "0123456789abcdef") != "") {
			t.Errorf("%q has the digits %q", name, digits)
		}
		if _, err := st.Blobs().Get(t.Context(), ref); err == nil {
			t.Errorf("there is a blob %q", name)
		}
	})
}
