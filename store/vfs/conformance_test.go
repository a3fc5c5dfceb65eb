package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

const (
	read      = os.O_RDONLY
	rw        = os.O_RDWR
	create    = os.O_RDWR | os.O_CREATE
	appending = os.O_RDWR | os.O_APPEND
)

func TestOpenFile(t *testing.T) {
	t.Parallel()
	anyError := errors.New("any")
	tests := []struct {
		name string
		flag int
		text string // afterwards, if there is no error
		err  error
	}{
		{"file", read, "old", nil},
		{"file", rw, "old", nil},
		{"file", create, "old", nil},
		{"file", rw | os.O_TRUNC, "", nil},
		{"file", create | os.O_TRUNC, "", nil},
		{"file", create | os.O_EXCL, "", fs.ErrExist},
		{"none", read, "", fs.ErrNotExist},
		{"none", rw | os.O_TRUNC, "", fs.ErrNotExist},
		{"none", create, "", nil},
		{"none", create | os.O_EXCL, "", nil},
		{"dir", rw, "", anyError},
		{"dir", create | os.O_EXCL, "", fs.ErrExist},
		{"none/file", create, "", fs.ErrNotExist},
		{"file/file", create, "", anyError},
	}
	onEach(t, func(t *testing.T, d disk) {
		for _, test := range tests {
			d.write("file", "old").Close()
			d.mkdir("dir")
			f, err := d.OpenFile(d.path(test.name), test.flag, 0o600)
			switch {
			case err == nil && test.err == nil:
				if got := d.readFile(f); got != test.text {
					t.Errorf("open %s %#x: content %q, want %q", test.name, test.flag, got, test.text)
				}
				d.must(f.Close())
			case err == nil || test.err == nil:
				t.Errorf("open %s %#x: error %v, want %v", test.name, test.flag, err, test.err)
			case test.err != anyError && !errors.Is(err, test.err):
				t.Errorf("open %s %#x: error %v, want %v", test.name, test.flag, err, test.err)
			}
			if d.exists("none") {
				d.remove("none")
			}
		}
		if _, err := d.OpenFile("", create, 0o600); err == nil {
			t.Error("a file without a name was opened")
		}
	})
}

func TestRelativeNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, d := range []disk{{vfs.OS{}, t, ""}, {vfstest.NewMemory(), t, ""}} {
		d.mkdir("a/b")
		d.write("a/./b/../b/file", "text")
		if got := d.read("a/b/file"); got != "text" {
			t.Errorf("%T: content %q", d.FS, got)
		}
	}
}

func TestWriteAppends(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		one := d.open("log", create|os.O_APPEND)
		two := d.open("log", rw|os.O_APPEND)
		d.append(one, "a")
		d.append(two, "bc")
		d.append(one, "")
		d.append(one, "d")
		d.must(one.Truncate(2))
		d.append(two, "e")
		if got := d.read("log"); got != "abe" {
			t.Errorf("content %q, want %q", got, "abe")
		}
	})
}

func TestWriteContinues(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		d.write("file", "0123456789")
		f := d.open("file", rw)
		d.append(f, "ab")
		if _, err := f.ReadAt(make([]byte, 3), 6); err != nil {
			t.Error(err)
		}
		d.append(f, "cd")
		if got := d.read("file"); got != "abcd456789" {
			t.Errorf("content %q", got)
		}
		d.must(f.Truncate(2))
		d.append(f, "ef")
		if got := d.read("file"); got != "ab\x00\x00ef" {
			t.Errorf("content after a truncation %q", got)
		}
	})
}

func TestConcurrentAppends(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		const writers, lines = 4, 50
		f := d.open("log", create|os.O_APPEND)
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for range lines {
					f.Write([]byte("0123456\n"))
					f.Stat()
				}
			})
		}
		wg.Wait()
		if got := d.stat(f).Size; got != writers*lines*8 {
			t.Errorf("size %d", got)
		}
	})
}

func TestReadAt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		off  int64
		size int
		text string
		err  error
	}{
		{0, 5, "01234", nil},
		{5, 5, "56789", nil},
		{5, 6, "56789", io.EOF},
		{10, 1, "", io.EOF},
		{99, 1, "", io.EOF},
		{3, 0, "", nil},
	}
	onEach(t, func(t *testing.T, d disk) {
		d.write("file", "0123456789")
		f := d.open("file", read)
		for _, test := range tests {
			b := make([]byte, test.size)
			n, err := f.ReadAt(b, test.off)
			if string(b[:n]) != test.text || err != test.err {
				t.Errorf("ReadAt(%d bytes, %d) = %q, %v", test.size, test.off, b[:n], err)
			}
		}
		if _, err := f.ReadAt(make([]byte, 1), -1); err == nil || err == io.EOF {
			t.Errorf("ReadAt(-1): %v", err)
		}
	})
}

func TestAccess(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		d.write("file", "text")
		f := d.open("file", read)
		if _, err := f.Write([]byte("x")); err == nil {
			t.Error("wrote to a file opened for reading")
		}
		if err := f.Truncate(0); err == nil {
			t.Error("truncated a file opened for reading")
		}
		f = d.open("file", os.O_WRONLY)
		if _, err := f.ReadAt(make([]byte, 1), 0); err == nil {
			t.Error("read from a file opened for writing")
		}
		if got := d.read("file"); got != "text" {
			t.Errorf("content %q", got)
		}
	})
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		f := d.write("file", "0123456789")
		for _, step := range []struct {
			size int64
			text string
		}{{4, "0123"}, {4, "0123"}, {6, "0123\x00\x00"}, {0, ""}, {2, "\x00\x00"}} {
			d.must(f.Truncate(step.size))
			if got := d.read("file"); got != step.text {
				t.Errorf("Truncate(%d): content %q, want %q", step.size, got, step.text)
			}
		}
		if err := f.Truncate(-1); err == nil {
			t.Error("Truncate(-1) gave no error")
		}
	})
}

func TestMkdirAll(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		d.mkdir("a/b/c")
		d.mkdir("a/b/c")
		d.mkdir("a/d")
		d.write("a/file", "")
		want := []string{"a/", "a/b/", "a/b/c/", "a/d/", "a/file"}
		if got := d.tree(""); !slices.Equal(got, want) {
			t.Errorf("tree %q, want %q", got, want)
		}
		for _, name := range []string{"a/file", "a/file/b"} {
			if err := d.MkdirAll(d.path(name), 0o700); err == nil {
				t.Errorf("made a directory %s where there is a file", name)
			}
		}
		if err := d.MkdirAll("", 0o700); err == nil {
			t.Error("made a directory without a name")
		}
		top := string(filepath.Separator)
		if d.dir == "." {
			top = "."
		}
		d.must(d.MkdirAll(top, 0o700))
	})
}

func TestMkdirAllConcurrently(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := d.MkdirAll(d.path("a/b/c/d"), 0o700); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func TestRename(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		d.mkdir("a")
		d.mkdir("b")
		d.write("a/one", "1").Close()
		d.write("b/two", "2").Close()
		d.rename("a/one", "a/one")
		d.rename("a/one", "a/uno")
		d.rename("a/uno", "b/two")
		if got := d.tree(""); !slices.Equal(got, []string{"a/", "b/", "b/two"}) {
			t.Errorf("tree %q", got)
		}
		if got := d.read("b/two"); got != "1" {
			t.Errorf("content %q", got)
		}
		d.rename("b", "a/b")
		if got := d.tree(""); !slices.Equal(got, []string{"a/", "a/b/", "a/b/two"}) {
			t.Errorf("tree %q", got)
		}
	})
}

func TestRenameRefuses(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		d.mkdir("a/b")
		d.write("file", "text").Close()
		before := d.tree("")
		for _, test := range [][2]string{
			{"none", "other"},
			{"none/none", "other"},
			{"file", "none/other"},
			{"file", "a"},
			{"a", "file"},
			{"a", "a/b/c"},
			{"file", "file/file"},
		} {
			if err := d.Rename(d.path(test[0]), d.path(test[1])); err == nil {
				t.Errorf("renamed %s to %s", test[0], test[1])
			}
		}
		if err := d.Rename(d.path("none"), d.path("x")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("rename of nothing: %v", err)
		}
		if got := d.tree(""); !slices.Equal(got, before) {
			t.Errorf("tree %q, want %q", got, before)
		}
	})
}

func TestLink(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		d.mkdir("a")
		f := d.write("one", "1")
		d.must(d.Link(d.path("one"), d.path("a/two")))
		d.append(f, "2")
		if got := d.read("a/two"); got != "12" || !d.has("a/two", f) {
			t.Errorf("the second name leads to %q", got)
		}
		if ok, err := f.TryLock(); !ok || err != nil {
			t.Fatal(ok, err)
		}
		other := d.open("a/two", rw)
		if ok, err := other.TryLock(); ok || err != nil {
			t.Errorf("locked under both names: %v, %v", ok, err)
		}
		d.must(other.Close())
		d.must(f.Close())
		d.remove("one")
		if got := d.read("a/two"); got != "12" || d.exists("one") {
			t.Errorf("the name that is left leads to %q", got)
		}
		d.write("one", "new").Close()
		if err := d.Link(d.path("one"), d.path("a/two")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a name that was taken: %v", err)
		}
		if err := d.Link(d.path("none"), d.path("three")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a link to nothing: %v", err)
		}
		if err := d.Link(d.path("a"), d.path("b")); err == nil {
			t.Error("a directory has two names")
		}
		if got := d.tree(""); !slices.Equal(got, []string{"a/", "a/two", "one"}) || d.read("a/two") != "12" {
			t.Errorf("tree %q", got)
		}
	})
}

func TestRemove(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		d.mkdir("dir")
		d.write("dir/file", "").Close()
		if err := d.Remove(d.path("dir")); err == nil {
			t.Error("removed a directory that is not empty")
		}
		d.remove("dir/file")
		d.remove("dir")
		for _, name := range []string{"dir", "dir/file"} {
			if err := d.Remove(d.path(name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("remove of nothing: %v", err)
			}
		}
		if err := d.Remove(string(filepath.Separator)); err == nil {
			t.Error("removed the root")
		}
	})
}

func TestReadDir(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		for _, name := range []string{"c", "a", "b"} {
			d.write(name, "12345").Close()
		}
		d.mkdir("ab")
		if got := d.tree(""); !slices.Equal(got, []string{"a", "ab/", "b", "c"}) {
			t.Errorf("tree %q", got)
		}
		list, err := d.ReadDir(d.dir)
		d.must(err)
		info, err := list[0].Info()
		d.must(err)
		if info.Size() != 5 || list[0].IsDir() || !list[1].IsDir() {
			t.Errorf("entries %v", list)
		}
		for _, name := range []string{"a", "none"} {
			if _, err := d.ReadDir(d.path(name)); err == nil {
				t.Errorf("listed %s", name)
			}
		}
	})
}

func TestLstat(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		start := time.Now().Add(-time.Minute)
		d.mkdir("dir")
		d.write("dir/file", "12345").Close()
		for _, test := range []struct {
			name string
			mode fs.FileMode
		}{{"dir", fs.ModeDir | 0o700}, {"dir/file", 0o600}} {
			info, err := d.Lstat(d.path(test.name))
			d.must(err)
			if info.Name() != filepath.Base(test.name) || info.IsDir() != test.mode.IsDir() {
				t.Errorf("%s: name %s, mode %v", test.name, info.Name(), info.Mode())
			}
			if info.Mode() != test.mode && runtime.GOOS != "windows" {
				t.Errorf("%s: mode %v, want %v", test.name, info.Mode(), test.mode)
			}
			if !test.mode.IsDir() && info.Size() != 5 {
				t.Errorf("%s: size %d", test.name, info.Size())
			}
			if m := info.ModTime(); m.Before(start) || m.After(time.Now().Add(time.Minute)) {
				t.Errorf("%s: modified %v", test.name, m)
			}
			if _, isMemory := d.FS.(*vfstest.Memory); isMemory && info.Sys() != nil {
				t.Errorf("%s: Sys %v", test.name, info.Sys())
			}
		}
		for _, name := range []string{"none", "dir/none"} {
			if _, err := d.Lstat(d.path(name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Lstat(%s): %v", name, err)
			}
		}
		if _, err := d.Lstat(d.path("dir/file/x")); err == nil {
			t.Error("found a file inside a file")
		}
		if _, err := d.Lstat(""); err == nil {
			t.Error("found a file without a name")
		}
	})
}

func TestSyncDir(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		d.write("file", "").Close()
		d.syncDir("")
		if runtime.GOOS == "windows" {
			return
		}
		for _, name := range []string{"none", "file"} {
			if err := d.SyncDir(d.path(name)); err == nil {
				t.Errorf("synced %s, which is no directory", name)
			}
		}
	})
}

func TestStat(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		f := d.write("file", "12345")
		d.must(f.Sync())
		st := d.stat(f)
		info, err := d.Lstat(d.path("file"))
		d.must(err)
		if st.Size != 5 || st.Size != info.Size() || !d.has("file", f) {
			t.Errorf("Stat = %v, Lstat says %d bytes", st, info.Size())
		}
		other := d.write("other", "12345")
		if st.File == d.stat(other).File || st.File != d.stat(f).File {
			t.Errorf("two files are %v and %v", st.File, d.stat(other).File)
		}
	})
}

// An open file is the one at its name until it is removed, replaced or renamed,
// however many other names it has.
func TestStatTellsWhetherAnOpenFileHasItsName(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed or replaced")
	}
	onEach(t, func(t *testing.T, d disk) {
		for what, unlink := range map[string]func(){
			"removed":  func() { d.remove("file") },
			"replaced": func() { d.write("new", "new"); d.rename("new", "file") },
		} {
			f := d.write("file", "old ")
			unlink()
			if d.has("file", f) {
				t.Errorf("%s file still has its name", what)
			}
			d.append(f, "text")
			d.must(f.Sync())
			if got := d.readFile(f); got != "old text" {
				t.Errorf("%s file: content %q", what, got)
			}
		}
		f := d.write("file", "")
		d.rename("file", "moved")
		if d.has("file", f) || !d.has("moved", f) {
			t.Error("a renamed file is not the one at its new name, or still at the old one")
		}
	})
}

func TestLock(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		one, two := d.write("file", ""), d.open("file", read)
		try := func(f vfs.File, want bool) {
			t.Helper()
			if got, err := f.TryLock(); err != nil || got != want {
				t.Errorf("TryLock = %v, %v, want %v", got, err, want)
			}
		}
		d.must(one.Unlock())
		try(one, true)
		try(one, true)
		try(two, false)
		d.must(two.Unlock())
		try(two, false)
		d.append(one, "a locked file can be written")
		if got := d.readFile(two); got == "" {
			t.Error("a locked file cannot be read")
		}
		d.must(one.Unlock())
		try(two, true)
		try(one, false)
		other := d.open("file", read)
		d.must(other.Close())
		try(one, false)
		d.must(two.Close())
		try(one, true)
		try(d.write("other", ""), true)
	})
}

func TestSharedLock(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		one, two, three := d.write("file", ""), d.open("file", read), d.open("file", read)
		try := func(name string, lock func() (bool, error), want bool) {
			t.Helper()
			if got, err := lock(); err != nil || got != want {
				t.Errorf("%s = %v, %v, want %v", name, got, err, want)
			}
		}
		try("the first TryRLock", one.TryRLock, true)
		try("the second TryRLock", two.TryRLock, true)
		try("TryRLock of the same file again", two.TryRLock, true)
		try("TryLock beside two", three.TryLock, false)
		d.must(one.Unlock())
		try("TryLock beside one", three.TryLock, false)
		d.must(two.Unlock())
		try("TryLock beside none", three.TryLock, true)
		try("TryRLock beside TryLock", one.TryRLock, false)
		if _, err := three.TryRLock(); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("TryRLock with the exclusive lock: %v", err)
		}
		d.must(three.Close())
		try("TryRLock after the other was closed", one.TryRLock, true)
		if _, err := one.TryLock(); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("TryLock with a shared lock: %v", err)
		}
		try("TryLock beside the one that wanted more", two.TryLock, false)
		d.must(one.Close())
		try("TryLock after that was closed", two.TryLock, true)
	})
}

func TestClosed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		f := d.write("file", "text")
		d.must(f.Close())
		_, readErr := f.ReadAt(make([]byte, 1), 0)
		_, writeErr := f.Write([]byte("x"))
		_, statErr := f.Stat()
		_, lockErr := f.TryLock()
		_, sharedErr := f.TryRLock()
		for i, err := range []error{
			readErr, writeErr, statErr, lockErr, sharedErr,
			f.Unlock(), f.Sync(), f.Truncate(0), f.Close(),
		} {
			if !errors.Is(err, fs.ErrClosed) {
				t.Errorf("call %d on a closed file: %v", i, err)
			}
		}
	})
}

// TestCloseWhileUsed looks for calls that reach a file which was opened later
// and got the number of the closed one. All files have their own size.
func TestCloseWhileUsed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d disk) {
		for i := range 50 {
			name, text := "ab"[i%2:i%2+1], "12"[:1+i%2]
			f := d.write(name, text)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					for {
						st, err := f.Stat()
						if err != nil {
							return
						}
						if int(st.Size) != len(text) {
							t.Errorf("Stat reached a file of %d bytes, want %d", st.Size, len(text))
							return
						}
					}
				})
			}
			runtime.Gosched()
			d.must(f.Close())
			d.write("other"+name, "longer text").Close()
			wg.Wait()
		}
	})
}
