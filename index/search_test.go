package index_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// library makes sessions to search in, and returns names for their entries.
func library(f *fixture) map[string]string {
	names := map[string]string{}
	s := f.create(session.Header{ID: "alpha", CWD: "/home/ann/web", Key: "chat:1"})
	ask := f.append(s, session.RoleUser, session.Text("How do I fix the readFile helper in src/store/main.go?"))
	names[ask] = "ask"
	names[f.respond(s, "r1", "claude-sonnet-4-5", session.Usage{Input: 10, Output: 5},
		session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "perhaps the descriptor leaks"}},
		session.Text("Let me look at it."), session.ToolUse("c1", "bash", map[string]any{"command": "grep -n open main.go"}))] = "look"
	names[f.append(s, session.RoleTool, session.ToolResult("c1", "42: open(path) // TODO leaks\n", false))] = "grep"
	names[f.append(s, session.RoleTool, session.ToolResult("c1", strings.Repeat("padding ", 6000)+"haystack needle", false))] = "blob"
	if err := s.Branch(ask); err != nil {
		f.tb.Fatal(err)
	}
	names[f.append(s, session.RoleAssistant, session.Text("Use defer file.Close() and be done."))] = "defer"
	names[must[string](f.tb)(s.SetLabel(ask, "the first question"))] = "label"
	names[must[string](f.tb)(s.AppendSessionInfo("Leaking descriptors"))] = "title"
	names[must[string](f.tb)(s.AppendEntry(session.Tags("golang", "bug")))] = "tags"

	f.now = f.now.AddDate(0, 1, 0)
	s = f.create(session.Header{ID: "beta", CWD: "/home/ann/webshop"})
	names[f.append(s, session.RoleUser, session.Text("Crème brûlée: 中文字处理 と ひらがな and 한국어, camelcase 🚀"))] = "tongues"
	names[f.append(s, session.RoleAssistant, session.Text("We leak nothing here. snake_case and camelCase and kebab-case."))] = "cases"
	return names
}

func TestSearch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		query string
		want  string // names of entries, sorted
	}{
		{"readfile", "ask"},
		{"readFile", "ask"},
		{"read_file", "ask"},
		{"read file", "ask"},
		{`"file read"`, ""},
		{"helper", "ask"},
		{"main.go", "ask look"},
		{"store/main.go", "ask"},
		{"src/main.go", ""},
		{"leaks", "cases grep look title"},
		{`"leaks"`, "grep look"},
		{"agent:coppice leak*", "cases grep look title"},
		{"project:web leak*", "grep look title"},
		{"project:WEBSHOP leak*", "cases"},
		{"padded", "blob"},
		{"helpers reading", "ask"},
		{"leak*", "cases grep look title"},
		{"descriptor OR haystack", "blob look title"},
		{"needle", "blob"},
		{"kind:thinking", "look"},
		{"kind:call grep", "look"},
		{"tool:bash leaks", "grep"},
		{"-leak leaks", "grep look title"},
		{"tool:BASH", "blob grep look"},
		{"tool:python", ""},
		{"role:tool", "blob grep"},
		{"open -role:tool", "look"},
		{"open -todo", "look"},
		{"model:claude", "look"},
		{"model:gpt", ""},
		{"leak* -model:claude-sonnet", "cases grep title"},
		{"branch:live leak*", "cases title"},
		{"branch:live defer", "defer"},
		{"file branch:all", "ask defer"},
		{"tag:golang leak*", "grep look title"},
		{"tag:golang tag:rust leak*", ""},
		{"cwd:/home/ann/web leak*", "grep look title"},
		{"cwd:/home/ann leak*", "cases grep look title"},
		{"cwd:/home/ann/ leak*", "cases grep look title"},
		{"session:beta leak*", "cases"},
		{"session:chat:1 leak*", "grep look title"},
		{"session:al session:be leak*", "cases grep look title"},
		{"since:2026-04 leak*", "cases"},
		{"until:2026-04 leak*", "grep look title"},
		{"first question", "label"},
		{"golang", "tags"},
		{"descriptors", "look title"},
		{`"descriptors"`, "title"},
		{"creme BRULEE", "tongues"},
		{"中文", "tongues"},
		{"文字处", "tongues"},
		{"文处", ""},
		{"字", "tongues"},
		{"理", "tongues"},
		{"ひら", "tongues"},
		{"국어", "tongues"},
		{"🚀", "tongues"},
		{"camelcase", "cases tongues"},
		{"camelCase", "cases tongues"},
		{"camel", "cases"},
		{"case", "cases"},
		{"snakecase", "cases"},
		{"kebabCase", "cases"},
		{`"camelCase and kebab"`, "cases"},
		{`"nothing here"`, "cases"},
		{`"nothing he"*`, "cases"},
		{`"here nothing"`, ""},
		{"(creme OR helper) -fix", "tongues"},
		{"-leak* kind:text", "ask defer look tongues"},
		{"of the and zzz", ""},
	}
	f := newFixture(t)
	names := library(f)
	ix := f.open(t)
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			var got []string
			for _, hit := range search(t, ix, index.SearchOptions{Query: tt.query}) {
				got = append(got, names[hit.Entry])
				checkHighlights(t, hit)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, strings.Join(slices.Compact(got), " ")); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

func checkHighlights(t *testing.T, hit index.Hit) {
	t.Helper()
	last := 0
	for _, r := range hit.Highlights {
		if r.Start < last || r.End <= r.Start || r.End > len(hit.Snippet) {
			t.Errorf("highlights %v of %q", hit.Highlights, hit.Snippet)
		}
		last = r.End
	}
}

// marked shows a snippet with its highlights.
func marked(hit index.Hit) string {
	var b strings.Builder
	at := 0
	for _, r := range hit.Highlights {
		b.WriteString(hit.Snippet[at:r.Start] + "[" + hit.Snippet[r.Start:r.End] + "]")
		at = r.End
	}
	return b.String() + hit.Snippet[at:]
}

func TestSnippets(t *testing.T) {
	t.Parallel()
	tests := []struct{ query, want string }{
		{"readfile", "How do I fix the [readFile] helper in src/store/main.go?"},
		{"read fix", "How do I [fix] the [read]File helper in src/store/main.go?"},
		{"main.go helper kind:text", "How do I fix the readFile [helper] in src/store/[main.go]?"},
		{"todo", "42: open(path) // [TODO] leaks "},
		{"needle", "…" + strings.Repeat("padding ", 9) + "haystack [needle]"},
		{"creme 字 国", ""},
		{"creme 字", "[Crème] brûlée: 中文[字]处理 と ひらがな and 한국어, camelcase 🚀"},
		{"文字处", "Crème brûlée: 中[文字处]理 と ひらがな and 한국어, camelcase 🚀"},
		{"conn* OR camel*", "We leak nothing here. snake_case and [camelCase] and kebab-case."},
		{"snake* -creme", "We leak nothing here. [snake_case] and camelCase and kebab-case."},
		{"grep kind:call", "bash command: [grep] -n open main.go"},
	}
	f := newFixture(t)
	library(f)
	ix := f.open(t)
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			hits := search(t, ix, index.SearchOptions{Query: tt.query, SnippetLen: 80})
			got := ""
			if len(hits) > 0 {
				got = marked(hits[0])
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("snippet (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	names := library(f)
	ix := f.open(t)
	hits := search(t, ix, index.SearchOptions{Query: "todo"})
	if len(hits) != 1 {
		t.Fatalf("hits %+v", hits)
	}
	hit := hits[0]
	if names[hit.Entry] != "grep" || names[hit.Leaf] != "blob" || hit.Score <= 0 {
		t.Errorf("entry %q, leaf %q, score %v", names[hit.Entry], names[hit.Leaf], hit.Score)
	}
	want := index.Hit{
		Session: "alpha", Name: "alpha", Title: "Leaking descriptors", CWD: "/home/ann/web", Agent: "coppice",
		Updated: time.Date(2026, 3, 14, 12, 0, 7, 0, time.UTC), Entry: hit.Entry, Leaf: hit.Leaf, Score: hit.Score,
		Kind: index.KindOutput, Role: "tool", Tool: "bash", Live: false, Time: hit.Time,
		Snippet: "42: open(path) // TODO leaks ", Highlights: []index.Range{{Start: 18, End: 22}},
	}
	if diff := cmp.Diff(want, hit); diff != "" {
		t.Errorf("hit (-want +got):\n%s", diff)
	}
	if y, m, _ := hit.Time.Date(); y != 2026 || m != time.March {
		t.Errorf("time %v", hit.Time)
	}
	live := search(t, ix, index.SearchOptions{Query: "defer"})[0]
	if !live.Live || names[live.Leaf] != "tags" {
		t.Errorf("live hit %+v leads to %s", live, names[live.Leaf])
	}
}

func TestSearchOptions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	names := library(f)
	ix := f.open(t)
	tests := []struct {
		name string
		o    index.SearchOptions
		want string
	}{
		{"kinds", index.SearchOptions{Query: "leak*", Kinds: []index.Kind{index.KindTitle, index.KindOutput}}, "grep title"},
		{"kinds twice", index.SearchOptions{Query: "leak* kind:title", Kinds: []index.Kind{index.KindTitle, index.KindOutput}}, "title"},
		{"roles", index.SearchOptions{Roles: []string{"tool"}}, "blob grep"},
		{"tools", index.SearchOptions{Query: "leaks", Tools: []string{"bash"}}, "grep"},
		{"models", index.SearchOptions{Query: "open", Models: []string{"claude-sonnet"}}, "look"},
		{"tags", index.SearchOptions{Query: "leak*", Tags: []string{"bug", "golang"}}, "grep look title"},
		{"cwd", index.SearchOptions{Query: "leak*", CWD: "/home/ann/webshop"}, "cases"},
		{"session", index.SearchOptions{Query: "leak*", Session: "bet"}, "cases"},
		{"since", index.SearchOptions{Query: "leak*", Since: time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)}, "cases"},
		{"until", index.SearchOptions{Query: "leak*", Until: time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)}, "grep look title"},
		{"branch", index.SearchOptions{Query: "leak*", Branch: index.LiveBranch}, "cases title"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, hit := range search(t, ix, tt.o) {
				got = append(got, names[hit.Entry])
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, strings.Join(slices.Compact(got), " ")); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRanking(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filler := strings.Repeat("lorem ipsum dolor ", 30)
	f.say("walrus "+filler, "walrus walrus walrus", "a walrus and a carpenter", "carpenter", filler, filler)
	ix := f.open(t)
	for _, tt := range []struct{ query, best string }{
		{"walrus", "walrus walrus walrus"},
		{"walrus OR carpenter", "a walrus and a carpenter"},
	} {
		if hits := search(t, ix, index.SearchOptions{Query: tt.query}); hits[0].Snippet != tt.best {
			t.Errorf("the best of %q is %q", tt.query, hits[0].Snippet)
		}
	}
}

func TestBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var texts []string
	for i := range 60 {
		texts = append(texts, fmt.Sprintf("common number%d", i))
	}
	f.say(texts...)
	ix := f.open(t)
	res, err := ix.Search(context.Background(), index.SearchOptions{Query: "common", Newest: 10, Limit: 5})
	if err != nil || !res.Bounded || res.Matches != 10 || len(res.Hits) != 5 {
		t.Fatalf("%+v, %v", res, err)
	}
	if res, err = ix.Search(context.Background(), index.SearchOptions{Query: "common"}); err != nil || res.Bounded || res.Matches != 60 {
		t.Errorf("%+v, %v", res, err)
	}
	var seen []string
	for offset := 0; offset < 60; offset += 20 {
		for _, hit := range search(t, ix, index.SearchOptions{Query: "common", Order: index.ByTime, Offset: offset}) {
			seen = append(seen, hit.Snippet)
		}
	}
	slices.Reverse(seen)
	if diff := cmp.Diff(texts, seen); diff != "" {
		t.Errorf("by time (-want +got):\n%s", diff)
	}
}

// tablesRoom is a room with other tables.
type tablesRoom struct {
	room.Room
	ask func(tables room.Tables, ctx context.Context, query string, args ...any) (*sql.Rows, error) // nil until it begins
}

func (r *tablesRoom) View(ctx context.Context, filled bool, f func(room.Tables) error) error {
	return r.Room.View(ctx, filled, func(tables room.Tables) error {
		if r.ask != nil {
			tables = askedTables{tables, r.ask}
		}
		return f(tables)
	})
}

type askedTables struct {
	room.Tables
	ask func(tables room.Tables, ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (t askedTables) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.ask(t.Tables, ctx, query, args...)
}

// TestPartlyLookedInto searches in a room that looks into a part of the texts only.
func TestPartlyLookedInto(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 60 {
		f.say(fmt.Sprintf("common number%d", i))
	}
	partly := &tablesRoom{Room: f.room(t)}
	ix := index.New(f.st, partly, nil)
	t.Cleanup(func() { ix.Close() })
	mustCatchUp(t, ix)
	partly.ask = func(tables room.Tables, ctx context.Context, query string, args ...any) (*sql.Rows, error) {
		for _, arg := range args {
			if m, ok := arg.(room.Match); ok && m.Partly != nil && !m.Few {
				*m.Partly, args[len(args)-1] = true, 0 // the limit
			}
		}
		return tables.QueryContext(ctx, query, args...)
	}
	for _, tt := range []struct {
		query   string
		matches int
		bounded bool
	}{
		{"common", 0, true},
		{"number7", 1, false},
		{"common number7", 1, false},
		{"-number7", 0, true},
		{"role:user", 0, true},
		{"commoon", 0, false},
	} {
		res := must[*index.Results](t)(ix.Search(t.Context(), index.SearchOptions{Query: tt.query, Newest: 10, Limit: 5}))
		if res.Matches != tt.matches || res.Bounded != tt.bounded || (len(res.DidYouMean) > 0) != (tt.query == "commoon") {
			t.Errorf("%s: %+v", tt.query, res)
		}
	}
}

// The same question has the same answer, however busy the machine is.
func TestSearchOnABusyMachine(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.create(session.Header{})
	for i := range 300 {
		f.append(s, session.RoleUser, session.Text(fmt.Sprintf("common %s number%d", strings.Repeat("word ", i%7), i)))
	}
	busy := &tablesRoom{Room: f.room(t)}
	ix := index.New(f.st, busy, nil)
	t.Cleanup(func() { ix.Close() })
	mustCatchUp(t, ix)
	o := index.SearchOptions{Query: "common", Limit: 300, SnippetLen: -1}
	quiet := must[*index.Results](t)(ix.Search(t.Context(), o))
	busy.ask = func(tables room.Tables, ctx context.Context, query string, args ...any) (*sql.Rows, error) {
		time.Sleep(100 * time.Millisecond)
		return tables.QueryContext(ctx, query, args...)
	}
	if res := must[*index.Results](t)(ix.Search(t.Context(), o)); res.Matches != 300 || res.Bounded || len(res.Hits) != len(quiet.Hits) {
		t.Errorf("%d matches, bounded %v; want 300", res.Matches, res.Bounded)
	}
}

// More entries than the numbers of one second are forked again and again: each is one hit, and what
// comes first does not depend on what came into the index first.
func TestCopiesThatShareATime(t *testing.T) {
	t.Parallel()
	const texts, forks = 40, 16
	f := newFixture(t)
	s := f.create(session.Header{})
	var all []session.Entry
	for i := range texts {
		e := session.Message(session.RoleUser, session.Text(fmt.Sprintf("common number%d %s", i, strings.Repeat("word ", i%5))))
		e.ID, e.Timestamp = fmt.Sprintf("e%02d", i), time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
		if i > 0 {
			e.ParentID = &all[i-1].ID
		}
		all = append(all, e)
	}
	if err := s.Graft(all...); err != nil {
		t.Fatal(err)
	}
	ix := f.open(t)
	for range forks {
		forked := must[*session.Session](t)(s.Fork(t.Context(), f.st, &session.ForkOptions{Options: f.options()}))
		t.Cleanup(func() { forked.Close() })
	}
	mustCatchUp(t, ix)
	questions := []index.SearchOptions{
		{Query: "common", Limit: 100},
		{Query: "common word", Limit: 100},
		{Query: "number7", Limit: 100},
		{Query: "common", Limit: 7, Offset: 20},
		{Query: "common", Limit: 100, Order: index.ByTime},
		{Query: "word", Limit: 100, BySession: true},
	}
	ask := func() (answers [][]index.Hit) {
		for _, o := range questions {
			o.SnippetLen = -1
			answers = append(answers, search(t, ix, o))
		}
		return answers
	}
	before := ask()
	if len(before[0]) != texts || len(before[2]) != 1 {
		t.Fatalf("%d and %d hits, want %d and 1", len(before[0]), len(before[2]), texts)
	}
	for _, h := range before[0] {
		if len(h.Also) != forks {
			t.Errorf("%s is also in %d sessions, want %d", h.Entry, len(h.Also), forks)
		}
	}
	if _, err := ix.Rebuild(t.Context(), nil); err != nil { // which may read the sessions in another order
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, ask()); diff != "" {
		t.Errorf("after a rebuild (-before +after):\n%s", diff)
	}
}

// TestManySessionsFilter narrows a search to more sessions, and to more
// directories, than facets allow.
func TestManySessionsFilter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 230 {
		s := f.create(session.Header{ID: fmt.Sprintf("s%d", i), CWD: fmt.Sprintf("/%d/%d", i%23, i)})
		f.append(s, session.RoleUser, session.Text("word"))
		f.append(s, session.RoleUser, session.Text("other"))
	}
	ix := f.open(t)
	for filter, want := range map[string]int{
		"cwd:/7": 10, "cwd:/7 session:s7": 2, "cwd:/": 230, "cwd:/ session:s": 230, "cwd:/ session:s11": 11,
		"session:s": 230, "session:s1": 111, "session:s -role:user": 0,
	} {
		res, err := ix.Search(context.Background(), index.SearchOptions{Query: "(word OR nothing) " + filter})
		if err != nil {
			t.Fatalf("%s: %v", filter, err)
		}
		if res.Matches != want {
			t.Errorf("%s: %d matches, want %d", filter, res.Matches, want)
		}
	}
}

// openings counts which logs are opened.
type openings struct {
	store.Store
	n atomic.Int64
}

func (o *openings) Open(ctx context.Context, name string) (store.Log, error) {
	o.n.Add(1)
	return o.Store.Open(ctx, name)
}

// A search by session finds the first hit of each, which counts the others, on pages of
// sessions. Sessions that continue each other are one. Only the text of what is shown is read.
func TestSearchBySession(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var want []string
	for n := range 3 {
		s := f.say(fmt.Sprint("heron ", n))
		for _, tool := range []string{"read", "edit", "read"}[:n] {
			f.append(s, session.RoleAssistant, session.ToolUse("t", tool, map[string]any{"path": "heron"}))
		}
		want = append([]string{fmt.Sprint(s.ID(), " ", n+1, " ", []string{"edit", "read"}[2-n:])}, want...)
		if n == 0 {
			next := must[*session.Session](t)(s.Continue())
			f.append(next, session.RoleUser, session.Text("the heron of the next session"))
			want[0] = fmt.Sprint(s.ID(), " 2 []")
			next.Close()
		}
	}
	f.open(t)
	opened := &openings{Store: f.st}
	ix := index.New(opened, f.room(t), nil)
	defer ix.Close()
	o := index.SearchOptions{Query: "heron", Order: index.ByTime, BySession: true, Limit: 2}
	var got []string
	for o.Offset < 4 {
		before := opened.n.Load()
		res, err := ix.Search(t.Context(), o)
		if err != nil || res.Matches != 3 {
			t.Fatalf("%d sessions, %v; want 3", res.Matches, err)
		}
		if n := opened.n.Load() - before; n != int64(len(res.Hits)) {
			t.Errorf("%d logs were opened for %d hits", n, len(res.Hits))
		}
		for _, h := range res.Hits {
			if h.Snippet == "" {
				t.Errorf("%s has no snippet", h.Session)
			}
			got = append(got, fmt.Sprint(h.Session, " ", h.Hits, " ", h.Tools))
		}
		o.Offset += 2
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
}

// What forks repeat is one hit, that of the original, which names the others.
func TestCopiesAreOneHit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := context.Background()
	s := f.say("the heron flew")
	heron := s.LeafID()
	f.append(s, session.RoleUser, session.Text("the heron came back"))
	var forks []string
	for range 3 {
		fork := must[*session.Session](t)(s.Fork(ctx, f.st, &session.ForkOptions{Options: f.options()}))
		f.append(fork, session.RoleUser, session.Text("another heron"))
		forks = append(forks, fork.ID())
		fork.Close()
	}
	slices.Sort(forks)
	f.say("the heron flew") // said again, and no copy
	ix := f.open(t)
	for _, order := range []index.Order{index.ByRank, index.ByTime} {
		hits := search(t, ix, index.SearchOptions{Query: "heron", Order: order})
		if len(hits) != 6 {
			t.Errorf("by %s: %d hits, want 6", order, len(hits))
		}
		for limit := range 7 { // the total is six at every limit; 15 would count the copies
			res, err := ix.Search(ctx, index.SearchOptions{Query: "heron", Order: order, Limit: limit})
			if err != nil || res.Matches != 6 {
				t.Errorf("by %s, %d wanted: %d matches, %v; want 6", order, limit, res.Matches, err)
			}
		}
		for _, h := range hits {
			switch {
			case h.Session != s.ID() && len(h.Also) > 0:
				t.Errorf("by %s: %+v is a hit of a fork", order, h)
			case h.Session == s.ID() && !slices.Equal(h.Also, forks):
				t.Errorf("by %s: also in %q, want %q", order, h.Also, forks)
			}
		}
		var paged []index.Hit
		for n := range 7 {
			paged = append(paged, search(t, ix, index.SearchOptions{Query: "heron", Order: order, Limit: 1, Offset: n})...)
		}
		if diff := cmp.Diff(hits, paged); diff != "" {
			t.Errorf("by %s, one at a time (-want +got):\n%s", order, diff)
		}
	}
	// Where the forks have left the branch, the original stands for them all the same.
	for _, name := range forks {
		fork := must[*session.Session](t)(session.Open(ctx, f.st, name, f.options()))
		if err := fork.ResetLeaf(); err != nil {
			t.Fatal(err)
		}
		fork.Close()
	}
	mustCatchUp(t, ix)
	for _, h := range search(t, ix, index.SearchOptions{Query: "heron"}) {
		if h.Entry == heron && (!h.Live || h.Session != s.ID()) {
			t.Errorf("%+v stands for the original", h)
		}
	}
	back := must[*session.Session](t)(session.Open(ctx, f.st, forks[0], f.options()))
	if err := back.Branch(heron); err != nil {
		t.Fatal(err)
	}
	back.Close()
	// Where the original has left the branch, a fork on which it is live stands for it.
	if err := s.ResetLeaf(); err != nil {
		t.Fatal(err)
	}
	mustCatchUp(t, ix)
	for _, h := range search(t, ix, index.SearchOptions{Query: "heron"}) {
		if h.Entry == heron && (!h.Live || h.Session == s.ID() || len(h.Also) != 3) {
			t.Errorf("%+v stands for the copies", h)
		}
	}
}

// The ages of texts are counted from the newest match and not from today, so a score does not
// change as time goes by.
func TestScoresDoNotFollowTheClock(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.now = f.now.AddDate(-10, 0, 0)
	f.say("a heron")
	f.now = f.now.AddDate(0, 0, 30)
	f.say("a heron")
	hits := search(t, f.open(t), index.SearchOptions{Query: "heron"})
	if len(hits) != 2 || hits[0].Time.Before(hits[1].Time) {
		t.Fatalf("the hits are %+v, want two, the newest first", hits)
	}
	if got, want := hits[0].Score/hits[1].Score, 1.25/1.125; math.Abs(got-want) > 0.001 {
		t.Errorf("the newer of two texts that are 30 days apart scores %v times the other, want %v times", got, want)
	}
}

// A note is nobody's message. It is found as what it is, by its words and by who wrote it.
func TestNotesAreFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.say("count the herons")
	must[string](t)(s.AppendEntry(session.NewNote("reviewer", "the herons\nare gone")))
	ix := f.open(t)
	for query, want := range map[string]string{
		"kind:note": "note/", "kind:note herons": "note/", "reviewer gone": "note/", "kind:text herons": "text/user", "words": "", "role:custom": "", "herons -kind:note": "text/user",
	} {
		got := ""
		res, _ := ix.Search(context.Background(), index.SearchOptions{Query: query}) // no role is custom, which is an error
		if res != nil {
			for _, h := range res.Hits {
				got += string(h.Kind) + "/" + h.Role
			}
		}
		if got != want {
			t.Errorf("%s finds %q, want %q", query, got, want)
		}
	}
	if hits := search(t, ix, index.SearchOptions{Query: "gone"}); len(hits) != 1 || hits[0].Snippet != "reviewer: the herons are gone" {
		t.Errorf("found %+v", hits)
	}
}
