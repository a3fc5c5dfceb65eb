package file_test

import (
	"context"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
)

// settled returns a store with one log and no mark.
func settled(t *testing.T, o *file.Options) (*file.Store, store.Log) {
	t.Helper()
	st := open(t, o)
	log := storetest.MustCreate(t, st, "a", "{}")
	settle(t, st, "a")
	return st, log
}

func settle(t *testing.T, st *file.Store, name string) {
	t.Helper()
	stat, err := st.Stat(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Settle(t.Context(), st.IndexPath(), map[string]*store.Stat{name: &stat}); err != nil {
		t.Fatal(err)
	}
	if got := marked(t, st); len(got) > 0 {
		t.Fatalf("marked after Settle: %q", got)
	}
}

func marked(t *testing.T, st *file.Store) []string {
	t.Helper()
	c, err := st.Changes(t.Context(), st.IndexPath())
	if err != nil || c.Epoch == "" {
		t.Fatalf("changes %+v, %v", c, err)
	}
	return c.Names
}

func TestEveryChangeLeavesAMark(t *testing.T) {
	t.Parallel()
	for _, sync := range []file.Sync{file.Always, file.Never} {
		st, log := settled(t, &file.Options{Sync: sync})
		ctx := context.Background()
		for _, change := range []struct {
			name string
			do   func() error
		}{
			{"append", func() error { storetest.MustAppend(t, log, "{}"); return nil }},
			{"append again", func() error { storetest.MustAppend(t, log, "{}"); return nil }},
			{"archive", func() error { return st.Archive(ctx, "a") }},
			{"unarchive", func() error { return st.Unarchive(ctx, "a") }},
		} {
			if err := change.do(); err != nil {
				t.Fatal(change.name, err)
			}
			if sync == file.Never {
				// The lease of a writer ends with its handle at the latest.
				if err := log.Close(); err != nil {
					t.Fatal(err)
				}
				log = storetest.MustOpen(t, st, "a")
			}
			if got := marked(t, st); !slices.Equal(got, []string{"a"}) {
				t.Fatalf("%s: marked %q", change.name, got)
			}
			settle(t, st, "a")
		}
		if err := st.Remove(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		if got := marked(t, st); !slices.Equal(got, []string{"a"}) {
			t.Fatalf("remove: marked %q", got)
		}
		if err := st.Settle(ctx, st.IndexPath(), map[string]*store.Stat{"a": nil}); err != nil {
			t.Fatal(err)
		}
		items, err := st.Trash().List(ctx)
		if err != nil || len(items) != 1 || len(marked(t, st)) != 0 {
			t.Fatalf("trash %v, %v, marked %q", items, err, marked(t, st))
		}
		if err := st.Trash().Restore(ctx, items[0].ID); err != nil {
			t.Fatal(err)
		}
		if got := marked(t, st); !slices.Equal(got, []string{"a"}) {
			t.Fatalf("restore: marked %q", got)
		}
	}
}

// A mark stays as long as the log is not what the index has seen.
func TestSettleKeepsTheMarkOfWhatHasChanged(t *testing.T) {
	t.Parallel()
	st, log := settled(t, nil)
	was, err := st.Stat(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	storetest.MustAppend(t, log, "{}")
	for _, was := range []*store.Stat{&was, nil} {
		if err := st.Settle(t.Context(), st.IndexPath(), map[string]*store.Stat{"a": was}); err != nil {
			t.Fatal(err)
		}
		if got := marked(t, st); !slices.Equal(got, []string{"a"}) {
			t.Fatalf("marked %q", got)
		}
	}
}

func TestSettleLeavesAWriterItsMark(t *testing.T) {
	t.Parallel()
	st, log := settled(t, nil)
	release, err := log.Pin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	stat, err := st.Stat(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Settle(t.Context(), st.IndexPath(), map[string]*store.Stat{"a": &stat}); err != nil {
		t.Fatal(err)
	}
	if got := marked(t, st); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("marked %q", got)
	}
}
