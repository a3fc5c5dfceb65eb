package file_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// lazy are the levels at which an append does not wait for the disk.
var lazy = map[string]file.Sync{"every hour": file.Every(time.Hour), "never": file.Never}

// Without a flush the cut takes it: what the tests below find was flushed.
func TestWithoutFlushTheCutTakesIt(t *testing.T) {
	t.Parallel()
	for name, level := range lazy {
		d := newFaultDisk(t)
		log := storetest.MustCreate(t, d.open(level), "a", `{"n":0}`)
		storetest.MustAppend(t, log, `{"n":1}`)
		w := &faultWork{t: t, where: name}
		if got := w.read(d.mem.CrashClone(nil, vfstest.LoseAll), "a"); len(got) > 1 {
			t.Errorf("%s: the worst cut has left %q", name, got)
		}
	}
}

// Cuts at any moment after a flush lose nothing of it, whatever is written then.
func TestFlushedSurvivesAnyCut(t *testing.T) {
	t.Parallel()
	for name, level := range lazy {
		t.Run(name, func(t *testing.T) {
			for seed := range soak.Seeds(t, 6) {
				rng := rand.New(rand.NewPCG(seed, 1))
				d := newFaultDisk(t)
				st := d.open(level)
				log := storetest.MustCreate(t, st, "a", `{"n":0}`)
				flushed := []string{`{"n":0}`}
				must(t, log.Flush(t.Context()))
				for n := 1; n < 12; n++ {
					line := fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, bytes.Repeat([]byte("x"), rng.IntN(3000)))
					storetest.MustAppend(t, log, line)
					if rng.IntN(2) == 0 {
						must(t, log.Flush(t.Context()))
						for len(flushed) <= n {
							flushed = linesOf(t, log)
						}
					}
					if rng.IntN(4) == 0 { // another handle goes on
						log = storetest.MustOpen(t, st, "a")
						must(t, log.Flush(t.Context()))
					}
					w := &faultWork{t: t, where: fmt.Sprintf("seed %d, line %d", seed, n)}
					got := w.read(d.mem.CrashClone(rng), "a")
					if len(got) < len(flushed) {
						t.Fatalf("seed %d: %d lines were flushed, %d are left", seed, len(flushed), len(got))
					}
					for i := range flushed {
						if got[i] != flushed[i] {
							t.Fatalf("seed %d: line %d is %.80q, flushed was %.80q", seed, i, got[i], flushed[i])
						}
					}
				}
			}
		})
	}
}

// A flush that fails leaves nothing to be relied on: the handle says so for good
// and asks the disk no second time. The next one rewrites the log.
func TestFailedFlushPoisons(t *testing.T) {
	t.Parallel()
	for _, kind := range []vfstest.OpKind{vfstest.OpSync, vfstest.OpSyncDir} {
		for name, level := range lazy {
			t.Run(fmt.Sprint(kind, " ", name), func(t *testing.T) {
				d := newFaultDisk(t)
				log := storetest.MustCreate(t, d.open(level), "a", `{"n":0}`)
				storetest.MustAppend(t, log, `{"n":1}`)
				d.next(kind)
				wantKind(t, log.Flush(t.Context()), store.ErrUnknown, "input/output")
				wantKind(t, log.Flush(t.Context()), store.ErrUnknown)
				wantKind(t, d.appendErr(log, `{"n":2}`), store.ErrClosed)

				other := storetest.MustOpen(t, d.open(level), "a")
				must(t, other.Flush(t.Context()))
				d.mustSurvive("a", `{"n":0}`, `{"n":1}`)
				storetest.MustAppend(t, other, `{"n":3}`)
				must(t, other.Flush(t.Context()))
				d.mustSurvive("a", `{"n":0}`, `{"n":1}`, `{"n":3}`)
			})
		}
	}
}

// With Always an append has waited already; but one whose sync failed is settled
// by the flush of another handle, although that has appended nothing.
func TestFlushSettlesAFailedAppend(t *testing.T) {
	t.Parallel()
	d := newFaultDisk(t)
	log := storetest.MustCreate(t, d.open(file.Always), "a", `{"n":0}`)
	d.next(vfstest.OpSync)
	wantKind(t, d.appendErr(log, `{"n":1}`), store.ErrUnknown)
	wantKind(t, log.Flush(t.Context()), store.ErrUnknown)
	other := storetest.MustOpen(t, d.open(file.Always), "a")
	must(t, other.Flush(t.Context()))
	d.mustSurvive("a", `{"n":0}`, `{"n":1}`)
}

func TestFailedFlushOfABlob(t *testing.T) {
	t.Parallel()
	for _, kind := range []vfstest.OpKind{vfstest.OpSync, vfstest.OpSyncDir} {
		d := newFaultDisk(t)
		st := d.open(file.Never)
		log := storetest.MustCreate(t, st, "a", `{"n":0}`)
		must(t, log.Flush(t.Context()))
		refs := []store.Ref{storetest.MustPut(t, st.Blobs(), []byte("one")), storetest.MustPut(t, st.Blobs(), []byte("two"))}
		d.next(kind)
		wantKind(t, log.Flush(t.Context()), store.ErrUnknown, "sha256:")
		must(t, storetest.MustOpen(t, st, "a").Flush(t.Context()))
		cut, err := file.Open(faultDir, &file.Options{FS: d.mem.CrashClone(nil, vfstest.LoseAll)})
		must(t, err)
		for _, ref := range refs {
			if _, err := cut.Blobs().Get(t.Context(), ref); err != nil {
				t.Errorf("%v: after a second flush and a cut: %v", kind, err)
			}
		}
	}
}

// The lines may have moved to another file since they were appended.
func TestFlushFollowsTheLog(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(st *file.Store) error{
		"archived": func(st *file.Store) error { return st.Archive(t.Context(), "a") },
		"archived and brought back": func(st *file.Store) error {
			return errors.Join(st.Archive(t.Context(), "a"), st.Unarchive(t.Context(), "a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFaultDisk(t)
			log := storetest.MustCreate(t, d.open(file.Never), "a", `{"n":0}`)
			storetest.MustAppend(t, log, `{"n":1}`)
			must(t, move(d.open(file.Never)))
			must(t, log.Flush(t.Context()))
			d.mustSurvive("a", `{"n":0}`, `{"n":1}`)
		})
	}
}

// slowDisk counts the syncs of logs and holds them up.
type slowDisk struct {
	vfstest.Faulty
	mu    sync.Mutex
	syncs int
	hold  chan struct{} // each sync waits for it
}

func newSlowDisk() *slowDisk {
	d := &slowDisk{hold: make(chan struct{})}
	d.FS = vfstest.NewMemory()
	d.Before = func(op vfstest.Op) error {
		if op.Kind == vfstest.OpSync {
			d.mu.Lock()
			d.syncs++
			d.mu.Unlock()
			<-d.hold
		}
		return nil
	}
	return d
}

func (d *slowDisk) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.syncs
}

func TestFlushHonoursItsContext(t *testing.T) {
	t.Parallel()
	d := newSlowDisk()
	log := storetest.MustCreate(t, openAt(t, "/d", &file.Options{FS: d, Sync: file.Never}), "a", `{"n":0}`)
	storetest.MustAppend(t, log, `{"n":1}`)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- log.Flush(ctx) }()
	for d.count() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("flush whose context is done: %v", err)
	}
	storetest.MustAppend(t, log, `{"n":2}`) // nobody waits for the sync
	go func() { ended <- log.Close() }()
	select {
	case err := <-ended:
		t.Errorf("the log was closed under a sync: %v", err)
	case <-time.After(5 * time.Millisecond):
	}
	close(d.hold)
	must(t, <-ended)
}

// Whoever waits while a sync is under way shares the next one.
func TestFlushesShareSyncs(t *testing.T) {
	t.Parallel()
	d := newSlowDisk()
	log := storetest.MustCreate(t, openAt(t, "/d", &file.Options{FS: d, Sync: file.Never}), "a", `{"n":0}`)
	errs := make(chan error)
	for range 50 {
		go func() { errs <- log.Flush(t.Context()) }()
	}
	for d.count() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(d.hold)
	for range 50 {
		must(t, <-errs)
	}
	if n := d.count(); n > 2 {
		t.Errorf("50 flushes made %d syncs", n)
	}
}

// With nothing pending, a flush writes and syncs nothing.
func TestFlushOfNothing(t *testing.T) {
	t.Parallel()
	for name, level := range map[string]file.Sync{"always": file.Always, "every hour": file.Every(time.Hour), "never": file.Never} {
		disk := &vfstest.Faulty{FS: vfstest.NewMemory()}
		st := openAt(t, "/d", &file.Options{FS: disk, Sync: level})
		log := storetest.MustCreate(t, st, "a", `{"n":0}`)
		storetest.MustPut(t, st.Blobs(), []byte("blob"))
		storetest.MustAppend(t, log, `{"n":1}`)
		if level != file.Always {
			must(t, log.Flush(t.Context()))
		}
		before := disk.Count(vfstest.OpMutating)
		for range 3 {
			must(t, log.Flush(t.Context()))
			must(t, storetest.MustOpen(t, st, "a").Flush(t.Context()))
		}
		if after := disk.Count(vfstest.OpMutating); after != before {
			t.Errorf("%s: flushing nothing made %d changes", name, after-before)
		}
	}
}
