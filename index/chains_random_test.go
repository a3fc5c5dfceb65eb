package index_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/internal/chaingen"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// chainRow is what the index and the sessions themselves must agree on.
type chainRow struct {
	Links              []string
	Missing, Tags      []string
	Entries, Messages  int
	Texts              []string // the ids of the messages that have one
	Leaf, Name         string
	CWD, Key, Relation string
	Pinned             bool
}

// The index says of random chains what their sessions say when they are read as one:
// which sessions are one conversation, under which id, and what is in it.
func TestRandomChains(t *testing.T) {
	t.Parallel()
	for seed := range soak.Seeds(t, 12) {
		files, lost := chaingen.Store(seed)
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name+".jsonl"), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		st := must[*file.Store](t)(file.Open(dir, &file.Options{Sync: file.Never}))
		ix := must[*index.Index](t)(index.Open(t.Context(), st, filepath.Join(dir, "index.db"), nil))
		must[index.Report](t)(ix.CatchUp(t.Context(), nil))
		want := make(map[string]chainRow)
		ids := make(map[string]string)
		for _, name := range slices.Concat(slices.Sorted(maps.Keys(files)), lost) {
			if c, err := session.FindChain(t.Context(), st, name, ix.Naming); err == nil {
				ids[name] = c.ID
				want[c.ID] = readRow(t, st, c)
			}
		}
		got := make(map[string]chainRow)
		texts := make(map[string][]string)
		for _, hit := range search(t, ix, index.SearchOptions{Query: "kind:text", Limit: 10_000}) {
			for _, id := range append(hit.Also, hit.Session) {
				texts[id] = append(texts[id], hit.Entry)
			}
		}
		list, _, err := ix.List(t.Context(), index.ListOptions{Limit: -1})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if s.Agent == "" {
				continue // cannot be read
			}
			row := chainRow{Missing: s.Missing, Tags: s.Tags, Entries: s.Entries, Messages: s.Messages, Texts: texts[s.ID], Leaf: s.Leaf, CWD: s.CWD, Key: s.Key, Relation: s.Relation, Pinned: s.Pinned}
			if s.Named {
				row.Name = s.Title
			}
			for _, link := range must[[]index.Session](t)(ix.Links(t.Context(), s.ID)) {
				row.Links = append(row.Links, link.Name)
			}
			got[s.ID] = row
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("seed %d (-sessions +index):\n%s", seed, diff)
		}
		for name, id := range ids {
			if s, err := ix.Conversation(t.Context(), name); err != nil || s.ID != id {
				t.Errorf("seed %d: %s is in conversation %s, %v; want %s", seed, name, s.ID, err, id)
			}
		}
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

// readRow reads a conversation.
func readRow(t *testing.T, st *file.Store, c session.Linked) chainRow {
	t.Helper()
	open := func(name string) *session.Session {
		s := must[*session.Session](t)(session.Open(t.Context(), st, name, nil))
		t.Cleanup(func() { s.Close() })
		return s
	}
	whole := open(c.Links[0])
	if len(c.Links)+len(c.Missing) > 1 {
		whole = must[*session.Session](t)(session.OpenChain(t.Context(), st, c, nil))
		t.Cleanup(func() { whole.Close() })
	}
	h := whole.Header()
	row := chainRow{
		Links: c.Links, Missing: c.Missing, CWD: h.CWD, Key: h.Key, Relation: h.Relation, Leaf: open(c.Links[len(c.Links)-1]).LeafID(),
		Messages: must[int](t)(whole.MessageCount()), Name: must[string](t)(whole.Name()),
	}
	shape := must[*session.Shape](t)(whole.Shape())
	for n := range int32(shape.Len()) {
		if shape.Type(n) != session.TypeGap {
			row.Entries++
		}
	}
	for e, err := range whole.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Message != nil && len(e.Message.Content) > 0 && e.Message.Content[0].Text != nil {
			row.Texts = append(row.Texts, e.ID)
		}
	}
	for _, name := range c.Links {
		s := open(name)
		row.Tags = append(row.Tags, must[session.Remarks](t)(s.Remarks()).Tags...)
		row.Pinned = row.Pinned || must[session.Remarks](t)(s.Remarks()).Pinned
	}
	slices.Sort(row.Tags)
	row.Tags = slices.Compact(row.Tags)
	return row
}
