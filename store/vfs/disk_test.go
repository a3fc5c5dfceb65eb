package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// disk is a file system under test with a directory to work in, and calls that
// must succeed.
type disk struct {
	vfs.FS
	t   testing.TB
	dir string
}

// onEach runs a test on every file system.
func onEach(t *testing.T, test func(t *testing.T, d disk)) {
	t.Run("OS", func(t *testing.T) { test(t, disk{vfs.OS{}, t, t.TempDir()}) })
	t.Run("Root", func(t *testing.T) {
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		test(t, disk{vfs.In(root), t, "."})
	})
	t.Run("Memory", func(t *testing.T) { test(t, newMemoryDisk(t)) })
	t.Run("Faulty", func(t *testing.T) {
		d := newMemoryDisk(t)
		d.FS = &vfstest.Faulty{FS: d.FS}
		test(t, d)
	})
}

func newMemoryDisk(t testing.TB) disk {
	d := disk{vfstest.NewMemory(), t, string(filepath.Separator) + "data"}
	d.mkdir("")
	return d
}

// path returns the full name of a slash-separated name.
func (d disk) path(name string) string { return filepath.Join(d.dir, filepath.FromSlash(name)) }

func (d disk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// mkdir makes a durable directory.
func (d disk) mkdir(name string) {
	d.t.Helper()
	d.must(vfs.Mkdir(d.FS, d.path(name), 0o700))
}

func (d disk) open(name string, flag int) vfs.File {
	d.t.Helper()
	f, err := d.OpenFile(d.path(name), flag, 0o600)
	d.must(err)
	d.t.Cleanup(func() { f.Close() })
	return f
}

// write makes or replaces a file and returns it open for appending.
func (d disk) write(name, text string) vfs.File {
	d.t.Helper()
	f := d.open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND)
	d.append(f, text)
	return f
}

// save is write, made durable, and closed.
func (d disk) save(name, text string) {
	d.t.Helper()
	f := d.write(name, text)
	d.must(f.Sync())
	d.must(f.Close())
	d.must(d.SyncDir(filepath.Dir(d.path(name))))
}

func (d disk) append(f vfs.File, text string) {
	d.t.Helper()
	if n, err := f.Write([]byte(text)); err != nil || n != len(text) {
		d.t.Fatalf("Write = %d, %v, want %d", n, err, len(text))
	}
}

func (d disk) rename(from, to string) {
	d.t.Helper()
	d.must(d.Rename(d.path(from), d.path(to)))
}

func (d disk) remove(name string) {
	d.t.Helper()
	d.must(d.Remove(d.path(name)))
}

func (d disk) syncDir(name string) {
	d.t.Helper()
	d.must(d.SyncDir(d.path(name)))
}

func (d disk) stat(f vfs.File) vfs.Stat {
	d.t.Helper()
	st, err := f.Stat()
	d.must(err)
	return st
}

// has reports whether an open file is the one at a name.
func (d disk) has(name string, f vfs.File) bool {
	d.t.Helper()
	named, err := vfs.HasName(d.FS, f, d.path(name))
	d.must(err)
	return named
}

func (d disk) exists(name string) bool {
	d.t.Helper()
	_, err := d.Lstat(d.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.t.Fatal(err)
	}
	return err == nil
}

// read returns the content of a file.
func (d disk) read(name string) string {
	d.t.Helper()
	f, err := d.OpenFile(d.path(name), os.O_RDONLY, 0)
	d.must(err)
	defer f.Close()
	return d.readFile(f)
}

func (d disk) readFile(f vfs.File) string {
	d.t.Helper()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	d.must(err)
	return string(b)
}

// tree returns all names below a directory, slash-separated and sorted by
// directory; those of directories end in a slash.
func (d disk) tree(name string) []string {
	d.t.Helper()
	list, err := d.ReadDir(d.path(name))
	d.must(err)
	names := []string{}
	for _, e := range list {
		full := filepath.ToSlash(filepath.Join(name, e.Name()))
		if !e.IsDir() {
			names = append(names, full)
			continue
		}
		names = append(names, full+"/")
		names = append(names, d.tree(full)...)
	}
	return names
}
