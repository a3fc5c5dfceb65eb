package index_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// shelf makes sessions that differ in everything that they can be sorted by.
func shelf(f *fixture) {
	titles := []string{"émile", "Anna", "zoe", "Bob", "bob", "", "中文"}
	for i, title := range titles {
		s := f.create(session.Header{ID: fmt.Sprintf("s%d", i), Key: fmt.Sprintf("key:%d", i%3), CWD: fmt.Sprintf("/work/%d", i%2)})
		for j := range (i*5)%7 + 1 {
			f.append(s, session.RoleUser, session.Text(fmt.Sprintf("message %d", j)))
		}
		f.respond(s, "", "m", session.Usage{Input: (i * 3) % 7, Output: 1}, session.Text("yes"))
		if title != "" {
			must[string](f.tb)(s.AppendSessionInfo(title))
		}
		if i%2 == 0 {
			must[string](f.tb)(s.AppendEntry(session.Tags("even", fmt.Sprintf("t%d", i))))
		}
		must[string](f.tb)(s.AppendEntry(session.Pinned(i == 3 || i == 4)))
		if i == 2 {
			if err := f.st.Archive(context.Background(), s.ID()); err != nil {
				f.tb.Fatal(err)
			}
		}
	}
}

func TestListOrders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	shelf(f)
	ix := f.open(t)
	all, _, err := ix.List(context.Background(), index.ListOptions{Limit: -1})
	if err != nil || len(all) != 7 {
		t.Fatal(len(all), err)
	}
	less := map[index.Sort]func(a, b index.Session) int{
		index.ByUpdated:  func(a, b index.Session) int { return a.Updated.Compare(b.Updated) },
		index.ByCreated:  func(a, b index.Session) int { return a.Created.Compare(b.Created) },
		index.ByMessages: func(a, b index.Session) int { return a.Messages - b.Messages },
		index.ByTokens:   func(a, b index.Session) int { return int(a.Tokens - b.Tokens) },
		index.BySize:     func(a, b index.Session) int { return int(a.Size - b.Size) },
		index.ByTitle:    func(a, b index.Session) int { return titleRank(a) - titleRank(b) },
	}
	for sort, compare := range less {
		for _, desc := range []bool{false, true} {
			t.Run(fmt.Sprint(sort, desc), func(t *testing.T) {
				want := slices.Clone(all)
				slices.SortStableFunc(want, func(a, b index.Session) int {
					c := compare(a, b)
					if c == 0 {
						c = strings.Compare(a.ID, b.ID)
					}
					if desc {
						return -c
					}
					return c
				})
				if diff := cmp.Diff(want, pages(t, ix, index.ListOptions{Sort: sort, Desc: desc, Limit: 2})); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// titleRank is the place of a title without regard to case and accents.
func titleRank(s index.Session) int {
	return slices.Index([]string{"anna", "bob", "émile", "message 0", "zoe", "中文"}, strings.ToLower(s.Title))
}

// pages reads a list page by page.
func pages(t *testing.T, ix *index.Index, o index.ListOptions) []index.Session {
	t.Helper()
	var all []index.Session
	for {
		page, next, err := ix.List(context.Background(), o)
		if err != nil || len(page) > o.Limit {
			t.Fatal(len(page), err)
		}
		all = append(all, page...)
		if next == "" {
			return all
		}
		o.After = next
	}
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	shelf(f)
	ix := f.open(t)
	yes, no := true, false
	third := must[index.Session](t)(ix.Get(context.Background(), "s3"))
	tests := []struct {
		name string
		o    index.ListOptions
		want string
	}{
		{"none", index.ListOptions{}, "s0 s1 s2 s3 s4 s5 s6"},
		{"tag", index.ListOptions{Tags: []string{"even"}}, "s0 s2 s4 s6"},
		{"tags", index.ListOptions{Tags: []string{"even", "t4"}}, "s4"},
		{"cwd", index.ListOptions{CWD: "/work/1"}, "s1 s3 s5"},
		{"cwd above", index.ListOptions{CWD: "/work"}, "s0 s1 s2 s3 s4 s5 s6"},
		{"cwd beside", index.ListOptions{CWD: "/wor"}, ""},
		{"key", index.ListOptions{Key: "key:2"}, "s2 s5"},
		{"no such tag", index.ListOptions{Tags: []string{"odd"}}, ""},
		{"tag and cwd", index.ListOptions{Tags: []string{"even"}, CWD: "/work/1"}, ""},
		{"tag and pinned", index.ListOptions{Tags: []string{"even"}, Pinned: &yes}, "s4"},
		{"cwd and pinned", index.ListOptions{CWD: "/work/1", Pinned: &yes}, "s3"},
		{"pinned and archived", index.ListOptions{Pinned: &yes, Archived: &yes}, ""},
		{"pinned", index.ListOptions{Pinned: &yes}, "s3 s4"},
		{"not pinned", index.ListOptions{Pinned: &no}, "s0 s1 s2 s5 s6"},
		{"archived", index.ListOptions{Archived: &yes}, "s2"},
		{"not archived", index.ListOptions{Archived: &no}, "s0 s1 s3 s4 s5 s6"},
		{"since", index.ListOptions{Since: third.Updated}, "s3 s4 s5 s6"},
		{"until", index.ListOptions{Until: third.Updated}, "s0 s1 s2"},
		{"together", index.ListOptions{Until: third.Updated, Tags: []string{"even"}, Archived: &no}, "s0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, sort := range []index.Sort{index.ByCreated, index.ByUpdated, index.ByTitle, index.ByMessages, index.ByTokens, index.BySize} {
				for _, tt.o.Desc = range []bool{false, true} {
					tt.o.Sort, tt.o.Limit = sort, 3
					if diff := cmp.Diff(tt.want, sortedIDs(pages(t, ix, tt.o))); diff != "" {
						t.Errorf("by %s (-want +got):\n%s", sort, diff)
					}
				}
			}
		})
	}
}

func sortedIDs(sessions []index.Session) string {
	var ids []string
	for _, s := range sessions {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// A directory with many below it is read in another way than one with few.
func TestListDirectories(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 40 {
		f.create(session.Header{ID: fmt.Sprintf("s%02d", i), CWD: fmt.Sprintf("/few/%d", i%3)})
		f.create(session.Header{ID: fmt.Sprintf("t%02d", i), CWD: fmt.Sprintf("/many/%d", i)})
	}
	ix := f.open(t)
	for _, cwd := range []string{"/few", "/many"} {
		for _, desc := range []bool{false, true} {
			list := pages(t, ix, index.ListOptions{CWD: cwd, Desc: desc, Limit: 7})
			if len(list) != 40 {
				t.Errorf("%s: %d sessions", cwd, len(list))
			}
			if !slices.IsSortedFunc(list, func(a, b index.Session) int {
				if desc {
					a, b = b, a
				}
				return a.Updated.Compare(b.Updated)
			}) {
				t.Errorf("%s: not in order: %s", cwd, sortedIDs(list))
			}
		}
	}
}

// Subagents are folded under the session that started them, whichever is seen
// first, and are listed by themselves when that is gone.
func TestSubagents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := context.Background()
	check := func(ix *index.Index, o index.ListOptions, want string) {
		t.Helper()
		list, _, err := ix.List(ctx, o)
		if err != nil || sortedIDs(list) != want {
			t.Errorf("%+v lists %q, %v; want %q", o, sortedIDs(list), err, want)
		}
	}
	f.create(session.Header{ID: "sub1", ParentSession: "boss", Relation: session.RelationSubagent})
	f.create(session.Header{ID: "fork", ParentSession: "boss", Relation: session.RelationFork})
	f.create(session.Header{ID: "self", ParentSession: "self", Relation: session.RelationSubagent})
	ix := f.open(t)
	check(ix, index.ListOptions{Fold: true}, "fork self sub1") // nobody to fold them under
	f.create(session.Header{ID: "boss"})
	mustCatchUp(t, ix)
	f.create(session.Header{ID: "sub2", ParentSession: "boss", Relation: session.RelationSubagent})
	mustCatchUp(t, ix)
	check(ix, index.ListOptions{Fold: true}, "boss fork self")
	check(ix, index.ListOptions{}, "boss fork self sub1 sub2")
	check(ix, index.ListOptions{Relation: session.RelationSubagent}, "self sub1 sub2")
	check(ix, index.ListOptions{Relation: session.RelationSubagent, Parent: "boss"}, "sub1 sub2")
	if boss := must[index.Session](t)(ix.Get(ctx, "boss")); boss.Subagents != 2 {
		t.Errorf("the parent has %d subagents", boss.Subagents)
	}
	if err := f.st.Remove(ctx, "boss"); err != nil {
		t.Fatal(err)
	}
	mustCatchUp(t, ix)
	check(ix, index.ListOptions{Fold: true}, "fork self sub1 sub2")
}

// A list of roots leaves out forks and recoveries whose parent is there. Whatever sessions claim
// about each other, one of them stays.
func TestListLeavesOutForks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)
	for i, h := range []session.Header{
		{ID: "root"},
		{ID: "fork", ParentSession: "root", Relation: session.RelationFork},
		{ID: "fork2", ParentSession: "fork", Relation: session.RelationFork},
		{ID: "recovered", ParentSession: "root", Relation: session.RelationRecovery},
		{ID: "orphan", ParentSession: "gone", Relation: session.RelationFork},
		{ID: "x", ParentSession: "y", Relation: session.RelationFork},
		{ID: "y", ParentSession: "x", Relation: session.RelationFork},
		{ID: "self", ParentSession: "self", Relation: session.RelationFork},
	} {
		h.CreatedAt = at.Add(time.Duration(i) * time.Minute)
		f.create(h)
	}
	ix := f.open(t)
	list, _, err := ix.List(t.Context(), index.ListOptions{Roots: true})
	if got := sortedIDs(list); err != nil || got != "orphan root self x" {
		t.Errorf("roots: %s, %v", got, err)
	}
	for id, want := range map[string]int{"root": 2, "fork": 1, "fork2": 0, "x": 1, "y": 0, "self": 0} {
		if s := must[index.Session](t)(ix.Get(t.Context(), id)); s.Forks != want {
			t.Errorf("%s has %d forks, not %d", id, s.Forks, want)
		}
	}
	if list, _, err := ix.List(t.Context(), index.ListOptions{Nonempty: true}); err != nil || len(list) != 0 {
		t.Errorf("something was said in %s, %v", sortedIDs(list), err)
	}
}

func TestListRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	shelf(f)
	ix := f.open(t)
	_, next, err := ix.List(context.Background(), index.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]index.ListOptions{
		"an unknown order":         {Sort: "colour"},
		"nonsense":                 {After: "nonsense"},
		"another order's cursor":   {After: next, Sort: index.ByTitle},
		"another way's cursor":     {After: next, Desc: true},
		"a cursor that is no JSON": {After: "AAAA"},
	} {
		if _, _, err := ix.List(context.Background(), o); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, id := range []string{"abc-1", "abc-2", "abc", "Xyz", "100%_a"} {
		f.create(session.Header{ID: id, Key: "key of " + id})
	}
	ix := f.open(t)
	for prefix, want := range map[string]string{
		"abc": "abc", "abc-": "abc-1 abc-2", "ab": "abc abc-1 abc-2", "X": "Xyz", "x": "", "key of Xyz": "Xyz", "key of": "",
		"": "", "%": "", "100%": "100%_a", "abc-12": "",
	} {
		var got []string
		for _, s := range must[[]index.Session](t)(ix.Find(context.Background(), prefix)) {
			got = append(got, s.ID)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%q finds %q, want %q", prefix, got, want)
		}
	}
	if _, err := ix.Get(context.Background(), "ab"); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("Get of a prefix: %v", err)
	}
}

func TestChainAndFork(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.say("hello")
	next, err := s.Continue()
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	// A second record, of a writer that came too late, does not count.
	if _, err := s.AppendCustomEntry(session.CustomContinuedTo, map[string]any{"session": "late", "of": s.ID()}); err != nil {
		t.Fatal(err)
	}
	fork, err := s.Fork(context.Background(), f.st, &session.ForkOptions{Options: f.options()})
	if err != nil {
		t.Fatal(err)
	}
	defer fork.Close()
	ix := f.open(t)
	for id, want := range map[string]index.Session{
		s.ID():    {ContinuedTo: next.ID()},
		next.ID(): {Parent: s.ID(), Relation: session.RelationContinuation, Continuation: 1},
		fork.ID(): {Parent: s.ID(), Relation: session.RelationFork}, // it does not go on where its original does
	} {
		got := must[index.Session](t)(ix.Get(context.Background(), id))
		if got.ContinuedTo != want.ContinuedTo || got.Parent != want.Parent || got.Relation != want.Relation || got.Continuation != want.Continuation {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	children, _, err := ix.List(context.Background(), index.ListOptions{Parent: s.ID(), Links: true})
	if err != nil || len(children) != 2 {
		t.Errorf("children %+v, %v", children, err)
	}
	// The conversation that goes on is not its own child; its fork is.
	for _, id := range []string{s.ID(), next.ID()} {
		children, _, err = ix.List(context.Background(), index.ListOptions{Parent: id})
		if err != nil || len(children) != 1 || children[0].ID != fork.ID() {
			t.Errorf("children of %s: %+v, %v", id, children, err)
		}
	}
}

func TestTitles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Short":                      "Short",
		"\n\n  First   line\nSecond": "First line",
		strings.Repeat("word ", 40):  strings.TrimSpace(strings.Repeat("word ", 40)),
		strings.Repeat("文", 100):     strings.Repeat("文", 100),
		strings.Repeat("x", 80):      strings.Repeat("x", 80),
		"\x1b[31mred\u202e text":     "\uFFFD[31mred\uFFFD text",
	} {
		f := newFixture(t)
		f.say(text)
		page, _, err := f.open(t).List(context.Background(), index.ListOptions{})
		if err != nil || page[0].Title != want {
			t.Errorf("%q gives %q, %v; want %q", text, page[0].Title, err, want)
		}
	}
}

func TestTagsAndStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	shelf(f)
	ix := f.open(t)
	tags := must[[]index.Count](t)(ix.Tags(context.Background()))
	if len(tags) != 5 || tags[0] != (index.Count{Name: "even", Count: 4}) {
		t.Errorf("tags %v", tags)
	}
	status := must[index.Status](t)(ix.Status(context.Background()))
	if status.Sessions != 7 || status.Entries == 0 || status.Texts == 0 || status.Size == 0 || status.Engine == "" {
		t.Errorf("status %+v", status)
	}
	report, err := ix.Rebuild(context.Background(), nil)
	if err != nil || !report.Rebuilt || report.Changed != 7 {
		t.Errorf("rebuild %+v, %v", report, err)
	}
	if again := must[index.Status](t)(ix.Status(context.Background())); again.Entries != status.Entries || again.Texts != status.Texts {
		t.Errorf("status %+v, before %+v", again, status)
	}
	if f.now.Before(time.Unix(0, 0)) {
		t.Error("time")
	}
}

// TestInjectedIsNoTitle: what a program says in the user's name does not name the
// session.
func TestInjectedIsNoTitle(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.create(session.Header{ID: "s"})
	for _, m := range []session.MessageEntry{
		{Content: []session.Content{session.Text("<system-reminder>")}, Metadata: map[string]any{"injected": true}},
		{Content: []session.Content{session.Text("<environment>")}, Metadata: map[string]any{"injected": "meta"}},
		{Content: []session.Content{session.Text("what I want")}, Metadata: map[string]any{"injected": false}},
	} {
		m.Role = session.RoleUser
		if err := s.Append(session.Entry{Type: session.TypeMessage, Message: &m}); err != nil {
			t.Fatal(err)
		}
	}
	page, _, err := f.open(t).List(context.Background(), index.ListOptions{})
	if err != nil || len(page) != 1 || page[0].Title != "what I want" {
		t.Errorf("the catalogue has %+v, %v", page, err)
	}
}

func TestListByOffset(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 7 {
		f.append(f.create(session.Header{CWD: fmt.Sprintf("/p/%d", i%3)}), session.RoleUser, session.Text(fmt.Sprint("title ", i)))
	}
	ix := f.open(t)
	for _, o := range []index.ListOptions{{Desc: true}, {Sort: index.ByTitle}, {CWD: "/p", Desc: true}, {CWD: "/p/1"}} {
		o.Limit = -1
		all, _, err := ix.List(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		for offset := range len(all) + 2 {
			o.Limit, o.Offset = 2, offset
			page, next, err := ix.List(context.Background(), o)
			want := all[min(offset, len(all)):min(offset+2, len(all))]
			if err != nil || len(page) != len(want) || (next != "") != (offset+2 < len(all)) {
				t.Fatalf("%+v: %d sessions, next %q, %v", o, len(page), next, err)
			}
			for i := range page {
				if page[i].ID != want[i].ID {
					t.Fatalf("%+v: session %d is %q, not %q", o, i, page[i].Title, want[i].Title)
				}
			}
		}
	}
	if _, _, err := ix.List(context.Background(), index.ListOptions{Offset: -1}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a negative offset: %v", err)
	}
}

func TestFindByTitle(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.say("Crème brûlée")
	f.say("creme")
	ix := f.open(t)
	found, err := ix.FindTitle(context.Background(), "CREME BRULEE")
	if err != nil || len(found) != 1 || found[0].Title != "Crème brûlée" {
		t.Errorf("found %+v, %v", found, err)
	}
	if found, err := ix.FindTitle(context.Background(), ""); err != nil || len(found) != 0 {
		t.Errorf("without a title: %+v, %v", found, err)
	}
}

// Names and what they are short for: all that a short name depends on is next to it, among
// ids and among random parts.
func TestNamesAndTheirRivals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const (
		early = "019a1e50-0001-7000-8000-abcd00000001"
		late  = "019a1e50-0002-7000-8000-abcd00000002"
		time  = "019a1e50-0003-7000-8000-019a1e500000" // its random part begins like the others
	)
	for _, id := range []string{"abcc", "abd2", "b", early, late, time} {
		f.append(f.create(session.Header{ID: id}), session.RoleUser, session.Text("hello"))
	}
	ix := f.open(t)
	for prefix, want := range map[string]string{
		"abd": "abd2", "c": "", "b": "b", "abcd": early + " " + late, "abc": early + " " + late + " abcc", "abcd00000002": late,
		"019a1e50": early + " " + late + " " + time, "019a1e500": time, late: late,
	} {
		if got := must[[]string](t)(ix.Names(t.Context(), prefix, 10)); strings.Join(got, " ") != want {
			t.Errorf("names with %q: %q", prefix, got)
		}
	}
	if got := must[[]string](t)(ix.Names(t.Context(), "", 2)); len(got) != 2 {
		t.Errorf("two names at most, and not %q", got)
	}
	for name, want := range map[string]string{
		early: "abcc abd2 " + time + " " + late, late: "abcc abd2 " + early, time: early + " " + late, "b": "abd2 " + late, "zz": "b " + late,
	} {
		got := must[[]string](t)(ix.Rivals(t.Context(), name))
		for _, rival := range strings.Fields(want) {
			if !slices.Contains(got, rival) {
				t.Errorf("rivals of %s: %q, without %s", name, got, rival)
			}
		}
		if slices.Contains(got, name) {
			t.Errorf("%s is its own rival", name)
		}
	}
	if got := must[[]string](t)(ix.Rivals(t.Context(), make([]string, 1000)...)); len(got) != 6 {
		t.Errorf("the rivals of very many are all: %q", got)
	}
}

// What another program calls a conversation names the session that was imported from it.
func TestNativeIDs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	imported := func(id, native, parent string) {
		h := session.Header{ID: id, ParentSession: parent, Extra: []session.Field{{
			Name: session.OriginField, Value: []byte(`{"format":"claude-code","id":"` + native + `","path":"/x"}`),
		}}}
		if parent != "" {
			h.Relation = session.RelationSubagent
		}
		f.append(f.create(h), session.RoleUser, session.Text("hello"))
	}
	imported("main", "fe5e1c67-1111", "")
	imported("sub", "fe5e1c67-1111/agent-1", "main")
	imported("twin", "0000-1", "")
	imported("other", "0000-1", "")
	ix := f.open(t)
	for given, want := range map[string]string{
		"fe5e1c67-1111": "main", "fe5e": "main", "fe5e1c67-1111/agent-1": "sub", "0000": "other twin", "0000-1": "other twin", "1": "",
	} {
		if got := must[[]string](t)(ix.Natives(t.Context(), given, 10)); strings.Join(got, " ") != want {
			t.Errorf("%q names %q, want %q", given, got, want)
		}
	}
	found, err := ix.Search(t.Context(), index.SearchOptions{Query: "hello session:fe5e1c67-1111"})
	if err != nil || len(found.Hits) != 1 || found.Hits[0].Session != "main" {
		t.Errorf("a search in it: %+v, %v", found, err)
	}
}

// However many sessions there are, looking up a name reads the few that have it.
func TestNamesAreLookedUp(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	f.say("hello")
	ix := f.open(t)
	plans, err := ix.NamePlans()
	if err != nil {
		t.Fatal(err)
	}
	searches := 0
	for _, step := range plans {
		if strings.Contains(step, "SCAN sessions") || strings.Contains(step, "SCAN s ") {
			t.Errorf("all sessions are read: %s", step)
		}
		if strings.Contains(step, "AUTOMATIC") {
			t.Errorf("what was spent is looked at again for each session: %s", step)
		}
		if strings.HasPrefix(step, "SEARCH sessions USING") {
			searches++
		}
	}
	if searches != 8 {
		t.Errorf("%d searches in %q", searches, plans)
	}
}
