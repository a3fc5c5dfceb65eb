package index_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// Whatever form a tool's input and output have, what they say is found.
func TestToolTexts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.create(session.Header{})
	input := map[string]any{
		"list":  []any{"cormorant", 7, map[string]any{"deep": "grebe"}},
		"empty": []any{}, "flag": true, "none": nil,
	}
	f.append(s, session.RoleAssistant, session.ToolUse("c1", "survey", input))
	f.append(s, session.RoleTool, session.Content{Type: session.ContentTypeToolResult, ToolResult: &session.ToolResultContent{
		ToolUseID: "c1", Parts: []session.Content{session.Text("a bittern"), session.Image("image/png", "AAAA"), session.Text("and a dipper")},
	}})
	f.append(s, session.RoleTool, session.ToolResult("c1", strings.Repeat("reed ", 20_000)+" kingfisher", false)) // kept in a blob
	f.append(s, session.RoleUser, session.Content{Type: session.ContentTypeFile, File: &session.FileContent{Name: "wagtail.pdf"}})
	ix := f.open(t)
	for _, query := range []string{"cormorant", "grebe", "kind:call survey", "bittern dipper", "kingfisher tool:survey", "wagtail"} {
		if hits := search(t, ix, index.SearchOptions{Query: query}); len(hits) != 1 || hits[0].Snippet == "" {
			t.Errorf("%q finds %+v", query, hits)
		}
	}
}

// Of a very long text the beginning is searchable, cut between characters.
func TestMaxText(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.say("first " + strings.Repeat("ü", 60) + " last")
	ix := must[*index.Index](t)(index.Open(context.Background(), f.st, f.path(), &index.Options{MaxText: 99}))
	defer ix.Close()
	mustCatchUp(t, ix)
	if hits := search(t, ix, index.SearchOptions{Query: "first"}); len(hits) != 1 || strings.ContainsRune(hits[0].Snippet, '\uFFFD') {
		t.Errorf("the beginning is found as %+v", hits)
	}
	if hits := search(t, ix, index.SearchOptions{Query: "last"}); len(hits) != 0 {
		t.Errorf("the end is found as %+v", hits)
	}
}

// Entries that come after their children, or in circles, hang as in a session.
func TestParentsThatComeLater(t *testing.T) {
	t.Parallel()
	line := func(id, parent string) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"parent_id":%s,"timestamp":"2026-03-14T12:00:00Z","message":{"role":"user","content":"say %s"}}`, id, parent, id)
	}
	for name, lines := range map[string][]string{
		"a parent after its child":     {line("b", `"a"`), line("a", "null"), line("c", `"b"`)},
		"a parent between":             {line("a", "null"), line("c", `"b"`), line("b", `"a"`), line("d", `"c"`)},
		"two children before":          {line("b", `"a"`), line("c", `"a"`), line("a", "null")},
		"a circle":                     {line("a", `"b"`), line("b", `"a"`), line("c", `"b"`)},
		"a circle of three":            {line("a", `"c"`), line("b", `"a"`), line("c", `"b"`), line("d", `"c"`)},
		"its own parent":               {line("a", `"a"`), line("b", `"a"`)},
		"a parent that never comes":    {line("a", "null"), line("b", `"nobody"`), line("c", `"b"`)},
		"an entry that comes again":    {line("a", "null"), line("b", `"a"`), line("a", "null"), line("c", `"b"`)},
		"a child that comes again":     {line("b", `"a"`), line("b", `"a"`), line("a", "null")},
		"a parent after damage":        {line("a", "null"), "not json", line("c", `"b"`)},
		"damage that names its parent": {line("a", "null"), `{"type":"message","id":"b","parent_id":"a","mess`, line("c", `"b"`)},
	} {
		for _, batch := range []int{1, 100} {
			t.Run(fmt.Sprintf("%s/%d", name, batch), func(t *testing.T) {
				f := newFixture(t)
				header := `{"type":"session","id":"x","version":1,"timestamp":"2026-03-14T12:00:00Z"}`
				content := strings.Join(append([]string{header}, lines...), "\n") + "\n"
				if err := os.WriteFile(filepath.Join(f.dir, "x.jsonl"), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				ix := must[*index.Index](t)(index.Open(context.Background(), f.st, f.path(), nil))
				defer ix.Close()
				ix.SetBatch(batch)
				mustCatchUp(t, ix)
				compareTree(t, f.st, ix)
				got := must[index.Session](t)(ix.Get(context.Background(), "x"))
				if strings.HasPrefix(name, "a circle") && got.Problems != 1 { // the circle; no parent is missing
					t.Errorf("%d problems, want 1", got.Problems)
				}
			})
		}
	}
}

// compareTree compares what the index knows of a tree to what the session says.
func compareTree(t *testing.T, st *file.Store, ix *index.Index) {
	t.Helper()
	ctx := context.Background()
	s := must[*session.Session](t)(session.Open(ctx, st, "x", nil))
	defer s.Close()
	got := must[index.Session](t)(ix.Get(ctx, "x"))
	if leaves := must[[]string](t)(s.Leaves()); got.Branches != len(leaves) || got.Leaf != s.LeafID() {
		t.Errorf("%d branches and leaf %s, want %q and %s", got.Branches, got.Leaf, leaves, s.LeafID())
	}
	live := make(map[string]bool)
	for _, e := range must[[]session.Entry](t)(s.Forward("")) {
		live[e.ID] = true
	}
	for _, hit := range search(t, ix, index.SearchOptions{Query: "say"}) {
		if hit.Live != live[hit.Entry] {
			t.Errorf("entry %s is live: %v, want %v", hit.Entry, hit.Live, live[hit.Entry])
		}
	}
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	day := time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Time{
		"now": now, "today": day, "yesterday": day.AddDate(0, 0, -1),
		"90min": now.Add(-90 * time.Minute), "12h": now.Add(-12 * time.Hour), "7d": now.AddDate(0, 0, -7), "2w": now.AddDate(0, 0, -14),
		"2026": time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), "2026-02": time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
		"2026-02-03": time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC), "2026-02-03T04:05": time.Date(2026, 2, 3, 4, 5, 0, 0, time.UTC),
		"2026-02-03T04:05:06Z": time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC),
	} {
		if got, ok := index.ParseTime(value, now); !ok || !got.Equal(want) {
			t.Errorf("%q is %v, %v; want %v", value, got, ok, want)
		}
	}
	for _, value := range []string{"", "d", "-1d", "7y", "lately", "2026-13", "99999999d", "6m", "90m", "1d6m"} {
		if got, ok := index.ParseTime(value, now); ok {
			t.Errorf("%q is %v", value, got)
		}
	}
}
