package notify_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/leak"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/notify"
)

func TestMain(m *testing.M) { leak.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listen returns what is told of a directory.
func listen(t *testing.T, n vfs.Notifier, dir string) (told chan string, stop func()) {
	t.Helper()
	told = make(chan string, 1000)
	stop, err := n.Notify(dir, func(name string) { told <- name })
	must(t, err)
	return told, stop
}

func wantTold(t *testing.T, told <-chan string, want string) {
	t.Helper()
	for late := time.After(10 * time.Second); ; {
		select {
		case name := <-told:
			if name == want {
				return
			}
		case <-late:
			t.Fatalf("nothing was told of %q", want)
		}
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	n, dir, other := notify.New(), t.TempDir(), t.TempDir()
	one, stopOne := listen(t, n, dir)
	two, stopTwo := listen(t, n, dir)
	away, stopAway := listen(t, n, other)
	path := filepath.Join(dir, "a")
	must(t, os.WriteFile(path, []byte("x"), 0o600))
	for _, told := range []<-chan string{one, two} {
		wantTold(t, told, "a")
	}
	stopTwo()
	stopTwo() // which does nothing
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("more")
	must(t, errors.Join(err, f.Close()))
	wantTold(t, one, "a")
	must(t, os.Rename(path, filepath.Join(dir, "b")))
	wantTold(t, one, "b")
	must(t, os.Remove(filepath.Join(dir, "b")))
	wantTold(t, one, "b")
	if len(away) > 0 {
		t.Errorf("the other directory has %d notices", len(away))
	}
	must(t, os.Remove(dir))
	wantTold(t, one, "")
	stopOne()
	stopAway()
	if _, err := n.Notify(dir, func(string) {}); err == nil {
		t.Error("a directory that does not exist is watched")
	}
	// It can begin again.
	again, stop := listen(t, n, other)
	must(t, os.WriteFile(filepath.Join(other, "c"), nil, 0o600))
	wantTold(t, again, "c")
	stop()
}
