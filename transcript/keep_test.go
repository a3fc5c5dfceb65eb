package transcript_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/transcript"
)

// What the ledger says is kept may be gone: its session was removed, and then the
// blobs that nothing in the store named. The next import keeps it again.
func TestImportKeepsAgainWhatIsLost(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	ctx := context.Background()
	line := said("1", noise(100_000))
	path := toyFile(t, lines(toyLine{Conv: "c"}, line))
	h.bring(path)
	if err := h.st.Remove(ctx, toyID("c")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.st.Trash().Empty(ctx, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	refs := allRefs(t, h.st)
	done, err := h.st.Blobs().Collect(ctx, refs...)
	if err != nil || len(done.Deleted) != len(refs) || len(refs) == 0 {
		t.Fatalf("%d of %d blobs were deleted: %v", len(done.Deleted), len(refs), err)
	}
	h.im.Again = true
	h.bring(path)
	s := h.open(toyID("c"))
	e, err := s.Entry("1")
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := transcript.Raw(ctx, h.st, s, &e); err != nil || string(raw) != lines(line) {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	again := allRefs(t, h.st)
	h.bring(path)
	if now := allRefs(t, h.st); !slices.Equal(now, again) {
		t.Errorf("what is there was kept once more: %d blobs, then %d", len(again), len(now))
	}
}

func allRefs(t *testing.T, st store.Store) []store.Ref {
	t.Helper()
	var refs []store.Ref
	for ref, err := range st.Blobs().All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	return refs
}

// holding is a store that knows whether its blobs are held.
type holding struct {
	store.Store
	now, puts *atomic.Int64
}

type holdingBlobs struct {
	store.Blobs
	h holding
}

func (h holding) Blobs() store.Blobs { return holdingBlobs{h.Store.Blobs(), h} }

func (b holdingBlobs) Hold(ctx context.Context) (func(), error) {
	release, err := b.Blobs.Hold(ctx)
	b.h.now.Add(1)
	return sync.OnceFunc(func() { release(); b.h.now.Add(-1) }), err
}

func (b holdingBlobs) Put(ctx context.Context, data []byte) (store.Ref, error) {
	b.h.puts.Add(1)
	if b.h.now.Load() == 0 {
		return "", errors.New("nothing is held")
	}
	return b.Blobs.Put(ctx, data)
}

// Pieces of the source are named long after they are put.
func TestImportHoldsWhatItKeeps(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	held := holding{h.st, new(atomic.Int64), new(atomic.Int64)}
	h.im.Store = held
	path := toyFile(t, lines(toyLine{Conv: "c"}, said("1", noise(100_000))))
	h.bring(path)
	if held.puts.Load() == 0 || held.now.Load() != 0 {
		t.Errorf("%d puts, %d holds left", held.puts.Load(), held.now.Load())
	}
	h.im.DryRun, h.im.Again = true, true
	h.bring(path)
}
