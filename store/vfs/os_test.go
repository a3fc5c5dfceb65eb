package vfs_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/store/vfs"
)

func TestSymlinkIsRefused(t *testing.T) {
	t.Parallel()
	d := disk{vfs.OS{}, t, t.TempDir()}
	d.save("file", "text")
	for link, target := range map[string]string{"link": "file", "dangling": "none"} {
		if err := os.Symlink(d.path(target), d.path(link)); err != nil {
			t.Skip(err) // Windows may not allow it
		}
		for _, flag := range []int{read, rw, rw | os.O_TRUNC, create, create | os.O_APPEND} {
			_, err := d.OpenFile(d.path(link), flag, 0o600)
			if !errors.Is(err, vfs.ErrSymlink) || !strings.Contains(err.Error(), "is a symbolic link") {
				t.Errorf("open of %s with %#x: %v", link, flag, err)
			}
		}
		if _, err := d.OpenFile(d.path(link), create|os.O_EXCL, 0o600); err == nil {
			t.Errorf("%s was created exclusively", link)
		}
		if info, err := d.Lstat(d.path(link)); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("Lstat of %s: %v, %v", link, info, err)
		}
	}
	if d.exists("none") || d.read("file") != "text" {
		t.Error("an open went through a link")
	}
}

func TestSymlinkOnTheWay(t *testing.T) {
	t.Parallel()
	d := disk{vfs.OS{}, t, t.TempDir()}
	d.mkdir("dir")
	if err := os.Symlink(d.path("dir"), d.path("link")); err != nil {
		t.Skip(err)
	}
	d.save("link/file", "text")
	d.mkdir("link/sub")
	if got := d.read("dir/file"); got != "text" || !d.exists("dir/sub") {
		t.Errorf("content %q", got)
	}
}

const lockFileVariable = "VFS_TEST_LOCK_FILE"

// TestLockHelper is the other process of TestLockBetweenProcesses: it says
// whether it got the lock and keeps it until its input ends.
func TestLockHelper(t *testing.T) {
	t.Parallel()
	name := os.Getenv(lockFileVariable)
	if name == "" {
		return
	}
	f, err := vfs.OS{}.OpenFile(name, rw, 0)
	if err != nil {
		t.Fatal(err)
	}
	ok, err := f.TryLock()
	fmt.Println("lock:", ok, err)
	io.Copy(io.Discard, os.Stdin)
}

// otherProcess starts a process that tries the lock, and returns what it said
// and a function that kills it.
func otherProcess(t *testing.T, name string) (answer string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockHelper$")
	cmd.Env = append(os.Environ(), lockFileVariable+"="+name)
	// The child waits for the end of this pipe, so it ends with this process.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() { cmd.Process.Kill(); cmd.Wait() }
	t.Cleanup(kill)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "lock:") {
			return lines.Text(), kill
		}
	}
	t.Fatal("the other process said nothing")
	return "", nil
}

func TestLockBetweenProcesses(t *testing.T) {
	t.Parallel()
	d := disk{vfs.OS{}, t, t.TempDir()}
	f := d.write("file", "")
	said, kill := otherProcess(t, d.path("file"))
	if said != "lock: true <nil>" {
		t.Fatalf("the other process said %q", said)
	}
	if ok, err := f.TryLock(); ok || err != nil {
		t.Errorf("TryLock = %v, %v while the other process has the lock", ok, err)
	}
	kill()
	if ok, err := f.TryLock(); !ok || err != nil {
		t.Errorf("TryLock = %v, %v after the other process was killed", ok, err)
	}
	if said, _ := otherProcess(t, d.path("file")); said != "lock: false <nil>" {
		t.Errorf("the other process said %q", said)
	}
}

func TestAppendPathDoesNotAllocate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the calls of Windows allocate")
	}
	d := disk{vfs.OS{}, t, t.TempDir()}
	f := d.write("file", "")
	line := []byte("line\n")
	name := d.path("file")
	if n := testing.AllocsPerRun(100, func() { appendLine(f, name, line) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// appendLine does what the store does for each append.
func appendLine(f vfs.File, name string, line []byte) {
	f.TryLock()
	vfs.OS{}.Stat(name)
	f.Write(line)
	f.Unlock()
}

func BenchmarkAppendPath(b *testing.B) {
	d := disk{vfs.OS{}, b, b.TempDir()}
	f := d.write("file", "")
	name, line := d.path("file"), make([]byte, 500)
	b.ReportAllocs()
	for b.Loop() {
		appendLine(f, name, line)
	}
}

func BenchmarkStat(b *testing.B) {
	d := disk{vfs.OS{}, b, b.TempDir()}
	f := d.write("file", "")
	b.ReportAllocs()
	for b.Loop() {
		f.Stat()
	}
}

func BenchmarkTryLock(b *testing.B) {
	d := disk{vfs.OS{}, b, b.TempDir()}
	f := d.write("file", "")
	b.ReportAllocs()
	for b.Loop() {
		f.TryLock()
		f.Unlock()
	}
}
