package upkeep_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/upkeep"
)

func TestRemoveKeepsWhatIsPinned(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	begin(t, st, "a", 1)
	s := begin(t, st, "b", 2)
	_, err := s.AppendEntry(session.Pinned(true))
	must(t, err)
	_, err = upkeep.Remove(t.Context(), st, upkeep.RemoveRequest{Sessions: []string{"a", "b"}})
	pinned, ok := errors.AsType[*upkeep.PinnedError](err)
	if !ok || pinned.Session != "b" || pinned.Err != nil {
		t.Errorf("removing a pinned session: %v", err)
	}
	if got := surveyed(t, st); got != "b a" {
		t.Errorf("left: %s, want both", got)
	}
	removals, err := upkeep.Remove(t.Context(), st, upkeep.RemoveRequest{Sessions: []string{"a", "b"}, Force: true})
	must(t, err)
	items, err := st.Trash().List(t.Context()) // the latest first, which is the first session
	must(t, err)
	if len(items) != 2 || items[0].Name != "a" || !slices.Equal(removals, []string{items[0].ID, items[1].ID}) || surveyed(t, st) != "" {
		t.Errorf("removed: %q; in the trash: %v", removals, items)
	}
	if _, err := upkeep.Remove(t.Context(), st, upkeep.RemoveRequest{Sessions: []string{"a"}}); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("removing what is not there: %v", err)
	}
}

// A session of which nothing can be read has no entry that pins it; it goes to the
// trash, under a name by which it can be restored.
func TestRemoveTakesWhatIsBeyondReading(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir()+"/s", &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	write(t, st, "junk")
	must(t, os.WriteFile(st.Path("junk"), []byte("nonsense\n"), 0o600))
	removals, err := upkeep.Remove(t.Context(), st, upkeep.RemoveRequest{Sessions: []string{"junk"}})
	must(t, err)
	must(t, st.Trash().Restore(t.Context(), removals[0]))
}
