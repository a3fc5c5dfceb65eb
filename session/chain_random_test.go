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
	"github.com/coppice-dev/coppice/store/memory"
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

// A conversation has every entry of each of its sessions once, and whoever can read the entry in
// one of them can read it in the conversation. So it is in a copy, and however much was read.
func TestConversationHasAllOfItsSessions(t *testing.T) {
	t.Parallel()
	for seed := range soak.Seeds(t, 60) {
		st, names := randomChains(t, seed)
		done := make(map[string]bool)
		for _, name := range names {
			c, err := session.FindChain(t.Context(), st, name, nil)
			if err != nil || done[c.ID] {
				continue // it cannot be read, or was
			}
			done[c.ID] = true
			whole := mustGet(session.OpenChain(t.Context(), st, c, nil))(t)
			leaf := whole.LeafID()
			path := mustGet(whole.Forward(""))(t)
			if end := ""; leaf != "" {
				if end = path[len(path)-1].ID; end != leaf {
					t.Errorf("seed %d, %s: the path ends with %q, the leaf is %q", seed, c.ID, end, leaf)
				}
			}
			read, parents := make(map[string]bool), make(map[string]string)
			for e, err := range whole.Entries() {
				mustDo(t, err)
				if _, twice := parents[e.ID]; twice {
					t.Errorf("seed %d, %s: entry %q is there twice", seed, c.ID, e.ID)
				}
				read[e.ID], parents[e.ID] = e.Type != session.TypeGap, ""
				if e.ParentID != nil {
					parents[e.ID] = *e.ParentID
				}
			}
			if again := whole.LeafID(); again != leaf {
				t.Errorf("seed %d, %s: the leaf is %q by the end of the log, and %q by all of it", seed, c.ID, leaf, again)
			}
			for _, name := range c.Links {
				s := mustGet(session.Open(t.Context(), st, name, nil))(t)
				for e, err := range s.Entries() {
					mustDo(t, err)
					if _, there := parents[e.ID]; e.Type != session.TypeGap && (!there || !read[e.ID]) {
						t.Errorf("seed %d, %s: entry %q of session %s cannot be read", seed, c.ID, e.ID, name)
					}
				}
				mustDo(t, s.Close())
			}
			fork := mustGet(whole.Fork(t.Context(), memory.New(nil), nil))(t)
			if fork.LeafID() != leaf {
				t.Errorf("seed %d, %s: the leaf of a fork is %q, want %q", seed, c.ID, fork.LeafID(), leaf)
			}
			for i, e := range mustGet(fork.Forward(""))(t) {
				if i >= len(path) || e.ID != path[i].ID {
					t.Errorf("seed %d, %s: the path of a fork has %q at %d", seed, c.ID, e.ID, i)
					break
				}
			}
			if n, want := len(mustGet(fork.GetContext())(t)), len(mustGet(whole.GetContext())(t)); n != want {
				t.Errorf("seed %d, %s: the context of a fork has %d entries, want %d", seed, c.ID, n, want)
			}
			mustDo(t, fork.Close())
			mustDo(t, whole.Close())
		}
	}
}
