package session_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-dev/coppice/internal/chaingen"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// randomChains makes a store of chaingen.
func randomChains(t *testing.T, seed uint64) (st *file.Store, names []string) {
	t.Helper()
	files, _ := chaingen.Store(seed)
	dir := t.TempDir()
	for name, text := range files {
		mustDo(t, os.WriteFile(filepath.Join(dir, name+".jsonl"), text, 0o600))
	}
	st = mustGet(file.Open(dir, nil))(t)
	t.Cleanup(func() { st.Close() })
	return st, slices.Sorted(maps.Keys(files))
}

// By whichever of its sessions a conversation is asked for, also by one that is lost, it
// is the same: the one that all links of the store together make. So it is with an index,
// which knows who names whom, and without one.
func TestFindChainIsJoinLinks(t *testing.T) {
	t.Parallel()
	for seed := range soak.Seeds(t, 25) {
		st, names := randomChains(t, seed)
		var links []session.Link
		for _, name := range names {
			if l, err := session.ReadLink(t.Context(), st, name); err == nil {
				links = append(links, l)
			}
		}
		naming := func(_ context.Context, id string) (found []string, err error) {
			for _, l := range links {
				if l.Continues == id || l.ContinuedTo == id || l.Original == id {
					found = append(found, l.ID)
				}
			}
			return found, nil
		}
		for _, want := range session.JoinLinks(links) {
			for _, id := range slices.Concat(want.Links, want.Missing) {
				for how, naming := range map[string]func(context.Context, string) ([]string, error){"alone": nil, "with an index": naming} {
					got, err := session.FindChain(t.Context(), st, id, naming)
					if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
						t.Errorf("seed %d, by %s, %s: %v (-want +got):\n%s", seed, id, how, err, diff)
					}
				}
			}
			s, err := session.OpenChain(t.Context(), st, want, nil)
			if err != nil {
				t.Errorf("seed %d: %+v: %v", seed, want, err)
				continue
			}
			mustDo(t, s.Close())
		}
	}
}
