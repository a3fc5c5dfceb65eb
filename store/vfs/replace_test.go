package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

func TestReplace(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		for _, text := range []string{"one", "two"} {
			before := "the old file is not there"
			o := vfs.Replacement{Before: func() error {
				if _, err := d.Lstat(d.path("file")); err == nil {
					before = d.read("file")
				}
				return nil
			}}
			d.must(vfs.Replace(d.FS, d.path("file"), o, vfs.Data([]byte(text))))
			if got := d.read("file"); got != text {
				t.Errorf("the file has %q", got)
			}
			if text == "two" && before != "one" {
				t.Errorf("before the rename: %q", before)
			}
		}
		info, err := d.Lstat(d.path("file"))
		d.must(err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("the mode is %v", info.Mode())
		}
		stop := errors.New("stop")
		for name, o := range map[string]vfs.Replacement{"before": {Before: func() error { return stop }}, "write": {}} {
			err := vfs.Replace(d.FS, d.path("file"), o, func(io.Writer) error {
				if name == "write" {
					return stop
				}
				return nil
			})
			if !errors.Is(err, stop) || d.read("file") != "two" {
				t.Errorf("%s: error %v, the file has %q", name, err, d.read("file"))
			}
		}
		if got := tree(d); got != "file" {
			t.Errorf("left behind: %s", got)
		}
	})
}

// The system takes the umask away from what a file is made with. Replace restores that
// unless it is told not to.
func TestReplaceKeepsTheUmaskIfAsked(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no umask")
	}
	d := disk{vfs.OS{}, t, t.TempDir()}
	made, err := os.OpenFile(d.path("made"), os.O_CREATE|os.O_WRONLY, 0o666)
	d.must(err)
	d.must(made.Close())
	want, err := d.Lstat(d.path("made"))
	d.must(err)
	for umask, mode := range map[bool]fs.FileMode{true: want.Mode().Perm(), false: 0o666} {
		d.must(vfs.Replace(d.FS, d.path("file"), vfs.Replacement{Perm: 0o666, Umask: umask}, vfs.Data(nil)))
		if info, err := d.Lstat(d.path("file")); err != nil || info.Mode().Perm() != mode {
			t.Errorf("umask %v: %v, %v, want %v", umask, info.Mode(), err, mode)
		}
	}
}

// A power cut at any moment leaves the old file or the new one, and after Replace
// the new one. Leaving out one of the syncs is noticed.
func TestReplaceSurvivesPowerCuts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"":              {"new"}, // when it has returned
		"sync":          {"", "new", "old"},
		"syncdir":       {"new", "old"},
		"before rename": {"old"},
	} {
		d := newMemoryDisk(t)
		d.save("file", "old")
		mem := d.FS.(*vfstest.Memory)
		seen := make(map[string]bool)
		cut := func(disk *vfstest.Memory) {
			for _, loss := range []vfstest.Loss{vfstest.LoseAll, vfstest.LoseNothing} {
				after := d
				after.FS = disk.CrashClone(nil, loss)
				seen[strings.Trim(after.read("file"), "\x00")] = true
			}
		}
		renamed := false
		faulty := &vfstest.Faulty{FS: mem, Before: func(op vfstest.Op) error {
			renamed = renamed || op.Kind == vfstest.OpRename
			if op.Kind.Mutates() && (name != "before rename" || !renamed) {
				cut(mem)
			}
			return nil
		}}
		err := vfs.Replace(careless{faulty, name}, d.path("file"), vfs.Replacement{}, vfs.Data([]byte("new")))
		d.must(err)
		if name != "before rename" {
			if name == "" && (len(seen) != 2 || !seen["old"] || !seen["new"]) {
				t.Errorf("on the way cuts leave %v", seen)
			}
			if name != "sync" {
				clear(seen)
			}
			cut(mem)
		}
		if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
			t.Errorf("%q: cuts leave %q, want %q", name, got, want)
		}
	}
}

// careless leaves out a kind of sync.
type careless struct {
	vfs.FS
	what string
}

func (c careless) SyncDir(name string) error {
	if c.what == "syncdir" {
		return nil
	}
	return c.FS.SyncDir(name)
}

func (c careless) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err == nil && c.what == "sync" {
		return carelessFile{f}, nil
	}
	return f, err
}

type carelessFile struct{ vfs.File }

func (carelessFile) Sync() error { return nil }

// Each operation fails once: the file is the old one, unless the error says that
// it was replaced.
func TestReplaceUnderFaults(t *testing.T) {
	t.Parallel()
	kinds := vfstest.OpCreate | vfstest.OpWrite | vfstest.OpSync | vfstest.OpClose | vfstest.OpRename | vfstest.OpSyncDir
	for n := int64(1); n <= 6; n++ {
		d := newMemoryDisk(t)
		d.save("file", "old")
		faulty := &vfstest.Faulty{FS: d.FS, Before: vfstest.FailAt(n, kinds, syscall.EIO)}
		err := vfs.Replace(faulty, d.path("file"), vfs.Replacement{}, vfs.Data([]byte("new")))
		want := "old"
		if errors.Is(err, vfs.ErrNotDurable) {
			want = "new"
		}
		if !errors.Is(err, syscall.EIO) || d.read("file") != want || tree(d) != "file" || (n == 6) != (want == "new") {
			t.Errorf("fault %d: error %v, the file has %q, there is %s", n, err, d.read("file"), tree(d))
		}
	}
}

// A directory that this process may have made is synced, and so are its parents
// up to the first that somebody else made.
func TestSyncUpStopsAtOthersDirectories(t *testing.T) {
	t.Parallel()
	d := newMemoryDisk(t)
	d.must(d.MkdirAll(d.path("theirs/home"), 0o755))
	var synced []string
	faulty := &vfstest.Faulty{FS: d.FS, Before: func(op vfstest.Op) error {
		if op.Kind == vfstest.OpSyncDir {
			synced = append(synced, op.Name)
		}
		if op.Kind == vfstest.OpSyncDir && op.Name == d.path("theirs/home") {
			return fs.ErrPermission
		}
		return nil
	}}
	d.must(d.MkdirAll(d.path("theirs/home/a/b"), 0o700))
	d.must(vfs.SyncUp(faulty, d.path("theirs/home/a/b"), 0o700))
	if want := []string{d.path("theirs/home/a"), d.path("theirs/home")}; !slices.Equal(synced, want) {
		t.Errorf("synced %v, want %v", synced, want)
	}
}

// Where a file cannot have two names, it is moved all the same, and nothing is
// replaced.
func TestMoveNew(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		noLinks := &vfstest.Faulty{FS: d.FS, Before: func(op vfstest.Op) error {
			if op.Kind == vfstest.OpCreate && op.To != "" {
				return syscall.EPERM
			}
			return nil
		}}
		for i, fsys := range []vfs.FS{d.FS, noLinks} {
			name := d.path("new" + string(rune('0'+i)))
			d.write("one", "1").Close()
			d.must(vfs.MoveNew(fsys, d.path("one"), name, nil))
			d.write("one", "2").Close()
			if err := vfs.MoveNew(fsys, d.path("one"), name, nil); !errors.Is(err, fs.ErrExist) {
				t.Errorf("moving onto a file: %v", err)
			}
			if err := vfs.Replace(fsys, name, vfs.Replacement{New: true}, vfs.Data([]byte("3"))); !errors.Is(err, fs.ErrExist) {
				t.Errorf("replacing a file that must not be there: %v", err)
			}
			if got := d.read(filepath.Base(name)); got != "1" {
				t.Errorf("the file has %q", got)
			}
			d.must(d.Remove(d.path("one")))
		}
	})
}
