package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/html"
	"github.com/coppice-dev/coppice/session"
)

// eventful is a conversation in which everything happens that a picture shows.
func eventful(t testing.TB) htmlTalk {
	t.Helper()
	k := htmlNewTalk(t)
	at, parent := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), ""
	add := func(id string, after time.Duration, e session.Entry) {
		t.Helper()
		at = at.Add(after)
		e.ID, e.Timestamp = id, at
		if parent != "" {
			above := parent
			e.ParentID = &above
		}
		if err := k.Graft(e); err != nil {
			t.Fatal(err)
		}
		parent = id
	}
	user := func(id string, after time.Duration) {
		add(id, after, session.Message(session.RoleUser, session.Text(id)))
	}
	answer := func(id string, after time.Duration, u session.Usage, tools ...string) {
		e := session.Message(session.RoleAssistant, session.Text(id))
		e.Message.Model, e.Message.Provider, e.Message.Usage = "m", "p", &u
		for _, tool := range tools {
			e.Message.Content = append(e.Message.Content, session.ToolUse(id+tool, tool, nil))
		}
		add(id, after, e)
	}
	result := func(id, call string, after time.Duration, failed bool) {
		add(id, after, session.Message(session.RoleTool, session.ToolResult(call, "out", failed)))
	}
	user("u1", 0)
	answer("a1", 10*time.Second, session.Usage{Input: 100, CacheWrite: 900, Output: 50, CostMicroUSD: 10}, "bash", "edit")
	result("r1", "a1bash", 3*time.Second, true)
	result("r2", "a1edit", 2*time.Second, false)
	answer("a2", 20*time.Second, session.Usage{Input: 60, CacheRead: 1000, Output: 40, CostMicroUSD: 20}, "bash")
	result("r3", "a2bash", time.Second, true)
	user("u2", 30*time.Minute)
	parent = "r3"
	user("u3", time.Minute)
	answer("a3", 5*time.Second, session.Usage{Input: 1200, CacheRead: 10, Output: 30, CostMicroUSD: 40})
	add("c1", time.Second, session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: "short", FirstKeptEntryID: "u3"}})
	user("u4", 10*time.Second)
	answer("a4", 5*time.Second, session.Usage{Input: 300, Output: 30})
	return k
}

func pictureOf(t testing.TB, k htmlTalk, o render.PictureOptions) *render.Picture {
	t.Helper()
	sketch, err := render.NewSketch(k.Conversation, false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := render.NewPicture(t.Context(), sketch, sketch.At(sketch.Shape().Leaf()), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPicture(t *testing.T) {
	t.Parallel()
	p := pictureOf(t, eventful(t), render.PictureOptions{Price: func(b *session.Bill) (int64, bool) { return int64(b.Usage.Input), b.Model == "m" }})
	at := func(minutes, seconds int) time.Time { return time.Date(2026, 3, 2, 9, minutes, seconds, 0, time.UTC) }
	want := []render.Point{
		{Entry: "a1", Time: at(0, 10), Model: "m", Requests: 1, Context: 1050, Input: 100, CacheWrite: 900, Output: 50, CostMicroUSD: 10, SoFar: 10, Spent: render.Elapsed{Model: 10_000}},
		{
			Entry: "a2", Time: at(0, 35), Model: "m", Requests: 1, Context: 1100, Input: 60, CacheRead: 1000, Output: 40, CostMicroUSD: 20, SoFar: 30,
			Errors: render.Mark{Entry: "r1", N: 1}, Spent: render.Elapsed{Model: 20_000, Tools: 5000},
		},
		{
			Entry: "a3", Time: at(31, 41), Model: "m", Requests: 1, Context: 1240, Input: 1200, CacheRead: 10, Output: 30, CostMicroUSD: 40, SoFar: 70,
			Errors: render.Mark{Entry: "r3", N: 1}, Branches: render.Mark{Entry: "u2", N: 1}, Misses: render.Mark{Entry: "a3", N: 1},
			Spent: render.Elapsed{Model: 5000, Tools: 1000, Person: 1_860_000},
		},
		{
			Entry: "a4", Time: at(31, 57), Model: "m", Requests: 1, Context: 330, Input: 300, Output: 30, CostMicroUSD: 300, SoFar: 370,
			Compactions: render.Mark{Entry: "c1", N: 1}, Spent: render.Elapsed{Model: 5000, Person: 10_000},
		},
	}
	if diff := cmp.Diff(want, p.Points); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	sum := p.Sum
	if sum.Requests != 4 || sum.Context != 1240 || sum.CostMicroUSD != 370 || sum.Errors.N != 2 || sum.Spent != (render.Elapsed{Model: 40_000, Tools: 6000, Person: 1_870_000}) ||
		p.Cached != 1010 || p.Sent != 100+900+60+1000+1210+300 || p.Estimated {
		t.Errorf("%+v", p)
	}
	if diff := cmp.Diff([]render.Tool{{Name: "bash", Calls: 2, Errors: 2}}, p.Failed); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
}

// A provider that reports nothing leaves the size of the context to us, and it shrinks with a
// compaction.
func TestPictureWithoutReports(t *testing.T) {
	t.Parallel()
	k := htmlNewTalk(t)
	for range 3 {
		k.say(session.RoleUser, session.Text(strings.Repeat("x", 100)))
		k.say(session.RoleAssistant, session.Text(strings.Repeat("y", 100)))
	}
	kept := k.say(session.RoleUser, session.Text("kept"))
	if _, err := k.AppendCompaction("sum", kept, 0); err != nil {
		t.Fatal(err)
	}
	k.say(session.RoleAssistant, session.Text("after"))
	p := pictureOf(t, k, render.PictureOptions{Count: func(e *session.Entry) int {
		if e.Compaction != nil {
			return len(e.Compaction.Summary)
		}
		return len(session.TextOf(e.Message.Content))
	}})
	var got []int64
	for _, at := range p.Points {
		got = append(got, at.Context)
	}
	if want := []int64{200, 400, 600, 12}; !slices.Equal(got, want) || !p.Estimated {
		t.Errorf("%v, want %v; estimated %v", got, want, p.Estimated)
	}
}

// However many points become one, nothing is lost.
func TestFit(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(t *rapid.T) {
		points := make([]render.Point, rapid.IntRange(1, 40).Draw(t, "points"))
		for i := range points {
			points[i] = render.Point{
				Entry: fmt.Sprint(i), Requests: 1, Context: rapid.Int64Range(0, 9).Draw(t, "context"), CostMicroUSD: rapid.Int64Range(0, 9).Draw(t, "cost"),
				Errors: render.Mark{Entry: fmt.Sprint(i), N: rapid.IntRange(0, 2).Draw(t, "errors")}, Spent: render.Elapsed{Model: 1, Tools: 2, Person: 3},
			}
		}
		most := rapid.IntRange(1, 50).Draw(t, "most")
		fit := render.Fit(points, most)
		if len(fit) != min(len(points), most) {
			t.Fatalf("%d points of %d, want at most %d", len(fit), len(points), most)
		}
		sum := func(list []render.Point) (s render.Point) {
			for _, at := range list {
				s.Requests += at.Requests
				s.Context = max(s.Context, at.Context)
				s.CostMicroUSD += at.CostMicroUSD
				s.Errors.N += at.Errors.N
				s.Spent.Model += at.Spent.Model
				s.Spent.Tools += at.Spent.Tools
				s.Spent.Person += at.Spent.Person
			}
			return s
		}
		if got, want := sum(fit), sum(points); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		for _, at := range fit {
			if at.Errors.N > 0 && points[must2(t, at.Errors.Entry)].Errors.N == 0 {
				t.Fatalf("%+v names an entry without an error", at)
			}
		}
	})
}

func must2(t *rapid.T, text string) (n int) {
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Every mark is a link to its entry, on an exported page as on that of a server, and nothing that
// a session says can act.
func TestPictureInHTML(t *testing.T) {
	t.Parallel()
	k := eventful(t)
	p := pictureOf(t, k, render.PictureOptions{})
	p.Failed[0].Name = `<script>alert(1)</script>`
	drawn := html.Picture(p, func(entry string) string { return "/e/" + entry + `"><script>` })
	for _, entry := range []string{"a1", "a2", "a3", "a4", "r1", "r3", "u2", "c1"} {
		if n := strings.Count(drawn, `href="/e/`+entry+"&#34;"); n < 2 {
			t.Errorf("%d links to %s, want one in the picture and one in the table", n, entry)
		}
	}
	for _, never := range []string{"<script", "style=", "http"} {
		if strings.Contains(drawn, never) {
			t.Errorf("the picture has %q", never)
		}
	}
	k.Picture = p
	var page strings.Builder
	if err := html.Write(t.Context(), &page, k.Conversation, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "<summary>How it went: 4 requests, 1.2k tokens in the context at most</summary>") {
		t.Error("the page does not say how it went")
	}
	for _, anchor := range []string{"e2", "e3", "e5", "e9"} { // a1, r1, a2, a3
		if !strings.Contains(page.String(), `<a tabindex=-1 href="#`+anchor+`"`) && !strings.Contains(page.String(), `id=`+anchor) {
			t.Errorf("no link to %s", anchor)
		}
	}
}

// Two columns tell every agent apart from others, whatever it is called.
func TestSignOf(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]render.AgentSign{
		"claude-code": {Sign: "CC", Hue: 1}, "my-agent": {Sign: "My", Hue: 7}, "": {Sign: "", Hue: 7}, "x\x1b[31m": {Sign: "X3", Hue: 7},
	} {
		if got := render.SignOf(agent); got != want {
			t.Errorf("%q: %+v, want %+v", agent, got, want)
		}
	}
	seen := make(map[string]string)
	for agent, sign := range render.AgentSigns() {
		if other := seen[sign.Sign]; other != "" && !(agent[:3] == other[:3]) || sign.Hue < 0 || sign.Hue >= render.AgentHues {
			t.Errorf("%s and %s are %+v", agent, other, sign)
		}
		seen[sign.Sign] = agent
	}
}

func TestWordsOfNumbers(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		12 * time.Millisecond: "12 ms", 45 * time.Second: "45 s", 250 * time.Second: "4 min", 125 * time.Minute: "2 h 5 min", 76 * time.Hour: "3 d 4 h", 48 * time.Hour: "2 d",
	} {
		if got := render.Duration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	if got := render.ShareOf(62_000, 200_000); got != "31% of 200k" {
		t.Error(got)
	}
	if got := render.ShareOf(5, 0); got != "" {
		t.Error(got)
	}
}
