//go:build unix

package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coppice-dev/coppice/store/vfs"
)

func hello(w io.Writer) error {
	_, err := io.WriteString(w, "hello")
	return err
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWriteOutReplacesOnlyWhenTold(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077)) // which must not close a file that its owner has opened to others
	path := filepath.Join(t.TempDir(), "f")
	if err := vfs.WriteOut(path, false, hello, nil); err != nil || contentOf(t, path) != "hello" {
		t.Fatalf("a new file: %v", err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteOut(path, false, hello, nil); !errors.Is(err, fs.ErrExist) || contentOf(t, path) != "mine" {
		t.Errorf("without being told: %v", err)
	}
	if err := vfs.WriteOut(path, true, hello, nil); err != nil || contentOf(t, path) != "hello" {
		t.Errorf("when told: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the permissions are %v", info.Mode())
	}
	broken := errors.New("broken")
	if err := vfs.WriteOut(path, true, func(io.Writer) error { return broken }, nil); !errors.Is(err, broken) || contentOf(t, path) != "hello" {
		t.Errorf("a write that fails: %v", err)
	}
	refused := func(temp string) error {
		if contentOf(t, temp) != "hello" || contentOf(t, path) != "hello" {
			t.Errorf("the file to check has %q", contentOf(t, temp))
		}
		return broken
	}
	if err := vfs.WriteOut(path, true, hello, refused); !errors.Is(err, broken) || contentOf(t, path) != "hello" {
		t.Errorf("a file that was refused: %v", err)
	}
}

func TestWriteOutFollowsLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link, far := filepath.Join(dir, "f"), filepath.Join(dir, "link"), filepath.Join(dir, "far")
	for name, to := range map[string]string{link: "f", far: link} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := vfs.WriteOut(far, false, hello, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a link that leads to nothing: %v", err)
	}
	for range 2 { // the file is made, then replaced
		if err := vfs.WriteOut(far, true, hello, nil); err != nil || contentOf(t, path) != "hello" {
			t.Errorf("through links: %v", err)
		}
		for _, name := range []string{link, far} {
			if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink == 0 {
				t.Errorf("%s is a link no more", name)
			}
		}
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteOut(loop, true, hello, nil); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("round in circles: %v", err)
	}
}

// Devices are treated as pipes are. A pipe is used here because a mistake would
// destroy the device.
func TestWriteOutWritesIntoWhatIsNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", link); err != nil {
		t.Fatal(err)
	}
	for path, replace := range map[string]bool{pipe: false, link: true} {
		got := make(chan string)
		go func() {
			data, _ := os.ReadFile(pipe)
			got <- string(data)
		}()
		if err := vfs.WriteOut(path, replace, hello, nil); err != nil {
			t.Fatal(err)
		}
		if text := <-got; text != "hello" {
			t.Errorf("the pipe gave %q", text)
		}
		if info, err := os.Lstat(pipe); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
			t.Fatalf("%s is a pipe no more", pipe)
		}
	}
	if err := vfs.WriteOut(dir, true, hello, nil); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a directory: %v", err)
	}
}
