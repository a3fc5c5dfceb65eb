package file_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/notify"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// follow watches a store, and returns what it tells after it has begun, and what ends that.
func follow(t *testing.T, st store.Store) (told <-chan string, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	names, begun, done := make(chan string, 1000), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for name, err := range store.Watch(ctx, st) {
			switch {
			case err != nil && !errors.Is(err, store.ErrUntold):
				t.Errorf("watching ends: %v", err)
			case name == "":
				close(begun)
			default:
				names <- name
			}
		}
	}()
	<-begun
	return names, func() { cancel(); <-done }
}

func wantName(t *testing.T, told <-chan string, want string) {
	t.Helper()
	for late := time.After(30 * time.Second); ; {
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

// An idle store does nothing, whether it is followed or was, and however many logs it has: the file
// system tells of changes.
func TestIdleStoreDoesNothing(t *testing.T) {
	t.Parallel()
	if !slices.Contains([]string{"linux", "windows"}, runtime.GOOS) {
		t.Skip("this system tells only of open files")
	}
	for _, logs := range []int{10, 1000} {
		disk := &vfstest.Faulty{FS: vfs.OS{Notices: notify.New()}}
		st, err := file.Open(filepath.Join(t.TempDir(), "s"), &file.Options{FS: disk, Sync: file.Never})
		if err != nil {
			t.Fatal(err)
		}
		batch := st.Batch()
		for i := range logs {
			if err := batch.Add(t.Context(), fmt.Sprint("s", i), store.Lines([]byte(`{"n":0}`))); err != nil {
				t.Fatal(err)
			}
		}
		for name, err := range batch.Commit(t.Context()) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		idle := func(when string) {
			t.Helper()
			time.Sleep(100 * time.Millisecond) // for what is still told of the past
			before := disk.Count(vfstest.OpAny)
			time.Sleep(700 * time.Millisecond)
			if n := disk.Count(vfstest.OpAny) - before; n > 0 {
				t.Errorf("%d logs, %s: %d operations", logs, when, n)
			}
		}
		told, end := follow(t, st)
		idle("followed")
		log := storetest.MustOpen(t, st, "s7")
		ctx, cancel := context.WithCancel(t.Context())
		lines := make(chan string)
		go func() {
			defer close(lines)
			for line, err := range log.Watch(ctx, 0) {
				if err != nil {
					t.Errorf("watching the log: %v", err)
					return
				}
				lines <- string(line.Data)
			}
		}()
		<-lines
		idle("with one log watched")
		other, err := file.Open(st.Where(), nil) // as another program
		if err != nil {
			t.Fatal(err)
		}
		storetest.MustAppend(t, storetest.MustOpen(t, other, "s7"), `{"n":1}`)
		wantName(t, told, "s7")
		if line := <-lines; line != `{"n":1}` {
			t.Errorf("the log has %s", line)
		}
		if err := other.Remove(t.Context(), "s8"); err != nil {
			t.Fatal(err)
		}
		wantName(t, told, "s8")
		storetest.MustCreate(t, other, "new", `{"n":2}`)
		wantName(t, told, "new")
		end()
		cancel()
		for range lines {
		}
		idle("no longer followed")
		if err := errors.Join(other.Close(), st.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// deafDisk is a disk that cannot tell of changes.
type deafDisk struct {
	vfs.OS
	why error
}

func (d deafDisk) Notify(string, func(string)) (func(), error) { return nil, d.why }

// Where nobody tells of changes, they are found all the same, and the reason is given.
func TestWatchUntold(t *testing.T) {
	t.Parallel()
	why := errors.New("too many watches")
	st, err := file.Open(filepath.Join(t.TempDir(), "s"), &file.Options{FS: deafDisk{why: why}})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	log := storetest.MustCreate(t, st, "a", `{"n":0}`)
	for _, err := range store.Watch(t.Context(), st) {
		if !errors.Is(err, store.ErrUntold) || !errors.Is(err, why) {
			t.Errorf("it begins with %v", err)
		}
		break
	}
	told, end := follow(t, st)
	defer end()
	storetest.MustAppend(t, log, `{"n":1}`)
	wantName(t, told, "a")
	storetest.MustCreate(t, st, "b", `{"n":2}`)
	wantName(t, told, "b")
}
