package indextest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// name is what the tables of the checks call a session.
func (w *world) name(id string) string {
	if id == w.links[0] {
		return "chain"
	}
	return id
}

// ids returns what the tables of the checks call sessions.
func (w *world) ids(list []index.Session) (ids []string) {
	for _, s := range list {
		ids = append(ids, w.name(s.ID))
	}
	return ids
}

// all lists everything, and fails if the pages are not the parts of that.
func all(t testing.TB, ix *index.Index, o index.ListOptions) []index.Session {
	t.Helper()
	o.Limit = -1
	whole, next, err := ix.List(t.Context(), o)
	if err != nil || next != "" {
		t.Fatalf("list: %v, and a next page %q", err, next)
	}
	want(t, "count", must[int](t)(ix.Count(t.Context(), o)), len(whole))
	ids := func(list []index.Session) string {
		var ids []string
		for _, s := range list {
			ids = append(ids, s.Name)
		}
		return strings.Join(ids, " ")
	}
	o.Limit = 2
	skipping := o
	var byCursor, byOffset []index.Session
	for more := true; more; more = o.After != "" {
		page, next, err := ix.List(t.Context(), o)
		skipped, _, err2 := ix.List(t.Context(), skipping)
		if err != nil || err2 != nil || len(page) > o.Limit || len(byCursor) > len(whole) {
			t.Fatalf("a page of %d: %d, %v, %v", o.Limit, len(page), err, err2)
		}
		byCursor, byOffset = append(byCursor, page...), append(byOffset, skipped...)
		o.After, skipping.Offset = next, skipping.Offset+o.Limit
	}
	want(t, fmt.Sprintf("%+v: pages by cursor", o), ids(byCursor), ids(whole))
	want(t, fmt.Sprintf("%+v: pages by offset", o), ids(byOffset), ids(whole))
	return whole
}

func checkOrders(t *testing.T, w *world, ix *index.Index) {
	for sort, first := range map[index.Sort]string{
		index.ByUpdated:  "alpha gamma sub chain odd delta empty", // beta and its fork were created apart
		index.ByCreated:  "alpha beta gamma sub chain odd delta empty",
		index.ByTitle:    "empty delta sub beta chain alpha gamma odd",
		index.ByMessages: "empty sub odd beta gamma delta alpha chain",
		index.ByTokens:   "alpha chain gamma",
		index.BySize:     "empty sub",
	} {
		for _, desc := range []bool{false, true} {
			got := w.ids(all(t, ix, index.ListOptions{Sort: sort, Desc: desc}))
			want(t, "sessions by "+string(sort), len(got), 8)
			if desc {
				slices.Reverse(got)
			}
			// Where some are equal, their order is the room's; the others have one.
			got = slices.DeleteFunc(got, func(id string) bool { return !slices.Contains(strings.Fields(first), id) })
			if sort == index.ByMessages {
				slices.Sort(got[1:5])
				first = "empty beta gamma odd sub delta alpha chain"
			}
			want(t, fmt.Sprintf("by %s, descending %v", sort, desc), strings.Join(got, " "), first)
		}
	}
}

func checkListFilters(t *testing.T, w *world, ix *index.Index) {
	yes, no := true, false
	march := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		o    index.ListOptions
		want string
	}{
		{index.ListOptions{Tags: []string{"golang"}}, "alpha"},
		{index.ListOptions{Tags: []string{"forge"}}, "alpha beta delta"},
		{index.ListOptions{Tags: []string{"forge/bug", "golang"}}, "alpha"},
		{index.ListOptions{Tags: []string{"veg/first", "veg/third"}}, "chain"},
		{index.ListOptions{Tags: []string{"forg"}}, ""},
		{index.ListOptions{Tags: []string{"ta\x00g"}}, "odd"},
		{index.ListOptions{Tags: []string{strings.Repeat("g", 3000), "ta\x00g"}}, "odd"},
		{index.ListOptions{Tags: []string{strings.Repeat("g", 2999)}}, ""},
		{index.ListOptions{Key: strings.Repeat("k", 3000)}, "odd"},
		{index.ListOptions{CWD: "/home/ann/web"}, "alpha"},
		{index.ListOptions{CWD: "/home/ann"}, "alpha beta delta"},
		{index.ListOptions{CWD: `C:\work`}, "gamma"},
		{index.ListOptions{CWD: "/home/an"}, ""},
		{index.ListOptions{Project: "web"}, "alpha gamma"},
		{index.ListOptions{Project: "ANN/web"}, "alpha"},
		{index.ListOptions{CWD: "/home", Project: "webshop"}, "beta"},
		{index.ListOptions{Agent: "claude-code"}, "gamma sub"},
		{index.ListOptions{Agent: "CLAUDE-code", Fold: true}, "gamma"},
		{index.ListOptions{File: "main.go"}, "gamma sub"},
		{index.ListOptions{File: "store/MAIN.go"}, "sub"},
		{index.ListOptions{File: "/etc/hosts"}, "gamma"},
		{index.ListOptions{File: "src/deep/second.go"}, "chain"},
		{index.ListOptions{File: strings.Repeat("p", 3000)}, ""},
		{index.ListOptions{Key: "chat:1"}, "alpha"},
		{index.ListOptions{Key: "chat:"}, ""},
		{index.ListOptions{Parent: "gamma"}, "sub"},
		{index.ListOptions{Relation: session.RelationFork}, "delta"},
		{index.ListOptions{Relation: session.RelationSubagent}, "sub"},
		{index.ListOptions{Fold: true, Roots: true, Nonempty: true}, "alpha beta chain gamma odd"},
		{index.ListOptions{Pinned: &yes}, "alpha"},
		{index.ListOptions{Pinned: &no, Roots: true}, "beta chain empty gamma odd sub"},
		{index.ListOptions{Archived: &yes}, "gamma"},
		{index.ListOptions{Archived: &no, Tags: []string{"forge"}}, "alpha beta delta"},
		{index.ListOptions{Until: march}, "alpha"},
		{index.ListOptions{Since: march, Project: "web"}, "gamma"},
	} {
		want(t, fmt.Sprintf("%+v", tt.o), sorted(w.ids(all(t, ix, tt.o))), tt.want)
		tt.o.Sort, tt.o.Desc = index.ByTitle, true
		list, _, err := ix.List(t.Context(), tt.o)
		if got := sorted(w.ids(list)); err != nil || got != tt.want {
			t.Errorf("%+v: %s, %v; want %s", tt.o, got, err, tt.want)
		}
	}
	want(t, "links one by one", len(all(t, ix, index.ListOptions{Links: true})), 10)
}

func checkCursors(t *testing.T, w *world, ix *index.Index) {
	page, next, err := ix.List(t.Context(), index.ListOptions{Limit: 2})
	if err != nil || len(page) != 2 || next == "" {
		t.Fatalf("%d sessions, %q, %v", len(page), next, err)
	}
	for _, o := range []index.ListOptions{{After: next, Desc: true}, {After: next, Sort: index.ByTitle}, {After: "x"}, {Offset: -1}, {Sort: "colour"}} {
		if _, _, err := ix.List(t.Context(), o); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// checkRows looks at what a list says of a session.
func checkRows(t *testing.T, w *world, ix *index.Index) {
	rows := make(map[string]index.Session)
	for _, s := range all(t, ix, index.ListOptions{}) {
		rows[w.name(s.ID)] = s
	}
	for name, want := range map[string]string{
		"alpha": `Leaking descriptors true chat:1 coppice web [forge/bug golang] 5 messages, 2 branches, 15 tokens true, [{claude-sonnet-4-5 1}] [{bash 1}] 0 subagents, 0 forks, pinned true`,
		"beta":  `Crème brûlée: 中文字处理 と ひらがな and 한국어, camelcase 🚀 false  coppice webshop [forge forgery] 2 messages, 1 branches, 0 tokens false, [] [] 0 subagents, 1 forks, pinned false`,
		"gamma": `plant an oak false  claude-code Web [] 2 messages, 1 branches, 150 tokens true, [{gpt-9-unknown 1}] [{apply_patch 1} {read 1}] 1 subagents, 0 forks, pinned false`,
		"chain": `first turnip false tg:7 coppice src [veg/first veg/second veg/third] 7 messages, 1 branches, 30 tokens true, [{claude-opus-4-1 3}] [{read 3}] 0 subagents, 0 forks, pinned false`,
		"empty": ` false  coppice  [] 0 messages, 0 branches, 0 tokens false, [] [] 0 subagents, 0 forks, pinned false`,
	} {
		s := rows[name]
		got := fmt.Sprintf("%s %v %s %s %s %v %d messages, %d branches, %d tokens %v, %v %v %d subagents, %d forks, pinned %v", s.Title, s.Named, s.Key, s.Agent,
			s.Project, s.Tags, s.Messages, s.Branches, s.Tokens, s.Reported, s.Models, s.Tools, s.Subagents, s.Forks, s.Pinned)
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	if s := rows["odd"]; s.Name != "odd" || len(s.Title) != 3602 || len(s.Tags) != 2 || s.Problems != 0 {
		t.Errorf("odd is %q, with a title of %d bytes, %d tags, %d problems", s.Name, len(s.Title), len(s.Tags), s.Problems)
	}
	if !rows["gamma"].Archived || rows["sub"].Parent != "gamma" || rows["alpha"].Leaf == "" || rows["alpha"].Size == 0 {
		t.Errorf("%+v", rows)
	}
}

func checkFind(t *testing.T, w *world, ix *index.Index) {
	for given, names := range map[string]string{
		"alpha": "alpha", "al": "alpha", "chat:1": "alpha", "chat": "", "": "", "x": "", "odd": "odd",
		w.links[1]: w.links[1], "ALPHA": "", "al%": "", "tg:7": w.links[0], strings.Repeat("k", 3000): "odd",
	} {
		var got []string
		for _, s := range must[[]index.Session](t)(ix.Find(t.Context(), given)) {
			got = append(got, s.Name)
		}
		want(t, fmt.Sprintf("find %.20q", given), strings.Join(got, " "), names)
	}
	for title, names := range map[string]string{
		"LEAKING descriptors": "alpha", "creme brulee: 中文字处理 と ひらがな and 한국어, camelcase 🚀": "beta", "ÄPFEL": "delta", "Apfel": "delta", "first turnip": "chain",
		"second turnip": "", "leaking": "", "": "", "zz" + strings.Repeat(" title", 600): "odd", "zz" + strings.Repeat(" title", 599): "",
	} {
		want(t, fmt.Sprintf("find title %.20q", title), sorted(w.ids(must[[]index.Session](t)(ix.FindTitle(t.Context(), title)))), names)
	}
}

func checkNames(t *testing.T, w *world, ix *index.Index) {
	for prefix, names := range map[string]string{"em": "empty", "od": "odd", "zz": "", "bet": "beta"} {
		want(t, "names "+prefix, strings.Join(must[[]string](t)(ix.Names(t.Context(), prefix, 2)), " "), names)
	}
	random := session.RandomPart(w.links[2])
	want(t, "a short name", sorted(must[[]string](t)(ix.Names(t.Context(), random, 5))), w.links[2])
	for id, names := range map[string]string{"fe5e1c67-1111": "gamma", "fe5e": "gamma", "fe5e1c67-1111/agent-1": "sub", "1": ""} {
		want(t, "native "+id, sorted(must[[]string](t)(ix.Natives(t.Context(), id, 5))), names)
	}
	rivals := must[[]string](t)(ix.Rivals(t.Context(), "delta"))
	if !slices.Contains(rivals, "beta") || !slices.Contains(rivals, "empty") {
		t.Errorf("the neighbours of delta: %q", rivals)
	}
}

func checkChains(t *testing.T, w *world, ix *index.Index) {
	for _, id := range w.links {
		c := must[index.Session](t)(ix.Conversation(t.Context(), id))
		want(t, "the chain", fmt.Sprint(c.ID, c.Links, c.Missing), fmt.Sprint(w.links[0], 3, []string{}))
		var names []string
		for _, l := range must[[]index.Session](t)(ix.Links(t.Context(), id)) {
			names = append(names, w.names[l.ID])
			want(t, "the whole", l.Conversation, w.links[0])
		}
		want(t, "links", strings.Join(names, " "), "link1 link2 link3")
	}
	if _, err := ix.Conversation(t.Context(), "nobody"); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("the conversation of nobody: %v", err)
	}
	want(t, "who names the first", sorted(must[[]string](t)(ix.Naming(t.Context(), w.links[0]))), w.links[1]+" "+w.links[2])
}

func checkTags(t *testing.T, w *world, ix *index.Index) {
	tags := must[[]index.Count](t)(ix.Tags(t.Context()))
	want(t, "tags", len(tags), 9)
	want(t, "tags", fmt.Sprint(tags[:3]), "[{forge 2} {forgery 2} {forge/bug 1}]")
	below := must[map[string]int64](t)(ix.TaggedBelow(t.Context(), "forge", "veg", "golang", "gol", "ta\x00g"))
	want(t, "tagged below", fmt.Sprint(below), fmt.Sprint(map[string]int64{"forge": 3, "veg": 1, "golang": 1, "gol": 0, "ta\x00g": 1}))
}

func checkFilterValues(t *testing.T, w *world, ix *index.Index) {
	for filter, values := range map[string]string{
		"agent": "claude-code coppice", "project": "Web ann src web webshop", "model": "claude-opus-4-1 claude-sonnet-4-5 gpt-9-unknown",
		"tool": "apply_patch bash read", "file": "Hosts first.go main.go second.go third.go", "role": "",
	} {
		got := must[[]string](t)(ix.FilterValues(t.Context(), filter))
		got = slices.DeleteFunc(got, func(v string) bool { return len(v) > 100 || strings.ContainsAny(v, "\x00\uFFFD") }) // odd ones, as the room keeps them
		want(t, filter, sorted(got), values)
	}
}

func checkUnknownFilters(t *testing.T, w *world, ix *index.Index) {
	for _, tt := range []struct {
		o    index.ListOptions
		want string
	}{
		{index.ListOptions{Agent: "coppcie"}, "[{agent coppcie [coppice] []}]"},
		{index.ListOptions{Project: "webshpo", Tags: []string{"forge"}}, "[{project webshpo [webshop] []}]"},
		{index.ListOptions{Tags: []string{"golnag"}}, "[{tag golnag [golang] []}]"},
		{index.ListOptions{File: "hsots"}, "[{file hsots [Hosts] []}]"},
		{index.ListOptions{CWD: "/home/bob/webshop"}, "[{cwd /home/bob/webshop [/home/ann/webshop] []}]"},
		{index.ListOptions{CWD: "/home", Agent: "Coppice"}, "[]"},
		{index.ListOptions{Agent: "nothing"}, "[{agent nothing [] [coppice claude-code]}]"},
	} {
		want(t, fmt.Sprintf("%+v", tt.o), fmt.Sprint(must[[]index.Unknown](t)(ix.UnknownFilters(t.Context(), tt.o))), tt.want)
	}
}
