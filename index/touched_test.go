package index_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

// touching creates a session with one word from the user and tool calls that touch files.
func (f *fixture) touching(h session.Header, word string, calls ...session.Content) *session.Session {
	s := f.create(h)
	f.append(s, session.RoleUser, session.Text(word))
	f.append(s, session.RoleAssistant, calls...)
	return s
}

func read(path string) session.Content {
	return session.ToolUse("c-"+path, "read", map[string]any{"path": path})
}

// desk makes sessions that touch files in all the ways that calls name them.
func desk(f *fixture) {
	f.touching(session.Header{ID: "reads", CWD: "/work/forge"}, "oak", read("store/main.go"), read("./README.md"))
	f.touching(session.Header{ID: "edits", CWD: "/work/ledger"}, "oak", session.ToolUse("c", "Edit", map[string]any{
		"file_path": "/work/ledger/Main.go", "old_string": "a", "new_string": "b",
	}))
	f.touching(session.Header{ID: "patches", CWD: `C:\work`}, "elm", session.ToolUse("c", "apply_patch", map[string]any{
		"input": "*** Begin Patch\n*** Update File: src\\main.go\n+x\n*** End Patch",
	}))
	f.touching(session.Header{ID: "nowhere"}, "elm", read("main.go"), read("domain.go"))
	f.touching(session.Header{ID: "mentions", CWD: "/work/forge"}, "oak main.go", session.ToolUse("c", "bash", map[string]any{"command": "cat main.go"}))
}

func TestSessionsThatTouchedAFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	desk(f)
	links := f.chain() // about /src
	f.append(links[1], session.RoleAssistant, read("deep/chained.go"))
	ix := f.open(t)
	for _, tt := range []struct{ file, want string }{
		{"main.go", "edits nowhere patches reads"},
		{"MAIN.GO", "edits nowhere patches reads"},
		{"store/main.go", "reads"},
		{"tore/main.go", ""},
		{"/work/forge/store/main.go", "reads"},
		{"forge/readme.md", "reads"},
		{`src\main.go`, "patches"},
		{`C:\work\src\main.go`, "patches"},
		{"main.go/", "edits nowhere patches reads"},
		{"main", ""},
		{"src/deep/chained.go", links[0].ID()},
	} {
		if got := sortedIDs(pages(t, ix, index.ListOptions{File: tt.file, Limit: 3})); got != tt.want {
			t.Errorf("listed by %s: %s; want %s", tt.file, got, tt.want)
		}
		if n := must[int](t)(ix.Count(context.Background(), index.ListOptions{File: tt.file})); n != len(strings.Fields(tt.want)) {
			t.Errorf("counted by %s: %d", tt.file, n)
		}
		hits := search(t, ix, index.SearchOptions{Query: "kind:text", File: tt.file})
		var found []string
		for _, h := range hits {
			found = append(found, h.Session)
		}
		slices.Sort(found)
		if got := strings.Join(slices.Compact(found), " "); got != tt.want {
			t.Errorf("found by %s: %s; want %s", tt.file, got, tt.want)
		}
	}
	if got := sortedIDs(pages(t, ix, index.ListOptions{File: "chained.go", Links: true, Limit: 3})); got != links[1].ID() {
		t.Errorf("of the chain %s touched the file; want %s", got, links[1].ID())
	}
	// All that was said in the chain is in a conversation that touched the file.
	if hits := search(t, ix, index.SearchOptions{Query: "question file:chained.go"}); len(hits) != 3 {
		t.Errorf("%d questions; want 3", len(hits))
	}
}

func TestFileInAQuery(t *testing.T) {
	f := newFixture(t)
	desk(f)
	ix := f.open(t)
	t.Chdir(t.TempDir())
	here := session.Header{ID: "here", CWD: index.Dir(".")}
	f.touching(here, "oak", read("notes/plan.md"))
	mustCatchUp(t, ix)
	for query, want := range map[string]string{
		"oak file:main.go":                "edits reads",
		"oak file:store/main.go":          "reads",
		"oak file:main.go project:ledger": "edits",
		"file:readme.md file:Main.go elm": "nowhere patches", // either of them
		"oak file:./notes/plan.md":        "here",
		`oak file:"README.md"`:            "reads",
	} {
		var found []string
		for _, h := range search(t, ix, index.SearchOptions{Query: query}) {
			found = append(found, h.Session)
		}
		slices.Sort(found)
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s: %s; want %s", query, got, want)
		}
	}
}

func TestFileThatNobodyTouched(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	desk(f)
	ix := f.open(t)
	want := []index.Unknown{{Filter: "file", Value: "store/mian.go", DidYouMean: []string{"main.go", "Main.go"}}}
	got := must[[]index.Unknown](t)(ix.UnknownFilters(context.Background(), index.ListOptions{File: "store/mian.go"}))
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b string) bool { return a > b })); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	res := must[*index.Results](t)(ix.Search(context.Background(), index.SearchOptions{Query: "oak file:store/mian.go"}))
	if diff := cmp.Diff(want, res.Unknown, cmpopts.SortSlices(func(a, b string) bool { return a > b })); diff != "" {
		t.Errorf("searched (-want +got):\n%s", diff)
	}
	if res := must[*index.Results](t)(ix.Search(context.Background(), index.SearchOptions{Query: "beech file:store/main.go"})); len(res.Unknown) > 0 {
		t.Errorf("%v; the file is known", res.Unknown)
	}
	values := must[[]string](t)(ix.FilterValues(context.Background(), "file"))
	if diff := cmp.Diff([]string{"Main.go", "README.md", "domain.go", "main.go"}, slices.Sorted(slices.Values(values))); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

// A file that many touched is listed in another way than one that few did.
func TestFileThatManyTouched(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const many = index.MaxTouched + 1
	for n := range many {
		f.touching(session.Header{ID: fmt.Sprintf("s%d", n)}, "oak", read("a/many.go")).Close()
	}
	f.touching(session.Header{ID: "other"}, "oak", read("b/many.go"))
	ix := f.open(t)
	if got := pages(t, ix, index.ListOptions{File: "a/many.go", Limit: 50, Desc: true}); len(got) != many || got[0].ID != fmt.Sprintf("s%d", many-1) {
		t.Errorf("%d sessions, %s first", len(got), got[0].ID)
	}
	if hits := search(t, ix, index.SearchOptions{Query: "oak file:a/many.go", Limit: 2 * many}); len(hits) != many {
		t.Errorf("%d hits", len(hits))
	}
}
