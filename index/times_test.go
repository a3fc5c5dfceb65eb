package index_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

// The time before a message counts for whoever wrote it, and a call that failed for its tool, also
// if the index reads them one at a time. What a remark says in between divides the time.
func TestTimesAndFailures(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ix := f.open(t)
	s := f.create(session.Header{})
	step := func(after time.Duration, append func()) {
		t.Helper()
		f.now = f.now.Add(after - time.Second) // and one for the entry itself
		append()
		mustCatchUp(t, ix)
	}
	call := func(id, tool string) session.Content { return session.ToolUse(id, tool, nil) }
	step(time.Second, func() { f.append(s, session.RoleUser, session.Text("go")) })
	step(20*time.Second, func() { f.append(s, session.RoleAssistant, session.Text("yes"), call("1", "bash"), call("2", "edit")) })
	step(3*time.Second, func() { f.append(s, session.RoleTool, session.ToolResult("1", "no such file", true)) })
	step(2*time.Second, func() { f.append(s, session.RoleTool, session.ToolResult("2", "done", false)) })
	step(9*time.Second, func() { f.append(s, session.RoleAssistant, call("3", "bash")) })
	step(4*time.Second, func() { f.append(s, session.RoleTool, session.ToolResult("3", "no such command", true)) })
	step(session.Away, func() { f.append(s, session.RoleUser, session.Text("and?")) })
	step(session.Away+time.Second, func() { f.append(s, session.RoleUser, session.Text("hello?")) })
	check := func(ix *index.Index) {
		t.Helper()
		stats := must[*index.Stats](t)(ix.Stats(t.Context(), index.StatsOptions{}))
		if diff := cmp.Diff([]index.Count{{Name: "bash", Count: 2}}, stats.Failed); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		took := make(map[string]int64)
		for _, e := range stats.Times {
			took[e.Role] += e.Millis
		}
		if diff := cmp.Diff(map[string]int64{"assistant": 29_000, "tool": 9000, "user": 3_600_000}, took); diff != "" {
			t.Errorf("times (-want +got):\n%s", diff)
		}
	}
	check(ix)
	g := *f // the same log, read at once
	g.dir = t.TempDir()
	check(g.open(t))
	for _, e := range must[*index.Stats](t)(ix.Stats(t.Context(), index.StatsOptions{})).Times {
		if e.Tool != (e.Role == session.RoleTool) && e.Role != session.RoleAssistant {
			t.Errorf("%+v", e)
		}
	}
}

// The parts of a day add up to it, whatever it is divided by.
func TestPartsOfDays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, dir := range []string{"/a", "/b", "/a"} {
		s := f.create(session.Header{CWD: dir})
		for i, model := range []string{"gpt-5", "claude-sonnet-4-5", "unheard-of"} {
			f.respond(s, "", model, session.Usage{Input: 100 * (i + 1)}, session.Text("x"))
		}
		f.now = f.now.AddDate(0, 0, 1)
	}
	ix := f.open(t)
	for by, keys := range map[index.StatsBy][]string{
		"": nil, index.PartModel: {"claude-sonnet-4-5", "gpt-5", "unheard-of"}, index.PartDir: {"/a", "/b"}, index.PartAgent: {"coppice"},
	} {
		stats := must[*index.Stats](t)(ix.Stats(t.Context(), index.StatsOptions{By: by}))
		sums, seen := make(map[string]index.Usage), make(map[string]bool)
		for _, part := range stats.Parts {
			sum := sums[part.Day]
			sum.Add(part.Usage)
			sum.Key = part.Day
			sums[part.Day], seen[part.Key] = sum, true
		}
		for _, day := range stats.Days {
			if diff := cmp.Diff(day, sums[day.Key]); by != "" && diff != "" {
				t.Errorf("by %s (-day +parts):\n%s", by, diff)
			}
		}
		var got []string
		for key := range seen {
			got = append(got, key)
		}
		slices.Sort(got)
		if diff := cmp.Diff(keys, got); diff != "" || len(stats.Days) != 3 {
			t.Errorf("by %s (-want +got):\n%s", by, diff)
		}
	}
}

// Costs of a page of a list are those of each conversation by itself.
func TestSpent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	links := f.chain()
	one, other := f.create(session.Header{ID: "one"}), f.create(session.Header{ID: "other"})
	f.respond(one, "", "gpt-5", session.Usage{Input: 1_000_000}, session.Text("x"))
	f.respond(other, "", "gpt-5", session.Usage{Output: 1_000_000}, session.Text("x"))
	ids := []string{"one", "other"}
	for _, s := range links {
		f.respond(s, "", "gpt-5", session.Usage{Input: 1000}, session.Text("x"))
		ids = append(ids, s.ID())
	}
	ix := f.open(t)
	spent := must[map[string]index.Usage](t)(ix.Spent(t.Context(), ids))
	for _, id := range ids {
		if diff := cmp.Diff(must[*index.Stats](t)(ix.Stats(t.Context(), index.StatsOptions{Session: id})).Total, spent[id]); diff != "" || spent[id].CostMicroUSD == 0 {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	if _, err := ix.Spent(t.Context(), []string{"gone"}); err == nil {
		t.Error("a session that is not there is no error")
	}
}
