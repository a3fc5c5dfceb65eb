//go:build unix

package vfs_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-dev/coppice/store/vfs"
)

// What is no regular file is refused at once, by whichever way it is opened: to
// open a pipe would be to wait for whoever writes into it.
func TestSpecialFilesAreNotOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(unix.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("directory"), 0o700), os.Symlink("/dev/zero", at("device"))); err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("", "s") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	listener, err := net.Listen("unix", filepath.Join(short, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := os.Symlink(filepath.Join(short, "socket"), at("socket")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ways := map[string]func(name string) error{
		"Open":         func(name string) error { f, err := vfs.Open(at(name)); return closed(f, err) },
		"ReadFile":     func(name string) error { _, err := vfs.ReadFile(at(name), 10); return err },
		"CheckRegular": func(name string) error { return vfs.CheckRegular(at(name)) },
	}
	for what, flag := range map[string]int{"read": read, "rw": rw, "create": create, "append": appending, "write": os.O_WRONLY} {
		ways["OpenFile "+what] = func(name string) error {
			if real, err := filepath.EvalSymlinks(at(name)); err == nil {
				name = real
			}
			if name == "/dev/zero" && os.Geteuid() != 0 && flag != read {
				return vfs.ErrNotRegular // we may not even try
			}
			f, err := vfs.OS{}.OpenFile(name, flag, 0o600)
			if err == nil {
				f.Close()
			}
			return err
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, name := range []string{"pipe", "directory", "device", "socket"} {
			for way, open := range ways {
				err := open(name)
				if !errors.Is(err, vfs.ErrNotRegular) || err != vfs.ErrNotRegular && !strings.Contains(err.Error(), strings.TrimPrefix(name, "a ")) {
					t.Errorf("%s of a %s: error %v", way, name, err)
				}
			}
			if name != "device" && name != "socket" { // which lead out of the directory
				if f, err := vfs.OpenIn(root, name); !errors.Is(closed(f, err), vfs.ErrNotRegular) {
					t.Errorf("OpenIn of a %s: error %v", name, err)
				}
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("an open waits for a pipe")
	}
}

func closed(f *os.File, err error) error {
	if err == nil {
		f.Close()
	}
	return err
}

// Settings may be a link to a file elsewhere, and have a limit.
func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("12345"), 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{0, 5, 6} {
		if data, err := vfs.ReadFile(link, limit); err != nil || string(data) != "12345" {
			t.Errorf("limit %d: %q, %v", limit, data, err)
		}
	}
	if _, err := vfs.ReadFile(link, 4); !errors.Is(err, vfs.ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
	if _, err := vfs.ReadFile(filepath.Join(dir, "none"), 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	if err := vfs.CheckRegular(filepath.Join(dir, "none")); err != nil {
		t.Errorf("none: %v", err)
	}
}

// A file that takes the place of another gets its owner and its mode.
func TestReplacementIsLikeTheFileBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o751|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(name, 1234, 4321); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, 0o751|fs.ModeSetuid); err != nil { // chown takes it away
			t.Fatal(err)
		}
	}
	before, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, temp := range []string{"", "temporary"} { // with and without a name
		err = vfs.Replace(vfs.In(root), "file", vfs.Replacement{Like: before, Temp: temp}, vfs.Data([]byte("new")))
		if err != nil {
			t.Fatal(err)
		}
		after, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		is, was := after.Sys().(*syscall.Stat_t), before.Sys().(*syscall.Stat_t)
		if after.Mode() != before.Mode() || is.Uid != was.Uid || is.Gid != was.Gid {
			t.Errorf("%v of %d:%d became %v of %d:%d", before.Mode(), was.Uid, was.Gid, after.Mode(), is.Uid, is.Gid)
		}
	}
}
