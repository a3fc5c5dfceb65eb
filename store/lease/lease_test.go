package lease_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/lease"
	"github.com/coppice-dev/coppice/store/memory"
)

// onEveryStore runs a test with a way to open one store again and again, as several
// programs do. Time is not real.
func onEveryStore(t *testing.T, test func(t *testing.T, open func() store.Store)) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			st := memory.New(nil)
			test(t, func() store.Store { return st })
			_ = st.Close()
		})
	})
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			test(t, func() store.Store {
				st, err := file.Open(dir, nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = st.Close() })
				return st
			})
		})
	})
}

func take(t *testing.T, p *lease.Place, lost func(error)) *lease.Lease {
	t.Helper()
	l, err := p.Take(t.Context(), lost)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t *testing.T, l *lease.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func wantHeld(t *testing.T, p *lease.Place, by string) {
	t.Helper()
	_, err := p.Take(t.Context(), nil)
	held, ok := errors.AsType[*lease.HeldError](err)
	if !ok || !errors.Is(err, store.ErrLocked) || held.Program != by || !strings.Contains(err.Error(), by) {
		t.Fatalf("take: %v, want it held by %s", err, by)
	}
	if h, err := p.Holder(t.Context()); err != nil || h == nil || *h != held.Holder {
		t.Fatalf("holder: %v, %v", h, err)
	}
}

// edit changes the note of a lease, as another program would have written it.
func edit(t *testing.T, st store.Store, name string, change func(note map[string]any)) {
	t.Helper()
	err := st.Notes("leases").Change(t.Context(), name, func(old []byte) ([]byte, error) {
		note := map[string]any{}
		if err := json.Unmarshal(old, &note); err != nil {
			return nil, err
		}
		change(note)
		return json.Marshal(note)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOneAtATime(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func() store.Store) {
		a, b := lease.At(open(), "a"), lease.At(open(), "a")
		if h, err := b.Holder(t.Context()); h != nil || err != nil {
			t.Fatalf("a free place has the holder %v, %v", h, err)
		}
		one := take(t, a, nil)
		wantHeld(t, b, "lease.test")
		wantHeld(t, a, "lease.test")
		other := take(t, lease.At(open(), "b"), nil) // which is another place
		if err := one.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		release(t, one)
		release(t, take(t, b, nil))
		release(t, other)
		if h, err := b.Holder(t.Context()); h != nil || err != nil {
			t.Fatalf("a free place has the holder %v, %v", h, err)
		}
		if notes, err := open().Notes("leases").List(t.Context()); len(notes) != 0 || err != nil {
			t.Fatalf("left behind: %v, %v", notes, err)
		}
	})
}

// However many wait, one works at a time, and each gets its turn.
func TestWaiting(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func() store.Store) {
		var mu sync.Mutex
		var all sync.WaitGroup
		working, turns := 0, 0
		for range 4 {
			p := lease.At(open(), "a")
			all.Go(func() {
				l, err := p.Wait(t.Context(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				working++
				turns++
				if working > 1 {
					t.Errorf("%d work at once", working)
				}
				mu.Unlock()
				time.Sleep(2 * lease.TTL) // it is renewed: nobody takes it over
				mu.Lock()
				working--
				mu.Unlock()
				if err := l.Check(t.Context()); err != nil {
					t.Error(err)
				}
				release(t, l)
			})
		}
		all.Wait()
		if turns != 4 {
			t.Errorf("%d turns, want 4", turns)
		}
		l := take(t, lease.At(open(), "a"), nil)
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(stop) })
		if _, err := lease.At(open(), "a").Wait(ctx, nil); !errors.Is(err, stop) {
			t.Errorf("wait: %v, want %v", err, stop)
		}
		release(t, l)
	})
}

// A holder on another machine is dead when it has been silent for TTL by our own clock.
// What its clock says does not matter.
func TestSilentHolder(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func() store.Store) {
		var lost error
		st := open()
		old := take(t, lease.At(st, "a"), func(err error) { lost = errors.Join(lost, err) })
		edit(t, st, "a", func(note map[string]any) {
			note["machine"], note["program"], note["since"] = "another", "far", "2090-01-01T00:00:00Z"
		})
		p := lease.At(open(), "a")
		wantHeld(t, p, "far")
		time.Sleep(lease.TTL / 2)
		wantHeld(t, p, "lease.test") // it has been renewed
		edit(t, st, "a", func(note map[string]any) { note["machine"], note["nonce"], note["program"] = "another", "n", "far" })
		time.Sleep(lease.TTL - time.Second)
		wantHeld(t, p, "far")
		time.Sleep(lease.TTL - time.Second)
		wantHeld(t, p, "far")
		time.Sleep(time.Second)
		next := take(t, p, nil)
		if err := old.Check(t.Context()); !errors.Is(err, store.ErrLocked) || lost == nil {
			t.Errorf("the old holder: %v; it was told %v", err, lost)
		}
		release(t, old) // which is no longer its own to give back
		if err := next.Check(t.Context()); err != nil {
			t.Error(err)
		}
		release(t, next)
		if err := next.Check(t.Context()); err == nil {
			t.Error("a lease that was given back is held")
		}
	})
}

// A holder whose process has ended is dead at once, where the system can say so.
func TestDeadHolder(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func() store.Store) {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		st := open()
		for what, change := range map[string]func(map[string]any){
			"ended":         func(note map[string]any) { note["pid"] = cmd.Process.Pid },
			"number reused": func(note map[string]any) { note["started"] = "1" },
			"another machine": func(note map[string]any) {
				note["pid"], note["machine"], note["nonce"] = cmd.Process.Pid, "another", "n"
			},
		} {
			old := take(t, lease.At(st, "a"), nil)
			edit(t, st, "a", change)
			begun := time.Now()
			l, err := lease.At(open(), "a").Wait(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			waited := time.Since(begun)
			if atOnce := runtime.GOOS == "linux" && what != "another machine"; atOnce != (waited == 0) {
				t.Errorf("%s: took it over after %v", what, waited)
			}
			release(t, l)
			release(t, old)
		}
	})
}

// A note that cannot be read keeps nobody out.
func TestDamagedNote(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func() store.Store) {
		for i, text := range []string{"", "{}", "\x00\x00", `{"nonce":7}`} {
			name := fmt.Sprint("a", i)
			if err := open().Notes("leases").Write(t.Context(), name, []byte(text)); err != nil {
				t.Fatal(err)
			}
			release(t, take(t, lease.At(open(), name), nil))
		}
	})
}

// A program that closed its store before it gave a lease back has not locked itself out.
func TestReleaseAfterTheStoreWasClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() store.Store {
		st, err := file.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		return st
	}
	st := open()
	l, err := lease.At(st, "s").Take(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	again := lease.At(open(), "s")
	if held := (*lease.HeldError)(nil); !errors.As(second(again.Take(t.Context(), nil)), &held) {
		t.Error("the lease was given to two")
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	_ = l.Release(t.Context())
	l, err = again.Take(t.Context(), nil)
	if err != nil {
		t.Fatalf("a lease that was given back: %v", err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func second(_ *lease.Lease, err error) error { return err }
