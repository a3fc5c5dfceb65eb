package index_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// told says each text in a session of its own and returns which texts a query finds,
// in order.
func told(t *testing.T, texts ...string) (*index.Index, func(o index.SearchOptions) []int) {
	f := newFixture(t)
	which := make(map[string]int)
	for i, text := range texts {
		which[f.say(text).ID()] = i
	}
	ix := f.open(t)
	return ix, func(o index.SearchOptions) []int {
		var found []int
		for _, hit := range search(t, ix, o) {
			found = append(found, which[hit.Session])
			checkHighlights(t, hit)
		}
		return found
	}
}

func TestTheVeryWordComesBeforeItsForms(t *testing.T) {
	t.Parallel()
	_, find := told(t,
		"templates are kept here, with many other words that make this text a long one, longer than any other",
		"template template template",
		"the templating",
		"nothing")
	if got := find(index.SearchOptions{Query: "templates"}); !slices.Equal(got, []int{0, 1, 2}) && !slices.Equal(got, []int{0, 2, 1}) {
		t.Errorf("templates: %v", got)
	}
	if got := find(index.SearchOptions{Query: "templates", Order: index.ByTime}); !slices.Equal(got, []int{2, 1, 0}) {
		t.Errorf("templates by time: %v", got)
	}
	if got := find(index.SearchOptions{Query: `"templates"`}); !slices.Equal(got, []int{0}) {
		t.Errorf("in quotation marks: %v", got)
	}
}

func TestScoresOfFormsAreLower(t *testing.T) {
	t.Parallel()
	ix, _ := told(t, "a long text in which template is one word among very many others of no importance", "templates templates")
	hits := search(t, ix, index.SearchOptions{Query: "template"})
	if len(hits) != 2 || hits[0].Score <= hits[1].Score {
		t.Errorf("hits %+v", hits)
	}
}

func TestOptionsAreFoundWithTheirDashes(t *testing.T) {
	t.Parallel()
	_, find := told(t,
		"git commit --no-verify -m x",
		"there is no verify step, use force",
		"git push --force",
		"--noVerify=1",
		"a -v b")
	for query, want := range map[string][]int{
		"--no-verify":       {0, 3},
		"--force":           {2},
		"--no-ver*":         {0, 3},
		"force":             {1, 2},
		"NOT --force git":   {0},
		"git -force":        {0},
		`"push --force"`:    {2},
		"no verify -commit": {1, 3},
	} {
		got := find(index.SearchOptions{Query: query})
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	ix, _ := told(t, "the deployment of the server", "deploy the template", "temperature")
	for query, want := range map[string][]string{
		"tempalte":               {"template"},
		"xemplate":               {"template"},
		"deploymnet server":      {"deployment server"},
		"tempalte role:user":     {"template role:user"},
		`"deploy the tempalte"`:  {`"deploy the template"`},
		"temtlate deploymnet":    {"template deployment"},
		"deploy temperature":     nil, // both are known, only not together
		"qqqqqqqqq":              nil,
		"tempalte qqqqqqqq":      nil,
		"template OR temprature": nil, // something was found
	} {
		res, err := ix.Search(context.Background(), index.SearchOptions{Query: query})
		if err != nil || !slices.Equal(res.DidYouMean, want) {
			t.Errorf("%s: %q, %v, want %q", query, res.DidYouMean, err, want)
		}
	}
}

func TestFiltersByWhatCannotBeAreErrors(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.create(session.Header{ID: "alpha", CWD: "/home/ann/web"})
	f.append(s, session.RoleUser, session.Text("hello"))
	ix := f.open(t)
	for query, want := range map[string]error{
		"hello role:robot":       store.ErrInvalid,
		"hello -role:robot":      store.ErrInvalid,
		"hello role:tool":        nil,
		"hello session:nope":     store.ErrNotExist,
		"hello session:al":       nil,
		"hello tag:x session:al": nil,
	} {
		if _, err := ix.Search(context.Background(), index.SearchOptions{Query: query}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", query, err, want)
		}
	}
}

// A filter by a value that no session has finds nothing. The results name that value,
// but not one that other sessions have.
func TestFiltersByWhatIsNotThere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.create(session.Header{ID: "alpha", CWD: "/home/ann/web"})
	f.append(s, session.RoleUser, session.Text("hello"))
	ix := f.open(t)
	for query, want := range map[string][]index.Unknown{
		"hello agent:coppcie":            {{Filter: "agent", Value: "coppcie", DidYouMean: []string{"coppice"}}},
		"hello agent:Coppice":            nil,
		"goodbye agent:Coppice":          nil,
		"hello project:wbe":              {{Filter: "project", Value: "wbe", DidYouMean: []string{"web"}}},
		"hello project:nope":             {{Filter: "project", Value: "nope", Known: []string{"web"}}},
		"hello project:Web":              nil,
		"hello cwd:/home/elsewhere":      {{Filter: "cwd", Value: "/home/elsewhere", Known: []string{"/home/ann/web"}}},
		"hello cwd:/home/bob/web":        {{Filter: "cwd", Value: "/home/bob/web", DidYouMean: []string{"/home/ann/web"}}},
		"hello cwd:/home/ann/ role:tool": nil,
		"hello tool:bash":                {{Filter: "tool", Value: "bash"}},
	} {
		res, err := ix.Search(context.Background(), index.SearchOptions{Query: query})
		if err != nil {
			t.Errorf("%s: %v", query, err)
		} else if diff := cmp.Diff(want, res.Unknown); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	for _, o := range []index.ListOptions{{Agent: "codex"}, {Project: "nope"}, {Tags: []string{"x"}}, {CWD: "/nowhere"}} {
		page, _, err := ix.List(context.Background(), o)
		unknown, err2 := ix.UnknownFilters(context.Background(), o)
		if err != nil || err2 != nil || len(page) > 0 || len(unknown) != 1 {
			t.Errorf("%+v: %v, %v, %v, %v", o, page, err, unknown, err2)
		}
	}
}

func TestListByAgentAndProject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	origin := session.Fields{{Name: "origin", Value: []byte(`{"format":"claude-code","id":"x","path":"/x"}`)}}
	for _, h := range []session.Header{
		{ID: "a", CWD: "/home/ann/web"},
		{ID: "b", CWD: "/home/bob/web", Extra: origin},
		{ID: "c", CWD: `C:\src\Web`, Extra: origin},
		{ID: "d", CWD: "/home/ann/web/sub"},
		{ID: "e", Extra: origin},
	} {
		f.append(f.create(h), session.RoleUser, session.Text("hello"))
	}
	ix := f.open(t)
	for _, test := range []struct {
		o    index.ListOptions
		want string
	}{
		{index.ListOptions{Project: "web"}, "abc"},
		{index.ListOptions{Project: "web", CWD: "/home/ann"}, "a"},
		{index.ListOptions{Agent: "claude-code"}, "bce"},
		{index.ListOptions{Agent: "claude-code", Project: "web"}, "bc"},
		{index.ListOptions{Agent: "coppice", Sort: index.BySize}, "ad"},
	} {
		page, _, err := ix.List(context.Background(), test.o)
		got := ""
		for _, s := range page {
			got += s.ID
		}
		if sorted := []byte(got); err != nil || string(sortBytes(sorted)) != test.want {
			t.Errorf("%+v: %s, %v, want %s", test.o, got, err, test.want)
		}
	}
	if page, _, _ := ix.List(context.Background(), index.ListOptions{Key: "", CWD: `C:\src\Web`}); len(page) != 1 || page[0].Agent != "claude-code" || page[0].Project != "Web" {
		t.Errorf("page %+v", page)
	}
	agents, err := ix.Agents(context.Background())
	if err != nil || !slices.Equal(agents, []index.Count{{Name: "claude-code", Count: 3}, {Name: "coppice", Count: 2}}) {
		t.Errorf("agents %v, %v", agents, err)
	}
	projects, err := ix.Projects(context.Background())
	if err != nil || len(projects) != 3 || projects[0] != (index.Count{Name: "web", Count: 2}) {
		t.Errorf("projects %v, %v", projects, err)
	}
}

func sortBytes(b []byte) []byte {
	slices.Sort(b)
	return b
}

// Only what was said dates a session, not when it was written down or tidied up.
func TestActivityDatesASession(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	imported := time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC)
	s := f.create(session.Header{CreatedAt: imported})
	f.append(s, session.RoleUser, session.Text("long ago"))
	said := f.now
	f.now = f.now.AddDate(0, 0, 30)
	must[string](t)(s.AppendEntry(session.Tags("a")))
	must[string](t)(s.AppendSessionInfo("name"))
	ix := f.open(t)
	page, _, err := ix.List(context.Background(), index.ListOptions{})
	if err != nil || len(page) != 1 || !page[0].Updated.Equal(said) || !page[0].Created.Equal(imported) {
		t.Errorf("said at %v, but %+v, %v", said, page, err)
	}
}

// The advice about an unknown filter names filters as people type them.
func TestUnknownFiltersAreSaidAsTheyAreTyped(t *testing.T) {
	t.Parallel()
	near := index.Unknown{Filter: "tag", Value: "gadren", DidYouMean: []string{"garden", "big garden"}}
	if got, want := near.Text(nil), `no session has tag:gadren; did you mean: tag:garden, tag:"big garden"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	odd := index.Unknown{Filter: "tag", Value: `x"`, DidYouMean: []string{"a\tb", "a(b)", `a "b"`, "ab"}}
	if got, want := odd.Text(nil), `no session has tag:x"; did you mean: tag:"a	b", tag:"a(b)", tag:ab`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	odd.DidYouMean = []string{`"`}
	if got, want := odd.Text(nil), `no session has tag:x"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	known := index.Unknown{Filter: "tag", Value: "x y", Known: []string{"garden"}}
	if got, want := known.Text(func(filter string) string { return "<" + filter + ">" }), `no session has <tag:x y>; there are: <tag:garden>`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
