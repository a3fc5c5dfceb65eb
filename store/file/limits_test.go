package file_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

func namesIn(t *testing.T, st *file.Store) (names []string) {
	t.Helper()
	for stat, err := range st.List(t.Context()) {
		must(t, err)
		names = append(names, stat.Name)
	}
	return names
}

// There are never more logs than there may be, archived ones counted; a name that
// is taken is still that, and a log that is removed makes room.
func TestLimitOfLogs(t *testing.T) {
	t.Parallel()
	st := open(t, &file.Options{MaxLogs: 2, Sync: file.Never})
	storetest.MustCreate(t, st, "a", "{}")
	storetest.MustCreate(t, st, "b", "{}")
	must(t, st.Archive(t.Context(), "a"))
	before := snapshot(t, st.Where())
	_, err := st.Create(t.Context(), "c", store.Lines([]byte("{}")))
	wantKind(t, err, store.ErrTooLarge, "max_sessions", "3", "2")
	if limit, ok := errors.AsType[*store.LimitError](err); !ok || *limit != (store.LimitError{Limit: store.MaxSessions, Size: 3, Max: 2}) {
		t.Errorf("%v does not tell the limit", err)
	}
	if after := snapshot(t, st.Where()); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the refused log has left something: %v", after)
	}
	_, err = st.Create(t.Context(), "a", store.Lines())
	wantKind(t, err, store.ErrExist)
	must(t, st.Remove(t.Context(), "b"))
	storetest.MustCreate(t, st, "c", "{}")
	if stale := mustStale(t, st); len(stale) > 0 {
		t.Errorf("stale: %v", stale)
	}
}

// Stores that share a directory, as processes do, never go over the limit
// together.
func TestLimitOfLogsAmongMany(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 4 {
		st := openAt(t, dir, &file.Options{MaxLogs: 10, Sync: file.Never})
		wg.Go(func() {
			for n := range 10 {
				log, err := st.Create(t.Context(), fmt.Sprint("log ", i, " ", n), store.Lines())
				if err == nil {
					log.Close()
				} else if !errors.Is(err, store.ErrTooLarge) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if names := namesIn(t, openAt(t, dir, nil)); len(names) != 10 {
		t.Errorf("%d logs, want 10", len(names))
	}
}

func TestMakeRoom(t *testing.T) {
	t.Parallel()
	asked := 0
	st := open(t, &file.Options{MaxLogs: 2, Sync: file.Never, MakeRoom: func(ctx context.Context, st store.Store, n int) error {
		asked += n
		return st.Remove(ctx, "a")
	}})
	for _, name := range []string{"a", "b", "c"} {
		storetest.MustCreate(t, st, name)
	}
	if got := namesIn(t, st); fmt.Sprint(got) != "[b c]" || asked != 1 {
		t.Errorf("%v, after room for %d was asked for", got, asked)
	}
	_, err := st.Create(t.Context(), "d", store.Lines()) // there is no "a" any more
	wantKind(t, err, store.ErrNotExist, "making room")
}

// Without a limit nobody counts.
func TestNoLimitNoListing(t *testing.T) {
	t.Parallel()
	disk := &vfstest.Faulty{FS: vfstest.NewMemory()}
	st := openAt(t, "/d", &file.Options{FS: disk, Sync: file.Never})
	storetest.MustCreate(t, st, "a")
	before := disk.Count(vfstest.OpRead)
	storetest.MustCreate(t, st, "b")
	if n := disk.Count(vfstest.OpRead) - before; n > 0 {
		t.Errorf("creating a log made %d reads", n)
	}
}
