package backup_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
	"github.com/coppice-dev/coppice/upkeep/backup"
)

// grown is a world with a backup, and a home that has changed since: a session is new,
// one has gone for good, one was archived.
func grown(t *testing.T, to string) (w *world, was, is map[string]string) {
	t.Helper()
	w = newWorld(t)
	w.backup(to)
	was = w.kept(w.disk, "/home")
	w.session("another", "hi", strings.Repeat("new\n", 100))
	w.must(w.st.Archive(t.Context(), "plain2"))
	w.must(w.disk.Remove("/home/old.jsonl.bak"))
	is = w.kept(w.disk, "/home")
	// What is on the disk now is durable: only the backup is at stake.
	w.disk = w.disk.CrashClone(nil, vfstest.LoseNothing)
	w.st = w.open(w.disk, "/home")
	return w, was, is
}

// holds makes sure that a backup is whole, and has one of two states of the home.
func holds(t *testing.T, when string, disk vfs.FS, path string, states ...map[string]string) {
	t.Helper()
	_, err := backup.Restore(t.Context(), backup.RestoreRequest{From: path, Dir: "/came/back", FS: disk})
	if err != nil {
		t.Errorf("%s: %v", when, err)
		return
	}
	got := fmt.Sprint(tree(t, disk, "/came/back"))
	for _, state := range states {
		if got == fmt.Sprint(state) {
			return
		}
	}
	t.Errorf("%s: the backup has a state that the home never had", when)
}

// The process is killed or the power fails at any moment: the backup is the older one or
// the new one, and the next backup works.
func TestBackupAfterPowerCuts(t *testing.T) {
	t.Parallel()
	rng := soak.Rand(t)
	for _, to := range targets {
		w, was, is := grown(t, to)
		points := 0
		var one sync.Mutex
		faulty := &vfstest.Faulty{FS: w.disk, Before: func(op vfstest.Op) error {
			if !op.Kind.Mutates() {
				return nil
			}
			one.Lock()
			defer one.Unlock()
			points++
			for _, loss := range []vfstest.Loss{vfstest.LoseNothing, vfstest.LoseAll, vfstest.LoseSome} {
				disk := w.disk.CrashClone(rng, loss)
				when := fmt.Sprintf("%s before %s %s, loss %d", to, op.Kind, op.Name, loss)
				holds(t, when, disk, to, was, is)
				if loss == vfstest.LoseSome && points%5 == 0 {
					st := w.open(disk, "/home")
					if r, err := backup.Make(t.Context(), st, backup.Request{To: to, FS: disk}); err != nil || r.Mended > 0 && to == targets[1] {
						t.Errorf("%s: the next backup: %+v, %v", when, r, err)
					}
					if left := tree(t, disk, "/b/.file.tar.zst.incoming"); len(left) > 0 {
						t.Errorf("%s: the next backup leaves %d files", when, len(left))
					}
					w.must(disk.Rename("/came", "/went"))
					holds(t, when+", after the next backup", disk, to, is)
				}
			}
			return nil
		}}
		_, err := backup.Make(t.Context(), w.st, backup.Request{To: to, FS: faulty})
		w.must(err)
		if points < 8 {
			t.Errorf("%s: only %d points were tried", to, points)
		}
		holds(t, to+" after a power cut", w.disk.CrashClone(nil, vfstest.LoseAll), to, is)
	}
}

// Any operation on the backup fails, for once or for good: the backup is the older one or
// the new one, and the error says what happened.
func TestBackupOnAFailingDisk(t *testing.T) {
	t.Parallel()
	for _, to := range targets {
		base, was, is := grown(t, to)
		for _, fail := range []func(int64, vfstest.OpKind, error) func(vfstest.Op) error{vfstest.FailAt, vfstest.FailFrom} {
			for n := int64(1); ; n++ {
				w := base.clone()
				faulty := &vfstest.Faulty{FS: w.disk, Before: fail(n, vfstest.OpMutating, syscall.ENOSPC)}
				_, err := backup.Make(t.Context(), w.st, backup.Request{To: to, FS: faulty})
				failed := faulty.Count(vfstest.OpMutating) >= n
				if err != nil && !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("%s, %d: %v", to, n, err)
				}
				states := []map[string]string{was, is}
				if err == nil {
					states = states[1:]
				}
				holds(t, fmt.Sprintf("%s, operation %d fails", to, n), w.disk, to, states...)
				if !failed {
					break
				}
			}
		}
	}
}

// A home that is restored is there whole or not at all, and what is left of a restore
// that was killed is in nobody's way.
func TestRestoreAfterPowerCutsAndFaults(t *testing.T) {
	t.Parallel()
	rng := soak.Rand(t)
	for _, from := range targets {
		w := newWorld(t)
		w.backup(from)
		want := w.kept(w.disk, "/home")
		base := w.disk.CrashClone(nil, vfstest.LoseNothing)
		check := func(when string, disk *vfstest.Memory) {
			if got := tree(t, disk, "/new/home"); len(got) > 0 && fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: there is a part of a home", when)
			}
		}
		disk := base.CrashClone(nil, vfstest.LoseNothing)
		var one sync.Mutex
		_, err := backup.Restore(t.Context(), backup.RestoreRequest{From: from, Dir: "/new/home", FS: &vfstest.Faulty{FS: disk, Before: func(op vfstest.Op) error {
			if op.Kind.Mutates() {
				one.Lock()
				defer one.Unlock()
				check(fmt.Sprintf("%s before %s %s", from, op.Kind, op.Name), disk.CrashClone(rng))
			}
			return nil
		}}})
		w.must(err)
		if diff := fmt.Sprint(tree(t, disk.CrashClone(nil, vfstest.LoseAll), "/new/home")); diff != fmt.Sprint(want) {
			t.Errorf("%s: a power cut takes away what was restored", from)
		}
		for n := int64(1); ; n++ {
			disk := base.CrashClone(nil, vfstest.LoseNothing)
			faulty := &vfstest.Faulty{FS: disk, Before: vfstest.FailAt(n, vfstest.OpMutating, syscall.ENOSPC)}
			_, err := backup.Restore(t.Context(), backup.RestoreRequest{From: from, Dir: "/new/home", FS: faulty})
			if failed := faulty.Count(vfstest.OpMutating) >= n; !failed {
				w.must(err)
				break
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s, %d: %v", from, n, err)
			}
			check(fmt.Sprintf("%s, operation %d fails", from, n), disk)
			entries, _ := disk.ReadDir("/new")
			for _, e := range entries {
				if e.Name() != "home" {
					t.Errorf("%s, operation %d fails: %s is left", from, n, e.Name())
				}
			}
		}
	}
}

// A reader waits for nobody, and a backup that is being written is not read.
func TestBackupIsNotReadWhileItIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backup("/b/dir")
	tried := false
	reading := w.open(&vfstest.Faulty{FS: w.disk, Before: func(op vfstest.Op) error {
		if op.Kind == vfstest.OpRead && !tried {
			tried = true
			if _, err := backup.Verify(t.Context(), backup.VerifyRequest{Path: "/b/dir", FS: w.disk}); !errors.Is(err, store.ErrLocked) {
				t.Errorf("verifying meanwhile: %v", err)
			}
		}
		return nil
	}}, "/home")
	_, err := backup.Make(t.Context(), reading, backup.Request{To: "/b/dir", FS: w.disk})
	w.must(err)
}
