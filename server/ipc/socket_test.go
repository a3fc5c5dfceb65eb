package ipc_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server/ipc"
)

func TestSocketPath(t *testing.T) {
	t.Parallel()
	env := func(value string) func(string) string {
		return func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": value}[name] }
	}
	run := t.TempDir()
	if got := ipc.SocketPath(env(run)); got != filepath.Join(run, "coppice.sock") {
		t.Errorf("with a runtime directory: %s", got)
	}
	for _, none := range []string{"", "relative"} {
		dir, name := filepath.Split(ipc.SocketPath(env(none)))
		if name != "coppice.sock" || !strings.HasPrefix(dir, os.TempDir()) || dir == os.TempDir() {
			t.Errorf("with %q: %s", none, dir+name)
		}
	}
}

// TestListen: the socket and a directory that has to be made are the user's alone.
func TestListen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(filepath.Dir(socketPath(t)), "new", "s")
	l, err := ipc.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want && runtime.GOOS != "windows" {
			t.Errorf("the mode of %s is %o", name, got)
		}
	}
	if _, err := ipc.Listen(path); home.KindOf(err) != home.KindLocked || !strings.Contains(err.Error(), path) {
		t.Errorf("a second server: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	again, err := ipc.Listen(path)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestListenOnWhatIsThere: the socket of a dead server is replaced; that of a live one and
// everything else is left alone.
func TestListenOnWhatIsThere(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ipc.Listen(path); home.KindOf(err) != home.KindLocked {
		t.Errorf("another program listens: %v", err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := ipc.Listen(path)
	if err != nil {
		t.Fatalf("after it has died: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("a letter"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ipc.Listen(path); home.KindOf(err) != home.KindExists {
		t.Errorf("a file: %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != "a letter" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if _, err := ipc.Listen(path + strings.Repeat("x", 100)); home.KindOf(err) != home.KindInvalid {
		t.Errorf("a long path: %v", err)
	}
}

// TestListenTogether: of servers that start at the same time over a dead one, one wins, and its
// socket stays.
func TestListenTogether(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var won []net.Listener
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			l, err := ipc.Listen(path)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, l)
			} else if home.KindOf(err) != home.KindLocked {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Fatalf("%d of them listen", len(won))
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Close(), won[0].Close()); err != nil {
		t.Error(err)
	}
}

// TestUnsafeDirectory: where others may write, one of them could put a socket in its place.
func TestUnsafeDirectory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // it has no such modes
	}
	path := socketPath(t)
	for _, mode := range []os.FileMode{0o777, 0o770, 0o720} {
		if err := os.Chmod(filepath.Dir(path), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := ipc.Listen(path); err == nil || !strings.Contains(err.Error(), "other users may write to it") {
			t.Errorf("%v: %v", mode, err)
		}
	}
	if err := os.Chmod(filepath.Dir(path), 0o770|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	l, err := ipc.Listen(path)
	if err != nil {
		t.Fatalf("where no one can remove what belongs to others: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestOtherUser: a connection of another user is closed before anything is read or said.
func TestOtherUser(t *testing.T) {
	t.Parallel()
	switch runtime.GOOS {
	case "linux", "darwin", "freebsd":
	default:
		return // the modes protect the socket there
	}
	path := socketPath(t)
	l, err := ipc.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := ipc.New(newHome(t), nil)
	s.AcceptUser(os.Getuid() + 1)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	c := dial(t, path)
	_, _ = c.Write([]byte("{\"type\":\"session_create\"}\n"))
	if said, err := io.ReadAll(c.Conn); len(said) > 0 || (err != nil && !errors.Is(err, syscall.ECONNRESET)) {
		t.Errorf("it heard %q, %v", said, err)
	}
	if err := errors.Join(s.Shutdown(t.Context()), <-done); err != nil {
		t.Error(err)
	}
}
