package vfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/store/vfs"
)

// Whatever the name, nothing outside of the directory is read, made or moved.
func TestNoNameLeadsOutOfARoot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inside, outside := filepath.Join(dir, "inside"), filepath.Join(dir, "outside")
	d := disk{vfs.OS{}, t, dir}
	d.mkdir("inside")
	d.mkdir("outside")
	d.save("outside/file", "theirs")
	if err := os.Symlink(outside, filepath.Join(inside, "link")); err != nil {
		t.Skip(err)
	}
	d.must(os.Symlink("../outside", filepath.Join(inside, "relative")))
	root, err := os.OpenRoot(inside)
	d.must(err)
	defer root.Close()
	fsys := vfs.In(root)
	for _, name := range []string{"../outside/file", filepath.Join(outside, "file"), "link/file", "relative/file", "relative/../../outside/file"} {
		if f, err := fsys.OpenFile(name, os.O_RDWR, 0); err == nil {
			f.Close()
			t.Errorf("%s was opened", name)
		}
		if err := vfs.Replace(fsys, name, vfs.Replacement{}, vfs.Data([]byte("ours"))); err == nil {
			t.Errorf("%s was replaced", name)
		}
		for what, err := range map[string]error{
			"removed": fsys.Remove(name), "changed": fsys.Chmod(name, 0o777), "made": fsys.MkdirAll(name+"/x", 0o700),
		} {
			if err == nil {
				t.Errorf("%s was %s", name, what)
			}
		}
		if _, err := fsys.Stat(name); err == nil {
			t.Errorf("%s was looked at", name)
		}
	}
	if got := d.read("outside/file"); got != "theirs" || len(d.tree("outside")) != 1 {
		t.Errorf("outside: %q, %q", got, d.tree("outside"))
	}
}
