package keyed_test

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

func lazyStore(t *testing.T, disk vfs.FS, level file.Sync) *file.Store {
	t.Helper()
	st, err := file.Open("/sessions", &file.Options{FS: disk, Sync: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// wantAfterCut checks how many messages the worst power cut leaves of a key.
func wantAfterCut(t *testing.T, disk *vfstest.Memory, key string, want int) {
	t.Helper()
	sm := keyed.New(&keyed.Options{Store: lazyStore(t, disk.CrashClone(nil, vfstest.LoseAll), file.Always)})
	defer sm.Close()
	if got := len(sm.GetHistory(key)); got != want {
		t.Errorf("after a power cut %q has %d messages, want %d", key, got, want)
	}
}

func TestSaveIsABarrier(t *testing.T) {
	t.Parallel()
	for name, level := range map[string]file.Sync{"every hour": file.Every(time.Hour), "never": file.Never} {
		t.Run(name, func(t *testing.T) {
			disk := vfstest.NewMemory()
			sm := keyed.New(&keyed.Options{Store: lazyStore(t, disk, level)})
			defer sm.Close()
			for n := range 3 {
				sm.AddMessage(key, "user", fmt.Sprint("message ", n))
				if err := sm.Save(key); err != nil {
					t.Fatal(err)
				}
				wantAfterCut(t, disk, key, n+1)
			}
			sm.AddMessage(key, "user", "not saved")
			wantAfterCut(t, disk, key, 3)
		})
	}
}

// The ticker saves too; and a session that was closed to make room is saved when
// it is closed, because nobody could wait for it later.
func TestAutoSaveAndEvictionAreBarriers(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	now := time.Now()
	sm := keyed.New(&keyed.Options{Store: lazyStore(t, disk, file.Never), MaxOpen: 1, Now: func() time.Time { now = now.Add(time.Minute); return now }})
	defer sm.Close()
	sm.AddMessage("a", "user", "hello")
	sm.AddMessage("b", "user", "hello")
	sm.AddMessage("c", "user", "hello")
	if err := sm.Save("a"); err != nil {
		t.Fatal(err)
	}
	wantAfterCut(t, disk, "a", 1)

	sm.AddMessage("d", "user", "hello")
	stop := sm.SaveEvery(time.Millisecond, func(key string, err error) { t.Error(key, err) })
	defer stop()
	for began := time.Now(); !survived(t, disk, "d"); time.Sleep(time.Millisecond) {
		if time.Since(began) > 2*time.Minute {
			t.Fatal("the ticker has not made the message durable")
		}
	}
}

func survived(t *testing.T, disk *vfstest.Memory, key string) bool {
	sm := keyed.New(&keyed.Options{Store: lazyStore(t, disk.CrashClone(nil, vfstest.LoseAll), file.Always)})
	defer sm.Close()
	return len(sm.GetHistory(key)) > 0
}

// A sync that fails is not the end: the session is opened again, the log is
// written anew, and only if that works does Save say so.
func TestSaveAfterAFailedSync(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	var failures atomic.Int32
	faulty := &vfstest.Faulty{FS: disk, Before: func(op vfstest.Op) error {
		if op.Kind == vfstest.OpSync && failures.Add(-1) >= 0 {
			return syscall.EIO
		}
		return nil
	}}
	sm := keyed.New(&keyed.Options{Store: lazyStore(t, faulty, file.Never)})
	defer sm.Close()
	sm.AddMessage(key, "user", "hello")
	failures.Store(100)
	if err := sm.Save(key); err == nil {
		t.Error("no sync works, and Save says that all is well")
	}
	failures.Store(0)
	if err := sm.Save(key); err != nil {
		t.Errorf("save when the disk works again: %v", err)
	}
	wantAfterCut(t, disk, key, 1)
	sm.AddMessage(key, "user", "more")
	failures.Store(1)
	if err := sm.Save(key); err != nil {
		t.Errorf("save after one failure: %v", err)
	}
	wantAfterCut(t, disk, key, 2)
}
