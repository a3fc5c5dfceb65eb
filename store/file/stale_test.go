package file_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
)

// mustStale returns what interrupted programs left.
func mustStale(t *testing.T, st *file.Store) []store.Fault {
	t.Helper()
	var stale []store.Fault
	for f, err := range st.InspectRest(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind == store.FaultTemporary || f.Kind == store.FaultLock {
			stale = append(stale, f)
		}
	}
	return stale
}

func TestStale(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	if got := mustStale(t, st); got != nil {
		t.Errorf("a new store has %+v", got)
	}
	log := storetest.MustCreate(t, st, "live", "{}")
	storetest.MustCreate(t, st, "archived", "{}").Close()
	must(t, st.Archive(t.Context(), "archived"))
	room := filepath.Join(st.Where(), ".coppice")
	for _, path := range []string{"tmp/old", "tmp/new", "locks/gone.lock", "locks/archived.lock", "locks/other"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(room, path)), 0o700))
		putLog(t, vfs.OS{}, filepath.Join(room, path), []byte("x"))
	}
	long := time.Now().Add(-2 * store.StaleAfter)
	must(t, os.Chtimes(filepath.Join(room, "tmp/old"), long, long))
	stale := mustStale(t, st)
	if len(stale) != 2 || filepath.Base(stale[0].Path) != "old" || stale[0].Size != 1 || stale[1].Name != "gone" {
		t.Fatalf("stale: %+v", stale)
	}
	for range 2 { // again does nothing
		for _, f := range stale {
			must(t, st.Mend(t.Context(), f))
		}
	}
	if got := mustStale(t, st); got != nil {
		t.Errorf("left: %+v", got)
	}
	for _, path := range []string{"tmp/new", "locks/archived.lock", "locks/other"} {
		if _, err := os.Stat(filepath.Join(room, path)); err != nil {
			t.Error(err)
		}
	}
	// A lock whose log came back stays, whoever thinks that it is stale.
	storetest.MustAppend(t, log, "{}")
	must(t, st.Mend(t.Context(), store.Fault{Kind: store.FaultLock, Name: "live"}))
	if _, err := os.Stat(filepath.Join(room, "locks/live.lock")); err != nil {
		t.Error(err)
	}
	storetest.MustAppend(t, log, "{}")
	wantKind(t, st.Mend(t.Context(), store.Fault{Kind: store.FaultLock, Name: "../x"}), store.ErrInvalid)
	must(t, st.Close())
	for _, err := range st.InspectRest(t.Context()) {
		wantKind(t, err, store.ErrClosed)
	}
	wantKind(t, st.Mend(t.Context(), store.Fault{Kind: store.FaultTemporary, Path: "x"}), store.ErrClosed)
	wantKind(t, st.Mend(t.Context(), store.Fault{Kind: store.FaultLock, Name: "x"}), store.ErrClosed)
}
