package indextest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/store"
)

func search(t testing.TB, ix *index.Index, o index.SearchOptions) *index.Results {
	t.Helper()
	res, err := ix.Search(t.Context(), o)
	if err != nil {
		t.Fatalf("%s: %v", o.Query, err)
	}
	return res
}

// entries returns what the tables of the checks call the entries that were found.
func (w *world) entries(res *index.Results) (names []string) {
	for _, h := range res.Hits {
		names = append(names, w.names[h.Entry])
	}
	return names
}

func checkSearch(t *testing.T, w *world, ix *index.Index) {
	april := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	for query, names := range map[string]string{
		// Words and other forms of them.
		"readfile": "ask", "readFile": "ask", "read_file": "ask", "helpers reading": "ask", "padded": "blob", "store/main.go": "ask read", "src/main.go": "patch",
		"leaks": "cases grep look ours title", `"leaks"`: "grep look", "descriptors": "look title", `"descriptors"`: "title", "creme BRULEE": "tongues",
		"camelCase": "cases tongues", `"kebab case"`: "cases",
		// All, any, none; phrases; beginnings; options of commands.
		"oak acorns": "acorn", "oak OR needle": "acorn blob oak", "oak -acorns": "oak", "NOT acorns oak": "oak", "(oak OR defer) -plant": "acorn defer",
		`"haystack needle"`: "blob", `"needle haystack"`: "", `"first turnip"`: "first?", "leak*": "cases grep look ours title", "pars*": "first! second! third!",
		"xylo*": "prompt", "--line-number": "look", "--line": "",
		// Other scripts.
		"中文": "tongues", "文字处": "tongues", "文处": "", "字": "tongues", "ひら": "tongues", "국어": "tongues", "🚀": "tongues",
		// Filters.
		"kind:thinking": "look", "kind:call grep": "look", "kind:title": "fork title odd title title", "kind:label": "label", "tag:golang kind:tag": "tags",
		"tool:bash leaks": "grep", "tool:BASH": "blob grep look", "role:tool": "blob grep", "open -role:tool": "look", "model:claude leaks": "look",
		"model:claude-opus": "first! second! third!", "leak* -model:claude": "cases grep ours title", "turnip session:" + w.links[1]: "first? second? third?",
		"branch:live leak*": "cases ours title", "branch:live defer": "defer", "tag:forge leak*": "cases grep look ours title", "tag:forge tag:golang leak*": "grep look title",
		"cwd:/home/ann/web leak*": "grep look title", "project:WEBSHOP leak*": "cases", "agent:claude-code oak": "acorn oak", "file:hosts oak": "oak",
		"session:beta leak*": "cases", "session:chat:1 leaks": "grep look title", "session:fe5e1c67-1111 oak": "oak", "since:2026-04 leak*": "cases ours",
		"until:2026-04 leak*": "grep look title", "in:src turnip -second": "first? third?", "-kind:text leaks": "grep look title",
		// NUL, what is no UTF-8, and long texts.
		"zero byte": "nul", "bad utf": "nul", "behind lastly": "nul", strings.Repeat("w", 60) + "*": "nul",
	} {
		res := search(t, ix, index.SearchOptions{Query: query})
		want(t, query, sorted(w.entries(res)), names)
		if slices.ContainsFunc(res.Hits, func(h index.Hit) bool { return h.Snippet == "" }) {
			t.Errorf("%s: nothing to show", query)
		}
	}
	for _, tt := range []struct {
		o    index.SearchOptions
		want string
	}{
		{index.SearchOptions{Query: "leak*", Since: april}, "cases ours"},
		{index.SearchOptions{Query: "leak*", Until: april, Kinds: []index.Kind{index.KindTitle, index.KindText}}, "title"},
		{index.SearchOptions{Roles: []string{"tool"}}, "blob grep"},
		{index.SearchOptions{Tools: []string{"bash", "apply_patch"}, Kinds: []index.Kind{index.KindCall}}, "look patch"},
		{index.SearchOptions{Tools: []string{"to\x00ol" + strings.Repeat("t", 3000)}}, "odd tool"},
		{index.SearchOptions{Models: []string{"mo\x00del"}}, "odd tool"},
		{index.SearchOptions{Query: "lastly", Session: "odd"}, "nul"},
		{index.SearchOptions{Query: "lastly", Tags: []string{"ta\x00g"}}, "nul"},
		{index.SearchOptions{Query: "leak*", Branch: index.LiveBranch, Project: "web"}, "title"},
		{index.SearchOptions{Query: "oak", File: "store/main.go", Agent: "claude-code"}, "acorn"},
		{index.SearchOptions{Query: "leak*", CWD: "/home/ann/webshop"}, "cases"},
	} {
		want(t, fmt.Sprintf("%.100s", fmt.Sprint(tt.o)), sorted(w.entries(search(t, ix, tt.o))), tt.want)
	}
}

func checkSearchOrder(t *testing.T, w *world, ix *index.Index) {
	newest := search(t, ix, index.SearchOptions{Query: "leak*", Order: index.ByTime})
	if !slices.IsSortedFunc(newest.Hits, func(a, b index.Hit) int { return b.Time.Compare(a.Time) }) {
		t.Errorf("not the newest first: %q", w.entries(newest))
	}
	best := search(t, ix, index.SearchOptions{Query: "leaks"})
	if !slices.IsSortedFunc(best.Hits, func(a, b index.Hit) int { return int((b.Score - a.Score) * 1000) }) {
		t.Errorf("not the best first: %q", w.entries(best))
	}
	want(t, "the exact word is better", sorted(w.entries(best)[:2]), "grep look")
	var pages []string
	for offset := range 6 {
		pages = append(pages, w.entries(search(t, ix, index.SearchOptions{Query: "leaks", Limit: 1, Offset: offset}))...)
	}
	want(t, "pages of one", strings.Join(pages, " "), strings.Join(w.entries(best), " "))

	bySession := search(t, ix, index.SearchOptions{Query: "turnip OR leaks", BySession: true})
	hits := make(map[string]int)
	for _, h := range bySession.Hits {
		hits[w.name(h.Session)] = h.Hits
	}
	want(t, "conversations", fmt.Sprint(bySession.Matches, hits), "4 "+fmt.Sprint(map[string]int{"alpha": 3, "beta": 1, "chain": 3, "delta": 1}))

	h := search(t, ix, index.SearchOptions{Query: "nothing here"}).Hits[0]
	want(t, "a hit", fmt.Sprint(h.Session, h.Also, h.Kind, h.Role, h.CWD, h.Live, h.Snippet, h.Highlights),
		"beta[delta]textassistant/home/ann/webshoptrueWe leak nothing here. snake_case and camelCase and kebab-case.[{8 15} {16 20}]")
	across := search(t, ix, index.SearchOptions{Query: "readFile defer"})
	want(t, "words of different texts", fmt.Sprint(sorted(w.entries(across)), across.Across), "ask defertrue")
}

func checkSuggestions(t *testing.T, w *world, ix *index.Index) {
	for query, suggestions := range map[string]string{
		"descirptor": "[descriptor descriptors]", "haystakc role:tool": "[haystack role:tool]", `"haystakc needle"`: `["haystack needle"]`, "descri": "[descri*]",
		"qqqqqqqq": "[]", "turnip oak": "[]",
	} {
		res := search(t, ix, index.SearchOptions{Query: query})
		want(t, query, fmt.Sprint(len(res.Hits), res.DidYouMean), "0 "+suggestions)
	}
	for query, unknown := range map[string]string{
		"oak tool:bahs": "[{tool bahs [bash] []}]", "oak model:claude-sonet-4-5": "[{model claude-sonet-4-5 [claude-sonnet-4-5] []}]", "oak tag:golnag": "[{tag golnag [golang] []}]", "oak tool:bash": "[]",
	} {
		want(t, query, fmt.Sprint(search(t, ix, index.SearchOptions{Query: query}).Unknown), unknown)
	}
	want(t, "not a filter", fmt.Sprint(search(t, ix, index.SearchOptions{Query: "path:oops"}).NotFilters), "[path]")
}

func checkQueries(t *testing.T, w *world, ix *index.Index) {
	for _, query := range []string{"(oak", "oak OR", "-role:", "branch:dead", "since:never", "kind:poem"} {
		_, err := ix.Search(t.Context(), index.SearchOptions{Query: query})
		if wrong := new(index.QueryError); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", query, err)
		}
	}
	for query, kind := range map[string]error{"oak role:robot": store.ErrInvalid, "oak session:nobody": store.ErrNotExist} {
		if _, err := ix.Search(t.Context(), index.SearchOptions{Query: query}); !errors.Is(err, kind) {
			t.Errorf("%s: %v", query, err)
		}
	}
	// Any text is a query, or an error that explains itself.
	for _, query := range []string{"'", `\`, "%", "a\x00b'\"c\"", "\xff", "it's", `"a\"`, "&!|:*", "中* 文字", "$1 ?1", strings.Repeat("z", 5000), strings.Repeat("y ", 60)} {
		_, err := ix.Search(t.Context(), index.SearchOptions{Query: query})
		if wrong := new(index.QueryError); err != nil && !errors.As(err, &wrong) {
			t.Errorf("%q: %v", query, err)
		}
	}
}

func checkStats(t *testing.T, w *world, ix *index.Index) {
	sum := func(list []index.Usage) string {
		var words []string
		for _, u := range list {
			words = append(words, fmt.Sprintf("%s: %d/%d,", w.name(u.Key), u.Responses, u.Tokens()))
		}
		return strings.Join(words, " ")
	}
	s := must[*index.Stats](t)(ix.Stats(t.Context(), index.StatsOptions{}))
	want(t, "total", fmt.Sprint(sum([]index.Usage{s.Total}), s.Total.Unpriced), ": 5/195,1")
	want(t, "by day", sum(s.Days), "2026-03-14: 1/15, 2026-04-14: 4/180,")
	want(t, "by model", sum(s.Models), "claude-opus-4-1: 3/30, claude-sonnet-4-5: 1/15, gpt-9-unknown: 1/150,")
	want(t, "by directory", sum(s.Dirs), `/home/ann/web: 1/15, /src: 3/30, C:\work\Web: 1/150,`)
	want(t, "by agent", sum(s.Agents), "claude-code: 1/150, coppice: 4/45,")
	want(t, "by conversation", len(s.Sessions), 3)
	want(t, "messages", s.Activity.Messages, 5+2+2+2+7+2+3)
	want(t, "messages of a day", fmt.Sprint(s.Activity.Days), "[{2026-03-14 5} {2026-04-14 18}]")
	want(t, "roles", fmt.Sprint(s.Activity.Roles), "[{assistant 10} {user 10} {tool 2} {system 1}]")
	one := must[*index.Stats](t)(ix.Stats(t.Context(), index.StatsOptions{Session: w.links[1]}))
	want(t, "of a conversation", fmt.Sprint(sum(one.Sessions), one.Activity.Messages, one.Activity.Tools), "chain: 3/30,7 [{read 3}]")
	none := must[*index.Stats](t)(ix.Stats(t.Context(), index.StatsOptions{Until: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}))
	want(t, "before all", sum([]index.Usage{none.Total}), ": 0/0,")
}

func checkTopics(t *testing.T, w *world, ix *index.Index) {
	var words []string
	for _, topic := range must[[]index.Topic](t)(ix.Topics(t.Context(), index.StatsOptions{Session: w.links[0]}, 2)) {
		words = append(words, topic.Word)
	}
	want(t, "topics", sorted(words), "parsnip turnip")
}
