package session_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
)

func TestContextOfAPath(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.sees()
	u := s.user("one")
	s.say("two")
	s.sees("user: one", "assistant: two")
	s.branch(u)
	s.say("other two")
	s.sees("user: one", "assistant: other two")
	s.again().sees("user: one", "assistant: other two")
}

// Labels, names, custom entries and entries of types we do not know give the
// model nothing, wherever they stand.
func TestContextHasOnlyWhatTheModelSees(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	u := s.user("one")
	mustGet(s.SetLabel(u, "a label"))(t)
	mustGet(s.AppendSessionInfo("a name"))(t)
	mustGet(s.AppendCustomEntry("ext", map[string]any{"text": "a custom"}))(t)
	mustGet(s.AppendEntry(session.Tags("tag")))(t)
	mustDo(t, s.Append(session.Entry{Type: "hologram"}))
	mustGet(s.AppendModelChange("p", "m"))(t)
	mustGet(s.AppendThinkingLevelChange("high"))(t)
	s.call("c")
	mustGet(s.SetLabel(u, "between call and result"))(t)
	s.result("c")
	s.sees("user: one", "assistant: call c", "tool: c = out of c")
	s.compact("sum", "")
	mustGet(s.SetLabel(u, "later"))(t)
	s.sees("summary: sum")
}

func TestModelAndThinkingLevel(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	expect := func(provider, model, level string) {
		t.Helper()
		for name, c := range map[string]*session.Context{"open": s.at(""), "loaded": s.again().at("")} {
			if c.Provider != provider || c.Model != model || c.ThinkingLevel != level {
				t.Errorf("%s: %s/%s thinking %s, want %s/%s thinking %s", name, c.Provider, c.Model, c.ThinkingLevel, provider, model, level)
			}
		}
	}
	expect("", "", "")
	u := s.user("one")
	mustGet(s.AppendModelChange("openai", "gpt"))(t)
	mustGet(s.AppendThinkingLevelChange("low"))(t)
	expect("openai", "gpt", "low")
	// The model that answered is the model in force, even if nobody announced it.
	s.add(session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: "assistant", Model: "sonnet", Provider: "anthropic"}})
	expect("anthropic", "sonnet", "low")
	s.add(session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: "user", Model: "not an answer"}})
	kept := s.user("two")
	expect("anthropic", "sonnet", "low")
	s.compact("sum", kept)
	expect("anthropic", "sonnet", "low")
	mustGet(s.AppendThinkingLevelChange("high"))(t)
	expect("anthropic", "sonnet", "high")
	left := s.LeafID()
	s.branch(u)
	expect("", "", "")
	if c := s.at(left); c.Model != "sonnet" || c.ThinkingLevel != "high" {
		t.Errorf("at the other leaf: %s, %s", c.Model, c.ThinkingLevel)
	}
}

// Entries that are kept stand before the compaction, but are older than the
// state that it recorded.
func TestStateOfAForeignCompaction(t *testing.T) {
	t.Parallel()
	const stamp = `"timestamp":"2024-01-01T10:00:02.000Z"`
	lines := []string{
		headerLine, messageLine("a", "", "user", "one"),
		`{"type":"model_change","id":"m1","parent_id":"a",` + stamp + `,"model_change":{"provider":"p1","model_id":"m1"}}`,
		`{"type":"thinking_level_change","id":"t1","parent_id":"m1",` + stamp + `,"thinking_level":"low"}`,
		messageLine("k", "t1", "user", "kept"),
		`{"type":"model_change","id":"m2","parent_id":"k",` + stamp + `,"model_change":{"provider":"p2","model_id":"m2"}}`,
	}
	for state, want := range map[string]string{
		``: "p2/m2/low", // found on the path
		`,"state":{"provider":"p3","model":"m3","thinking_level":"off"}`: "p3/m3/off",
		`,"state":{}`:   "//",
		`,"state":null`: "p2/m2/low",
	} {
		compaction := `{"type":"compaction","id":"c","parent_id":"m2",` + stamp + `,"compaction":{"summary":"s","first_kept_entry_id":"k","tokens_before":5` + state + `}}`
		long := strings.Repeat("long ", 10_000) // a resume does not meet more than it must
		for _, more := range [][]string{nil, {messageLine("x", "c", "user", long), messageLine("y", "x", "user", long)}} {
			s := loadScribe(t, writeLog(t, slices.Concat(lines, []string{compaction}, more)...))
			c := s.at("")
			if got := c.Provider + "/" + c.Model + "/" + c.ThinkingLevel; got != want {
				t.Errorf("state %q: %s, want %s", state, got, want)
			}
			if got := view(c.Entries)[:2]; !slices.Equal(got, []string{"summary: s", "user: kept"}) {
				t.Errorf("state %q: %q", state, got)
			}
		}
	}
}

func TestCompaction(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	s.say("two")
	three := s.user("three")
	s.say("four")
	c1 := s.compact("sum 1", three)
	s.sees("summary: sum 1", "user: three", "assistant: four")
	five := s.user("five")
	s.sees("summary: sum 1", "user: three", "assistant: four", "user: five")
	// The summary stands first, the compaction where it was appended gives no
	// second one.
	c2 := s.compact("sum 2", five)
	s.sees("summary: sum 2", "user: five")
	if c := s.at(""); c.Compaction != c2 {
		t.Errorf("compaction %q", c.Compaction)
	}
	// What came before is still there, and can be looked at.
	if c := s.at(c1); c.Compaction != c1 {
		t.Errorf("compaction %q", c.Compaction)
	}
	if e := mustGet(s.Entry(c2))(t); e.Compaction.TokensBefore != 100 {
		t.Errorf("tokens before %d", e.Compaction.TokensBefore)
	}
	// It can reach back before the compaction in force.
	s.say("six")
	s.compact("sum 3", three)
	s.sees("summary: sum 3", "user: three", "assistant: four", "user: five", "assistant: six")
	s.compact("sum 4", "")
	s.sees("summary: sum 4")
	s.user("seven")
	s.again().sees("summary: sum 4", "user: seven")
	if got := len(s.ids()); got != 11 {
		t.Errorf("%d entries: compaction must not remove any", got)
	}
}

func TestUndoAndRedo(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	two := s.user("two")
	s.compact("sum 1", two)
	three := s.user("three")
	s.compact("sum 2", three)
	full := []string{"user: one", "user: two", "user: three"}
	s.sees("summary: sum 2", "user: three")
	r2 := mustGet(s.Undo())(t)
	s.sees("summary: sum 1", "user: two", "user: three")
	r1 := mustGet(s.Undo())(t)
	s.sees(full...)
	s.again().sees(full...)
	// Redo is the revert of a revert, and that can be reverted too.
	redo := mustGet(s.AppendEntry(session.Revert(r1)))(t)
	s.sees("summary: sum 1", "user: two", "user: three")
	mustGet(s.AppendEntry(session.Revert(r2)))(t)
	s.sees("summary: sum 2", "user: three")
	s.again().sees("summary: sum 2", "user: three")
	mustGet(s.Undo())(t)
	mustGet(s.AppendEntry(session.Revert(redo)))(t)
	s.sees(full...)
	s.again().sees(full...)
	s.user("four")
	s.compact("sum 3", "")
	s.sees("summary: sum 3")
}

// A revert on one branch says nothing about another.
func TestRevertIsOfItsBranch(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	two := s.user("two")
	c := s.compact("sum", two)
	s.sees("summary: sum", "user: two")
	mustGet(s.Undo())(t)
	undone := s.LeafID()
	s.branch(c)
	s.sees("summary: sum", "user: two")
	if got := view(s.at(undone).Entries); !slices.Equal(got, []string{"user: one", "user: two"}) {
		t.Errorf("%q", got)
	}
	if _, err := s.AppendEntry(session.Revert(undone)); err == nil {
		t.Error("reverted what is on another branch")
	}
	if _, err := s.AppendEntry(session.Revert(two)); err == nil {
		t.Error("reverted a message")
	}
}

func TestContextEdits(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	u := s.user("one")
	a := s.call("c1", "c2")
	r := s.result("c1", "c2")
	end := s.say("done")
	e1 := mustGet(s.AppendEntry(session.ContextEdit(r)))(t)
	s.sees("user: one", "assistant: call c1, call c2", "tool: c1 = [cleared], c2 = [cleared]", "assistant: done")
	if c := s.at(""); c.Edited[r] != e1 {
		t.Errorf("edited %v", c.Edited)
	}
	e2 := mustGet(s.AppendEntry(session.ContextEdit(r, session.ToolResult("c1", "short", false), session.ToolResult("c2", "short", true))))(t)
	s.sees("user: one", "assistant: call c1, call c2", "tool: c1 = short, c2 = short", "assistant: done")
	mustGet(s.AppendEntry(session.Revert(e2)))(t)
	s.sees("user: one", "assistant: call c1, call c2", "tool: c1 = [cleared], c2 = [cleared]", "assistant: done")
	mustGet(s.AppendEntry(session.Revert(e1)))(t)
	s.sees("user: one", "assistant: call c1, call c2", "tool: c1 = out of c1, c2 = out of c2", "assistant: done")

	// Clearing the calls takes their results along, and says so.
	mustGet(s.AppendEntry(session.ContextEdit(a)))(t)
	s.sees("user: one", "assistant: done")
	if c := s.at(""); len(c.Problems) != 2 || c.Problems[0].Kind != session.ProblemOrphan {
		t.Errorf("problems %v", c.Problems)
	}
	mustGet(s.AppendEntry(session.ContextEdit(u, []session.Content{}...)))(t) // nothing, said otherwise
	mustGet(s.AppendEntry(session.ContextEdit(end, session.Text("edited"))))(t)
	s.sees("assistant: edited")
	s.again().sees("assistant: edited")
	// The log still has it all.
	if got := viewMessage(mustGet(s.Entry(r))(t).Message); got != "tool: c1 = out of c1, c2 = out of c2" {
		t.Error(got)
	}
	// On another branch nothing was edited.
	s.branch(end)
	s.sees("user: one", "assistant: call c1, call c2", "tool: c1 = out of c1, c2 = out of c2", "assistant: done")
	if _, err := s.AppendEntry(session.ContextEdit(e1)); err == nil {
		t.Error("edited an edit")
	}
	s.branch(u)
	if _, err := s.AppendEntry(session.ContextEdit(end)); err == nil {
		t.Error("edited what is on another branch")
	}
}

// A replacement that answers only some of the calls leaves none unanswered.
func TestEditThatDropsAResult(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	s.call("c1", "c2")
	r := s.result("c1", "c2")
	mustGet(s.AppendEntry(session.ContextEdit(r, session.ToolResult("c2", "short", false))))(t)
	s.sees("user: one", "assistant: call c1, call c2", "tool: c2 = short", "tool: c1 = "+interrupted)
}

func TestToolPairs(t *testing.T) {
	t.Parallel()
	const out = " = out of "
	for name, test := range map[string]struct {
		write    func(s scribe)
		sees     []string
		problems []session.ProblemKind
	}{
		"interrupted": {
			func(s scribe) { s.user("u"); s.call("a"); s.user("v") },
			[]string{"user: u", "assistant: call a", "tool: a = " + interrupted, "user: v"},
			[]session.ProblemKind{session.ProblemInterrupted},
		},
		"interrupted at the end": {
			func(s scribe) { s.user("u"); s.call("a") },
			[]string{"user: u", "assistant: call a", "tool: a = " + interrupted},
			[]session.ProblemKind{session.ProblemInterrupted},
		},
		"one of two interrupted": {
			func(s scribe) { s.user("u"); s.call("a", "b"); s.result("b"); s.say("x") },
			[]string{"user: u", "assistant: call a, call b", "tool: b" + out + "b", "tool: a = " + interrupted, "assistant: x"},
			[]session.ProblemKind{session.ProblemInterrupted},
		},
		"late": {
			func(s scribe) { s.user("u"); s.call("a"); s.user("v"); s.result("a"); s.say("x") },
			[]string{"user: u", "assistant: call a", "tool: a" + out + "a", "user: v", "assistant: x"},
			nil,
		},
		"late, with others in one message": {
			func(s scribe) {
				s.user("u")
				s.call("a")
				s.user("v")
				s.call("b")
				s.result("b", "a")
				s.say("x")
			},
			[]string{"user: u", "assistant: call a", "tool: a" + out + "a", "user: v", "assistant: call b", "tool: b" + out + "b", "assistant: x"},
			nil,
		},
		"orphan": {
			func(s scribe) { s.user("u"); s.result("a"); s.say("x") },
			[]string{"user: u", "assistant: x"},
			[]session.ProblemKind{session.ProblemOrphan},
		},
		"answered twice": {
			func(s scribe) { s.user("u"); s.call("a"); s.result("a"); s.result("a"); s.say("x") },
			[]string{"user: u", "assistant: call a", "tool: a" + out + "a", "assistant: x"},
			[]session.ProblemKind{session.ProblemOrphan},
		},
		"id used again in each turn": {
			func(s scribe) {
				for range 3 {
					s.user("u")
					s.call("call_0")
					s.result("call_0")
				}
			},
			slices.Repeat([]string{"user: u", "assistant: call call_0", "tool: call_0" + out + "call_0"}, 3),
			nil,
		},
		"id used again, first interrupted": {
			func(s scribe) { s.user("u"); s.call("call_0"); s.user("v"); s.call("call_0"); s.result("call_0") },
			[]string{"user: u", "assistant: call call_0", "tool: call_0 = " + interrupted, "user: v", "assistant: call call_0", "tool: call_0" + out + "call_0"},
			[]session.ProblemKind{session.ProblemInterrupted},
		},
		"parallel, in one message": {
			func(s scribe) { s.user("u"); s.call("a", "b"); s.result("a", "b") },
			[]string{"user: u", "assistant: call a, call b", "tool: a" + out + "a, b" + out + "b"},
			nil,
		},
		"parallel, each on its own": {
			func(s scribe) { s.user("u"); s.call("a"); s.call("b"); s.result("b"); s.result("a") },
			[]string{"user: u", "assistant: call a", "assistant: call b", "tool: b" + out + "b", "tool: a" + out + "a"},
			nil,
		},
		"results of the user": {
			func(s scribe) {
				s.user("u")
				s.call("a", "b")
				s.message(session.RoleUser, append(results("a", "b"), session.Text("go on"))...)
				s.say("x")
			},
			[]string{"user: u", "assistant: call a, call b", "user: a" + out + "a, b" + out + "b, go on", "assistant: x"},
			nil,
		},
		"late result of the user": {
			func(s scribe) {
				s.user("u")
				s.call("a")
				s.user("v")
				s.message(session.RoleUser, append(results("a"), session.Text("and more"))...)
			},
			[]string{"user: u", "assistant: call a", "tool: a" + out + "a", "user: v", "user: and more"},
			nil,
		},
		"a branch summary in between": {
			func(s scribe) {
				s.user("u")
				c := s.call("a")
				s.user("left")
				mustGet(s.BranchWithSummary(c, "went astray"))(s.t)
				s.result("a")
			},
			[]string{"user: u", "assistant: call a", "tool: a" + out + "a", "branch: went astray"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScribe(t)
			test.write(s)
			s.sees(test.sees...)
			var kinds []session.ProblemKind
			for _, p := range s.at("").Problems {
				kinds = append(kinds, p.Kind)
			}
			if diff := cmp.Diff(test.problems, kinds); diff != "" {
				t.Errorf("problems:\n%s", diff)
			}
			checkPairs(t, mustGet(s.GetContext())(t))
		})
	}
}

// checkPairs fails unless a provider would accept the entries: every call has
// exactly one result, right after its turn, and every result its call.
func checkPairs(t testing.TB, entries []session.Entry) {
	t.Helper()
	var open map[string]int
	inTurn := false
	closeTurn := func(why string) {
		t.Helper()
		for id, n := range open {
			if n != 0 {
				t.Errorf("call %s has no result before %s in %q", id, why, view(entries))
			}
		}
		open = make(map[string]int)
	}
	closeTurn("")
	for _, e := range entries {
		if e.Message == nil {
			closeTurn("a summary")
			inTurn = false
			continue
		}
		assistant := e.Message.Role == session.RoleAssistant
		hasResult := e.Message.Role == session.RoleTool || slices.ContainsFunc(e.Message.Content, func(c session.Content) bool { return c.ToolResult != nil })
		if !hasResult && !assistant || assistant && !inTurn {
			closeTurn(viewMessage(e.Message))
		}
		inTurn = assistant
		for _, c := range e.Message.Content {
			switch {
			case c.ToolUse != nil && assistant:
				open[c.ToolUse.ID]++
			case c.ToolResult != nil:
				if open[c.ToolResult.ToolUseID]--; open[c.ToolResult.ToolUseID] < 0 {
					t.Errorf("result %s has no call in %q", c.ToolResult.ToolUseID, view(entries))
				}
			}
		}
	}
	closeTurn("the end")
}

func TestInterruptedResult(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("u")
	a := s.call("a")
	entries := mustGet(s.GetContext())(t)
	last := entries[len(entries)-1]
	if last.ID != session.InterruptedPrefix+"a" || last.ParentID == nil || *last.ParentID != a || !last.Message.Content[0].ToolResult.IsError {
		t.Errorf("%s", encode(t, last))
	}
	// It is a view: the log has nothing of it, and the result can still come.
	if len(s.ids()) != 2 {
		t.Error("the stand-in was written")
	}
	s.result("a")
	s.sees("user: u", "assistant: call a", "tool: a = out of a")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	message := func(role string, tokens int, usage *session.Usage) session.Entry {
		m := &session.MessageEntry{Role: role, Content: []session.Content{session.Text("x")}, Usage: usage}
		if tokens >= 0 {
			m.Tokens = &tokens
		}
		return session.Entry{Type: session.TypeMessage, Message: m}
	}
	s := newScribe(t)
	expect := func(tokens, uncounted int) {
		t.Helper()
		if c := s.at(""); c.Tokens != tokens || c.Uncounted != uncounted {
			t.Errorf("%d tokens and %d uncounted, want %d and %d", c.Tokens, c.Uncounted, tokens, uncounted)
		}
	}
	expect(0, 0)
	s.add(message("user", 10, nil))
	u := s.add(message("user", -1, nil))
	expect(10, 1)
	// What the provider reported covers everything before it.
	answer := s.add(message("assistant", 5, &session.Usage{Input: 100, CacheRead: 20, CacheWrite: 3, Output: 7, Reasoning: 4}))
	expect(130, 0)
	s.add(message("user", 8, nil))
	expect(138, 0)
	s.add(message("assistant", -1, &session.Usage{})) // reports nothing
	expect(138, 1)
	// After a compaction it covers more than is sent.
	s.compact("sum", answer) // in the middle of a turn, whose beginning stays
	expect(13, 3)
	s.add(message("assistant", 5, &session.Usage{Input: 50, Output: 5}))
	expect(55, 0)
	// When something was edited, nobody has counted what it is now.
	edited := s.add(message("user", 3, nil))
	mustGet(s.AppendEntry(session.ContextEdit(edited, session.Text("y"))))(t)
	expect(55, 1)

	// A response that came after the edit was told of it.
	s.add(message("assistant", 5, &session.Usage{Input: 60, Output: 5}))
	expect(65, 0)
	// When the compaction is taken back, all that was reported since is too low; what
	// was reported before it holds again.
	mustGet(s.Undo())(t)
	expect(148, 2)

	// What a response on another branch cost says nothing about this one.
	s.branch(u)
	s.add(message("assistant", 2, &session.Usage{Input: 1000}))
	picked, other := s.LeafID(), s.LeafID()
	s.branch(u)
	s.add(message("user", 4, nil))
	mustGet(s.AppendEntry(session.Merge(other, "", picked)))(t)
	expect(16, 2)
}

func TestFingerprints(t *testing.T) {
	t.Parallel()
	write := func(s scribe) {
		s.user("one")
		s.message(session.RoleAssistant, session.ToolUse("c", "n", map[string]any{"b": 1.0, "a": "x"}))
		s.message(session.RoleTool, session.ToolResult("c", strings.Repeat("long ", 10_000), false))
		s.say("two")
		mustGet(s.BranchWithSummary(s.LeafID(), "sum"))(t)
	}
	a, b := newScribe(t), newScribe(t, func(c *session.Config) { c.Options.BlobThreshold = -1 })
	write(a)
	write(b)
	// Ids and times differ, and where the content is kept; the prompt does not.
	ca, cb := a.at(""), b.at("")
	if diff := cmp.Diff(ca.Fingerprints, cb.Fingerprints); diff != "" || len(ca.Fingerprints) != len(ca.Entries) {
		t.Errorf("equal contexts have other fingerprints:\n%s", diff)
	}
	if diff := cmp.Diff(ca.Fingerprints, a.again().at("").Fingerprints); diff != "" {
		t.Errorf("a reload changed the fingerprints:\n%s", diff)
	}
	// Remarks change nothing.
	mustGet(a.SetLabel(a.LeafID(), "l"))(t)
	mustGet(a.AppendSessionInfo("n"))(t)
	if diff := cmp.Diff(ca.Fingerprints, a.at("").Fingerprints); diff != "" {
		t.Errorf("a label changed the fingerprints:\n%s", diff)
	}
	if len(ca.Fingerprints[0].String()) != 32 {
		t.Errorf("printed as %q", ca.Fingerprints[0])
	}
	// The form of the line does not count, only what it says.
	nested := loadScribe(t, writeLog(t, headerLine, messageLine("a", "", "user", "hi")))
	flat := loadScribe(t, writeLog(t, headerLine, `{"timestamp":"2020-01-01T00:00:00Z","role":"user","content":"hi","id":"z","type":"message"}`))
	if diff := cmp.Diff(nested.at("").Fingerprints, flat.at("").Fingerprints); diff != "" {
		t.Error(diff)
	}
	// Whatever changes what is sent changes them from there on.
	for name, change := range map[string]func(s scribe){
		"role": func(s scribe) { s.message(session.RoleSystem, session.Text("x")) },
		"text": func(s scribe) { s.user("y") },
		"type": func(s scribe) { s.message(session.RoleUser, session.Content{Type: "x", Raw: []byte(`{"type":"x"}`)}) },
		"no":   func(s scribe) { s.message(session.RoleUser) },
	} {
		base, other := newScribe(t), newScribe(t)
		base.user("x")
		change(other)
		if base.at("").Fingerprints[0] == other.at("").Fingerprints[0] {
			t.Errorf("%s: another prompt has the same fingerprint", name)
		}
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	u1 := s.user("one")
	a1 := s.say("two")
	u2 := s.user("three")
	before := s.at("")
	expect := func(what string, old, now *session.Context, index int, entryBefore, entryAfter, why string) {
		t.Helper()
		d := old.Diff(now)
		if d.Index != index || d.Before != entryBefore || d.After != entryAfter || !strings.Contains(d.Why, why) || (why == "") != (d.Why == "") {
			t.Errorf("%s: %+v, want %d %q %q because of %q", what, d, index, entryBefore, entryAfter, why)
		}
	}
	expect("the same", before, s.again().at(""), 3, "", "", "")
	a2 := s.say("four")
	expect("appended", before, s.at(""), 3, "", a2, "appended")
	expect("shorter", s.at(""), before, 3, a2, "", "the path ends before entry "+a2)
	full := s.at("")
	edit := mustGet(s.AppendEntry(session.ContextEdit(u2, session.Text("edited"))))(t)
	expect("edited", full, s.at(""), 2, u2, u2, "entry "+u2+" was edited")
	mustGet(s.AppendEntry(session.Revert(edit)))(t)
	expect("edited and reverted", full, s.at(""), 4, "", "", "")
	mustGet(s.AppendEntry(session.ContextEdit(u2)))(t)
	expect("cleared", full, s.at(""), 2, u2, a2, "entry "+u2+" was cleared")
	expect("cleared, back", s.at(""), full, 2, a2, u2, u2)
	s.branch(a2)
	c := s.compact("sum", u2)
	expect("compacted", full, s.at(""), 0, u1, c, "compaction "+c+" came into force")
	compacted := s.at("")
	mustGet(s.Undo())(t)
	expect("undone", compacted, s.at(""), 0, c, u1, "compaction "+c+" was taken back")
	s.branch(a1)
	b := s.user("other")
	expect("branched", full, s.at(""), 2, u2, b, "another branch")
	call := s.call("c1")
	waiting := s.at("")
	r := s.result("c1")
	expect("answered", waiting, s.at(""), 4, session.InterruptedPrefix+"c1", r, "a tool call that had no result got one")
	_ = call
}

// The context after a resume, which reads only the end of the log, is exactly
// that of a session that has read it all.
func TestResumeFromTheTailEqualsFullLoad(t *testing.T) {
	t.Parallel()
	sessions := soak.N(12)
	for n := range sessions {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			rng := soak.Rand(t)
			s := newScribe(t)
			w := wanderer{scribe: s, rng: rng}
			for range 8 {
				for range 3 + rng.IntN(25) {
					w.step()
				}
				compareTail(t, s)
			}
			checkPairs(t, mustGet(s.GetContext())(t))
		})
	}
}

// compareTail compares the context of a session that was resumed with that of
// one that read everything, and goes on in the resumed one a little.
func compareTail(t *testing.T, live scribe) {
	t.Helper()
	full := live.again()
	mustGet(full.GetTree())(t)
	tail := live.again()
	if tail.LeafID() != full.LeafID() || tail.LeafID() != live.LeafID() {
		t.Fatalf("leaf %s from the tail, %s from all, %s live", tail.LeafID(), full.LeafID(), live.LeafID())
	}
	want := tell(t, full.at(""))
	if diff := cmp.Diff(want, tell(t, tail.at(""))); diff != "" {
		t.Fatalf("resumed (-full +tail):\n%s", diff)
	}
	if diff := cmp.Diff(want, tell(t, live.at(""))); diff != "" {
		t.Fatalf("live (-full +live):\n%s", diff)
	}
}

// wanderer does at random what people and agents do to a session.
type wanderer struct {
	scribe
	rng  *rand.Rand
	open []string // calls without a result
	n    int
}

func (w *wanderer) step() {
	w.t.Helper()
	w.n++
	text := fmt.Sprintf("text %d", w.n)
	if w.rng.IntN(6) == 0 { // so that a resume meets only a part of the log
		text += strings.Repeat(" and on", 1000)
	}
	switch w.rng.IntN(24) {
	case 0, 1, 2, 3:
		w.user(text)
	case 4, 5, 6:
		w.add(session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
			Role: "assistant", Content: []session.Content{session.Text(text)}, Model: pick(w.rng, "", "m1", "m2"), Provider: pick(w.rng, "", "p1"),
			Usage: &session.Usage{Input: w.rng.IntN(3) * w.n},
		}})
	case 7, 8:
		ids := []string{pick(w.rng, "call_0", fmt.Sprint("c", w.n))}
		if w.rng.IntN(3) == 0 {
			ids = append(ids, fmt.Sprint("d", w.n))
		}
		w.call(ids...)
		w.open = append(w.open, ids...)
	case 9, 10, 11:
		if len(w.open) > 0 {
			at := w.rng.IntN(len(w.open))
			w.result(w.open[at])
			w.open = slices.Delete(w.open, at, at+1)
		}
	case 12:
		mustGet(w.AppendModelChange(pick(w.rng, "p1", "p2"), text))(w.t)
	case 13:
		mustGet(w.AppendThinkingLevelChange(text))(w.t)
	case 14:
		mustGet(w.SetLabel(w.anyEntry(), text))(w.t)
	case 15:
		mustGet(w.AppendCustomEntry("x", map[string]any{"n": w.n}))(w.t)
	case 16:
		w.branch(w.anyEntry())
	case 17:
		mustGet(w.BranchWithSummary(w.anyEntry(), text))(w.t)
	case 18:
		if w.rng.IntN(8) == 0 {
			mustDo(w.t, w.ResetLeaf())
		}
	case 19, 20:
		plan, err := w.PlanCompaction(session.PlanOptions{KeepTokens: w.rng.IntN(8), Count: func(session.Entry) int { return 1 }})
		if err == nil {
			_, _ = w.AppendCompaction(text, plan.FirstKept, w.n) // refused while a call waits
		}
	case 21:
		_, _ = w.Undo()
	case 22:
		w.revertOrEdit(text)
	case 23:
		w.merge(text)
	}
}

func pick(rng *rand.Rand, choices ...string) string { return choices[rng.IntN(len(choices))] }

func (w *wanderer) anyEntry() string {
	ids := w.ids()
	if len(ids) == 0 {
		return w.user("first")
	}
	return ids[w.rng.IntN(len(ids))]
}

func (w *wanderer) revertOrEdit(text string) {
	for _, e := range mustGet(w.Forward(""))(w.t) {
		if w.rng.IntN(4) != 0 {
			continue
		}
		switch {
		case e.Message != nil && w.rng.IntN(2) == 0:
			mustGet(w.AppendEntry(session.ContextEdit(e.ID)))(w.t)
			return
		case e.Message != nil:
			mustGet(w.AppendEntry(session.ContextEdit(e.ID, session.Text(text))))(w.t)
			return
		case e.Revert != nil || e.ContextEdit != nil || e.Compaction != nil || e.Merge != nil:
			mustGet(w.AppendEntry(session.Revert(e.ID)))(w.t)
			return
		}
	}
}

func (w *wanderer) merge(text string) {
	leaves := mustGet(w.Leaves())(w.t)
	if len(leaves) == 0 {
		return
	}
	from := leaves[w.rng.IntN(len(leaves))]
	var picks []string
	for _, id := range w.compare("", from).OnlyB {
		if e := mustGet(w.Entry(id))(w.t); e.Message != nil && e.Message.Role == "user" && w.rng.IntN(3) == 0 {
			picks = append(picks, id)
		}
	}
	if _, err := w.AppendEntry(session.Merge(from, text, picks...)); err != nil && !errors.Is(err, session.ErrInvalid) { // it may be there already
		w.t.Fatal(err)
	}
}

// The first kept entry can lie far back, and the compaction far from the end.
func TestResumeWhenTheFirstKeptIsFarBack(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	for i := range 50 {
		s.user(fmt.Sprint("old ", i))
	}
	first := s.user("first kept")
	for i := range 200 {
		s.user(fmt.Sprintf("kept %d %s", i, strings.Repeat("x", 500)))
	}
	s.compact("sum", first)
	for i := range 200 {
		s.user(fmt.Sprintf("new %d %s", i, strings.Repeat("x", 500)))
	}
	compareTail(t, s)
	if got := len(s.again().at("").Entries); got != 402 {
		t.Errorf("%d entries", got)
	}
	// What lies before can still be asked for, from a session that has not read it.
	tail := s.again()
	mustGet(tail.GetContext())(t)
	old := s.ids()[3]
	if e := mustGet(tail.Entry(old))(t); viewMessage(e.Message) != "user: old 3" {
		t.Error(viewMessage(e.Message))
	}
	tail = s.again()
	mustGet(tail.GetContext())(t)
	if got := view(tail.at(old).Entries); len(got) != 4 {
		t.Errorf("context of an old entry: %q", got)
	}
	// An entry that the resume has met, but for whose context it has not read
	// enough: there the compaction does not count.
	tail = s.again()
	met := mustGet(tail.GetContext())(t)[7]
	tail.branch(met.ID)
	if got := len(mustGet(tail.GetContext())(t)); got != 50+1+6 {
		t.Errorf("%d entries at %s, want 57", got, viewMessage(met.Message))
	}
	compareTail(t, tail)
	tail = s.again()
	mustGet(tail.GetContext())(t)
	tail.branch(old)
	tail.sees("user: old 0", "user: old 1", "user: old 2", "user: old 3")
	tail.user("branched off")
	compareTail(t, tail)
}

// Only the end is read: what stands before the first kept entry may be
// unreadable without anybody noticing.
func TestResumeReadsOnlyTheEnd(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	for range 100 {
		s.user(strings.Repeat("x", 1000))
	}
	kept := s.user("kept")
	s.compact("sum", kept)
	for range 30 {
		s.user(strings.Repeat("y", 1000))
	}
	path := s.File()
	mustDo(t, s.Close())
	var damaged []byte
	damaged = append(damaged, readBytes(t, path)...)
	copy(damaged[50_000:], "\x00\x00\x00")
	again := loadScribe(t, writeBytes(t, damaged))
	if got := len(mustGet(again.GetContext())(t)); got != 32 {
		t.Errorf("%d entries", got)
	}
	if c := again.at(""); len(c.Problems) != 0 {
		t.Errorf("the resume looked at what it does not need: %v", c.Problems)
	}
	if kinds := again.problemKinds(); !slices.Contains(kinds, session.ProblemDamaged) {
		t.Errorf("problems %q", kinds)
	}
}
