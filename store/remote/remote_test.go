package remote_test

import (
	"net/http/httptest"
	"testing"

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

func TestOverMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, serve(t, inMemory())) })
}

func TestOverFiles(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, serve(t, inFiles(t))) })
}
