package remote_test

import (
	"context"
	"errors"
	"iter"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/store/remote"
	"github.com/coppice-dev/coppice/store/storetest"
)

// serve gives a store to others, and returns its address.
func serve(t testing.TB, st store.Store) string {
	t.Helper()
	handler := remote.NewHandler(st)
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		if err := handler.Close(); err != nil {
			t.Errorf("close the handler: %v", err)
		}
		server.Close()
		if err := st.Close(); err != nil {
			t.Errorf("close the served store: %v", err)
		}
	})
	return server.URL + "/v1/store"
}

func open(t testing.TB, url string) *remote.Store {
	t.Helper()
	st, err := remote.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func inMemory() store.Store { return memory.New(&memory.Options{MaxLine: 8 << 20}) }

func inFiles(t testing.TB) store.Store {
	t.Helper()
	st, err := file.Open(t.TempDir(), &file.Options{MaxLine: 8 << 20, Sync: file.Never})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// both is a store on another machine, with the store there for its upkeep.
type both struct {
	*remote.Store
	there store.Store
	close func() error
}

func (b both) Trash() store.Trash { return b.there.Trash() }
func (b both) Parts() store.Parts { return b.there.Parts() }
func (b both) Blobs() store.Blobs { return bothBlobs{b.Store.Blobs(), b.there.Blobs()} }
func (b both) Close() error       { return errors.Join(b.Store.Close(), b.close()) }

type bothBlobs struct {
	store.Blobs
	there store.Blobs
}

func (b bothBlobs) All(ctx context.Context) iter.Seq2[store.Ref, error] { return b.there.All(ctx) }

func (b bothBlobs) Unreferenced(ctx context.Context) ([]store.Part, error) {
	return b.there.Unreferenced(ctx)
}

func (b bothBlobs) Collect(ctx context.Context, refs ...store.Ref) (*store.Collected, error) {
	return b.there.Collect(ctx, refs...)
}

// The contract holds for those who use a store from elsewhere, whatever happens where it is.
func checkContract(t *testing.T, newStore func() store.Store) {
	storetest.Run(t, func(t *testing.T) store.Store {
		served := newStore()
		handler := remote.NewHandler(served)
		url := listen(t, handler)
		return both{open(t, url), served, func() error { return errors.Join(handler.Close(), served.Close()) }}
	})
}

func TestOverMemory(t *testing.T) {
	t.Parallel()
	checkContract(t, inMemory)
}

func TestOverFiles(t *testing.T) {
	t.Parallel()
	checkContract(t, func() store.Store { return inFiles(t) })
}

// Upkeep of a whole store is refused: it is done where the store is.
func TestLookingAfterTheStoreIsRefused(t *testing.T) {
	t.Parallel()
	st, ctx := open(t, serve(t, inMemory())), t.Context()
	part := store.Part{Kind: store.PartLog, Name: "a", Place: st.Parts().Where(store.PartLog, "a")}
	first := func(seq iter.Seq2[store.Line, error]) (err error) {
		for _, err = range seq {
		}
		return err
	}
	_, trashed := st.Trash().List(ctx)
	_, emptied := st.Trash().Empty(ctx, time.Now())
	_, sealed := st.Trash().Read()
	_, copies := st.Parts().Copies(ctx, "")
	_, opened := st.Parts().Open(ctx, part)
	_, unreferenced := st.Blobs().Unreferenced(ctx)
	_, collected := st.Blobs().Collect(ctx)
	var all, blobs error
	for _, all = range st.Parts().All(ctx) {
	}
	for _, blobs = range st.Blobs().All(ctx) {
	}
	for what, err := range map[string]error{
		"list trash": trashed, "empty trash": emptied, "read trash": sealed,
		"add to trash": st.Trash().Add(ctx, "a", store.Lines()), "take": st.Trash().Take(ctx, "a", 0), "restore": st.Trash().Restore(ctx, "a"),
		"parts": all, "copies": copies, "open a part": opened, "lines of a part": first(st.Parts().Lines(ctx, part)),
		"edit": st.Parts().Edit(ctx, part, nil), "remove a part": st.Parts().Remove(ctx, part),
		"blobs": blobs, "unreferenced": unreferenced, "collect": collected,
	} {
		if e, ok := errors.AsType[*store.Error](err); !ok || !errors.Is(err, errors.ErrUnsupported) || e.Hint == "" || !strings.Contains(err.Error(), "on another machine") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
