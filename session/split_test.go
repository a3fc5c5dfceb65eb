package session_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// An agent works for hundreds of steps on one prompt. Its session can be compacted
// to any size that holds the prompt and the last step.
func TestAnAgentsTurnCompactsToAnyBudget(t *testing.T) {
	t.Parallel()
	const steps = 1000
	s := scribe{closeWith(t, mustGet(session.Create(t.Context(), memory.New(nil), session.Header{}, nil))(t)), t}
	s.message(session.RoleSystem, session.Text("rules"))
	s.user("build it")
	for i := range steps {
		s.call(fmt.Sprint("c", i))
		s.result(fmt.Sprint("c", i))
	}
	leaf := s.LeafID()
	const least = 4 // the rules, the prompt, the last call and its result
	for _, keep := range []int{least, least + 1, 100, 1001, 2*steps + 1} {
		plan := mustGet(s.PlanCompaction(session.PlanOptions{KeepTokens: keep, Count: one}))(t)
		if plan.Over != 0 || plan.TokensKept > keep || plan.TokensKept < keep-1 || plan.Kind != session.CutStep {
			t.Errorf("keep %d: %d tokens, %d over, %v", keep, plan.TokensKept, plan.Over, plan.Kind)
		}
		s.compact("sum", plan.FirstKept)
		got := mustGet(s.GetContext())(t)
		checkPairs(t, got)
		if len(got) != plan.TokensKept+1 {
			t.Errorf("keep %d: %d entries, planned %d", keep, len(got), plan.TokensKept)
		}
		if diff := cmp.Diff([]string{"system: rules", "summary: sum", "user: build it"}, view(got)[:3]); diff != "" {
			t.Error(diff)
		}
		s.branch(leaf)
	}
	if plan := mustGet(s.PlanCompaction(session.PlanOptions{KeepTokens: 2, Count: one}))(t); plan.Over != 2 || plan.TokensKept != least {
		t.Errorf("a budget that cannot be met: %d tokens, %d over", plan.TokensKept, plan.Over)
	}
	// Again and again, as an agent does it.
	for range 5 {
		plan := mustGet(s.PlanCompaction(session.PlanOptions{KeepTokens: 9, Count: one}))(t)
		s.compact("sum", plan.FirstKept)
		for i := range 20 {
			s.call(fmt.Sprint("more", i))
			s.result(fmt.Sprint("more", i))
		}
		if got := view(mustGet(s.GetContext())(t)); !slices.Equal(got[:3], []string{"system: rules", "summary: sum", "user: build it"}) {
			t.Errorf("the context begins with %q", got[:3])
		}
	}
}

// talk is a conversation of all that happens in one.
type talk struct {
	scribe
	count int
	open  []string // calls without a result
}

func (k *talk) step(t *rapid.T) {
	k.count++
	text := fmt.Sprint(k.count, strings.Repeat("x", rapid.IntRange(0, 30).Draw(t, "length")))
	switch rapid.IntRange(0, 14).Draw(t, "step") {
	case 0, 1:
		k.user(text) // perhaps while a tool runs
	case 2, 3:
		k.say(text)
	case 4, 5, 6: // in parallel, some with ids that are used again
		var ids []string
		for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
			ids = append(ids, rapid.SampledFrom([]string{"same", fmt.Sprint("c", k.count, "-", i)}).Draw(t, "id"))
		}
		k.call(ids...)
		k.open = append(k.open, ids...)
	case 7, 8, 9, 10: // of the latest calls or of early ones, in any order
		if len(k.open) > 0 {
			at := rapid.IntRange(0, len(k.open)-1).Draw(t, "answered")
			k.result(k.open[at])
			k.open = slices.Delete(k.open, at, at+1)
		}
	case 11:
		role := rapid.SampledFrom([]session.MessageRole{session.RoleSystem, session.RoleCustom}).Draw(t, "role")
		k.message(role, session.Text(text))
	case 12:
		k.edit(t, text)
	case 13:
		k.merge(t)
	case 14:
		k.add(session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
			Role: session.RoleAssistant, Content: []session.Content{session.Text(text)}, ResponseID: rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "response"),
		}})
	}
}

// edit changes what is said, not what is called.
func (k *talk) edit(t *rapid.T, text string) {
	path := mustGet(k.Forward(""))(k.t)
	path = slices.DeleteFunc(path, func(e session.Entry) bool {
		return e.Message == nil || len(e.Message.Content) > 0 && e.Message.Content[0].ToolUse != nil
	})
	if len(path) > 0 {
		replacement := rapid.SampledFrom([][]session.Content{nil, {session.Text(text)}}).Draw(t, "replacement")
		mustGet(k.AppendEntry(session.ContextEdit(rapid.SampledFrom(path).Draw(t, "edited").ID, replacement...)))(k.t)
	}
}

func (k *talk) merge(t *rapid.T) {
	leaf := k.LeafID()
	if leaf == "" {
		return
	}
	k.user("aside")
	picked := k.say("merged")
	k.branch(leaf)
	mustGet(k.AppendEntry(session.Merge(picked, rapid.SampledFrom([]string{"", "what it came to"}).Draw(t, "summary"), picked)))(k.t)
}

func textTokens(e session.Entry) int {
	n := 1 + len(e.Summary())
	if e.Message != nil {
		for _, c := range e.Message.Content {
			switch {
			case c.Text != nil:
				n += len(c.Text.Content)
			case c.ToolResult != nil:
				n += len(c.ToolResult.Content)
			}
		}
	}
	return n
}

func tokensOf(entries []session.Entry) (n int) {
	for _, e := range entries {
		n += textTokens(e)
	}
	return n
}

// What a plan says is what comes of it, and no legal cut would have been better.
func TestPlansKeepTheirWord(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(rt *rapid.T) {
		k := &talk{scribe: scribe{mustGet(session.Create(t.Context(), memory.New(nil), session.Header{}, nil))(t), t}}
		defer k.Close()
		for range rapid.IntRange(1, 3).Draw(rt, "compactions") {
			for range rapid.IntRange(1, 25).Draw(rt, "steps") {
				k.step(rt)
			}
			keep := rapid.IntRange(0, 300).Draw(rt, "keep")
			plan, err := k.PlanCompaction(session.PlanOptions{KeepTokens: keep, Count: textTokens})
			if err != nil {
				if !errors.Is(err, session.ErrNothingToCompact) {
					rt.Fatal(err)
				}
				continue
			}
			k.holds(rt, plan, keep)
		}
	})
}

// holds checks a plan by all compactions that would be legal, and does it.
func (k *talk) holds(t *rapid.T, plan *session.CompactionPlan, keep int) {
	leaf := k.LeafID()
	before := mustGet(k.GetContext())(k.t)
	inContext := entryIDs(before)
	if got := tokensOf(before); plan.TokensBefore != got || len(plan.Summarise)+len(plan.Kept) != len(before) {
		t.Fatalf("%d tokens before, planned %d", got, plan.TokensBefore)
	}
	path := mustGet(k.Forward(""))(k.t)
	for i := range path {
		first := path[i].ID
		if !slices.Contains(inContext, first) || path[i].Compaction != nil {
			continue // a plan makes the context smaller, it brings nothing back
		}
		_, err := k.AppendCompaction("sum", first, 1)
		var cut *session.CutError
		if errors.As(err, &cut) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := withoutSummary(mustGet(k.GetContext())(k.t))
		checkPairs(k.t, got)
		tokens := tokensOf(got)
		switch {
		case first == plan.FirstKept:
			if diff := cmp.Diff(view(plan.Kept), view(got)); diff != "" {
				t.Fatalf("keep %d (-planned +got):\n%s", keep, diff)
			}
			if tokens != plan.TokensKept || plan.Over != max(0, tokens-keep) {
				t.Fatalf("keep %d: there are %d tokens, planned %d and %d over", keep, tokens, plan.TokensKept, plan.Over)
			}
		case len(got) >= len(withoutSummary(before)): // it leaves nothing out
		case plan.Over > 0 && tokens < plan.TokensKept:
			t.Fatalf("keep %d: planned %d tokens, but %d are enough from %q on (-planned +enough):\n%s", keep, plan.TokensKept, tokens, first, cmp.Diff(view(plan.Kept), view(got)))
		case plan.Over == 0 && plan.Kind == session.CutStep && tokens <= keep && got[0].ID == first && path[i].BeginsTurn():
			t.Fatalf("keep %d: a turn was split, but it can be cut before %q", keep, first)
		}
		k.branch(leaf)
	}
	k.compact("sum", plan.FirstKept)
}

// System messages survive every compaction, with their edits; so does the prompt
// of a turn that is split; and it is the same for a session that was just opened.
func TestWhatSurvivesACompaction(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	check := func(want ...string) {
		t.Helper()
		s.sees(want...)
		s.again().sees(want...)
		compareTail(t, s)
	}
	rules := s.message(session.RoleSystem, session.Text("rules"))
	gone := s.message(session.RoleSystem, session.Text("old rules"))
	s.user("one")
	s.say("answer")
	mustGet(s.AppendEntry(session.ContextEdit(gone)))(t)
	edit := mustGet(s.AppendEntry(session.ContextEdit(rules, session.Text("new rules"))))(t)
	two := s.user("two")
	s.compact("first", two)
	check("system: new rules", "summary: first", "user: two")
	s.message(session.RoleSystem, session.Text("late rules"))
	s.call("c")
	s.result("c")
	last := s.call("d")
	s.result("d")
	s.compact("second", last)
	check("system: new rules", "system: late rules", "summary: second", "user: two", "assistant: call d", "tool: d = out of d")
	s.compact("third", "")
	check("system: new rules", "system: late rules", "summary: third")
	s.say("it goes on")
	goesOn := s.LeafID()
	s.say("and on")
	s.compact("fourth", goesOn)
	check("system: new rules", "system: late rules", "summary: fourth", "user: two", "assistant: it goes on", "assistant: and on")
	// What is reverted or edited after the compaction counts too.
	mustGet(s.AppendEntry(session.ContextEdit(gone, session.Text("old but true"))))(t)
	check("system: new rules", "system: old but true", "system: late rules", "summary: fourth", "user: two", "assistant: it goes on", "assistant: and on")
	mustGet(s.AppendEntry(session.Revert(edit)))(t)
	check("system: rules", "system: old but true", "system: late rules", "summary: fourth", "user: two", "assistant: it goes on", "assistant: and on")
	mustGet(s.AppendEntry(session.ContextEdit(two)))(t)
	check("system: rules", "system: old but true", "system: late rules", "summary: fourth", "assistant: it goes on", "assistant: and on")
	mustGet(s.Undo())(t)
	check("system: rules", "system: old but true", "system: late rules", "summary: third", "assistant: it goes on", "assistant: and on")
	if kinds := s.problemKinds(); kinds != nil {
		t.Errorf("problems %q", kinds)
	}
}

// The history that was summarised is not even looked at, though the system message
// and the prompt stand before it and in the middle of it.
func TestResumeFindsWhatSurvivesWithoutTheHistory(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	size := func() int64 { return mustGet(os.Stat(s.File()))(t).Size() }
	var spans [][2]int64 // of the history
	fill := func() {
		from := size()
		for i := range 200 {
			s.call(fmt.Sprint("c", i))
			s.message(session.RoleTool, session.ToolResult(fmt.Sprint("c", i), strings.Repeat("x", 2000), false))
		}
		spans = append(spans, [2]int64{from, size()})
	}
	s.message(session.RoleSystem, session.Text("rules"))
	fill()
	s.user("build it")
	fill()
	s.call("kept")
	kept := s.LeafID()
	s.result("kept")
	s.compact("sum", kept)
	s.say("done")
	want := tell(t, s.at(""))
	mustDo(t, s.Close())
	data := readBytes(t, s.File())
	for _, span := range spans {
		clear(data[span[0] : span[1]-1])
	}
	mustDo(t, os.WriteFile(s.File(), data, 0o600))
	if diff := cmp.Diff(want, tell(t, s.again().at(""))); diff != "" {
		t.Errorf("resumed (-before +after):\n%s", diff)
	}
}

// In a copy the lines are elsewhere than the compaction says.
func TestForkFindsWhatSurvives(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.message(session.RoleSystem, session.Text("rules"))
	s.user("build it")
	for i := range 50 {
		s.call(fmt.Sprint("c", i))
		s.message(session.RoleTool, session.ToolResult(fmt.Sprint("c", i), strings.Repeat("x", 3000), false))
	}
	s.call("kept")
	kept := s.LeafID()
	s.result("kept")
	s.compact("sum", kept)
	want := []string{"system: rules", "summary: sum", "user: build it", "assistant: call kept", "tool: kept = out of kept"}
	path := mustGet(s.CreateBranchedSession(s.LeafID()))(t)
	loadScribe(t, path).sees(want...)
	compareTail(t, loadScribe(t, path))
	fork := mustGet(s.Fork(t.Context(), memory.New(nil), nil))(t)
	defer fork.Close()
	if diff := cmp.Diff(want, view(mustGet(fork.GetContext())(t))); diff != "" {
		t.Error(diff)
	}
}

// foreignLog writes a session as another program would: a compaction has nothing
// but what seed formats have, and members may stand in any order.
func foreignLog(t testing.TB, lines ...string) scribe {
	t.Helper()
	text := `{"type":"session","id":"s","version":1,"timestamp":"2026-01-01T00:00:00Z"}` + "\n"
	parent := "null"
	for i, line := range lines {
		text += fmt.Sprintf(line, fmt.Sprintf(`"id":"e%d","parent_id":%s,"timestamp":"2026-01-01T00:00:00Z"`, i, parent)) + "\n"
		parent = fmt.Sprintf(`"e%d"`, i)
	}
	path := t.TempDir() + "/s.jsonl"
	mustDo(t, os.WriteFile(path, []byte(text), 0o600))
	return loadScribe(t, path)
}

func TestForeignCompactionKeepsWhatCounts(t *testing.T) {
	t.Parallel()
	const (
		said     = `{"type":"message",%%s,"message":{"role":%q,"content":[{"type":"text","text":{"content":%q}}]%s}}`
		reversed = `{"message":{"content":[{"type":"text","text":{"content":%q}}],"role":%q},%%s,"type":"message"}`
		flat     = `{"type":"message",%%s,"content":[{"type":"text","text":{"content":%q}}],"role":%q}`
	)
	say := func(role, text, more string) string { return fmt.Sprintf(said, role, text, more) }
	s := foreignLog(t,
		fmt.Sprintf(reversed, "odd rules", "system"),
		say("system", "rules", ""),
		fmt.Sprintf(flat, "flat rules", "system"),
		`{"type":"thinking_level",%s,"thinking_level":{"thinking_level":"high"}}`,
		`{"type":"model_change",%s,"model_change":{"provider":"p","model_id":"m"}}`,
		say("user", "one", ""),
		fmt.Sprintf(reversed, "two", "user"),
		say("assistant", "the word \\\"model\\\" is said, and no more", ""),
		say("assistant", "m answers", `,"model":"m"`),
		say("assistant", "kept", ""),
		`{"type":"compaction",%s,"compaction":{"summary":"sum","first_kept_entry_id":"e9","tokens_before":1}}`,
		say("assistant", "after", ""),
	)
	want := []string{
		"system: odd rules", "system: rules", "system: flat rules", "summary: sum", "user: two", "assistant: kept", "assistant: after",
	}
	s.sees(want...)
	s.user("the next")
	s.sees(append(want, "user: the next")...)
	if c := s.at(""); c.Provider != "p" || c.Model != "m" || c.ThinkingLevel != "high" {
		t.Errorf("%s/%s, thinking %s", c.Provider, c.Model, c.ThinkingLevel)
	}
	compareTail(t, s)
}

// A provider belongs to the model that it was named with.
func TestProviderOfAnotherModel(t *testing.T) {
	t.Parallel()
	change := func(provider, model string) session.Entry {
		return session.Entry{Type: session.TypeModelChange, ModelChange: &session.ModelChangeEntry{Provider: provider, ModelID: model}}
	}
	answer := func(provider, model string) session.Entry {
		return session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
			Role: session.RoleAssistant, Content: []session.Content{session.Text("x")}, Provider: provider, Model: model,
		}}
	}
	for _, test := range []struct {
		entries []session.Entry
		want    string
	}{
		{[]session.Entry{change("openai", "gpt-4o"), answer("", "claude")}, "/claude"},
		{[]session.Entry{change("openai", "gpt-4o"), answer("", "gpt-4o")}, "openai/gpt-4o"},
		{[]session.Entry{answer("openai", "gpt-4o"), answer("", "gpt-4o"), answer("", "gpt-4o")}, "openai/gpt-4o"},
		{[]session.Entry{answer("openai", "gpt-4o"), answer("", "claude"), answer("", "gpt-4o")}, "/gpt-4o"},
		{[]session.Entry{answer("openai", "gpt-4o"), answer("", "")}, "openai/gpt-4o"},
		{[]session.Entry{answer("", "claude"), answer("anthropic", "claude")}, "anthropic/claude"},
		{[]session.Entry{answer("", "claude")}, "/claude"},
	} {
		s := newScribe(t)
		mustGet(s.AppendAll(test.entries...))(t)
		check := func(how string) {
			t.Helper()
			for _, s := range []scribe{s, s.again()} {
				if c := s.at(""); c.Provider+"/"+c.Model != test.want {
					t.Errorf("%s: %s/%s, want %s", how, c.Provider, c.Model, test.want)
				}
			}
		}
		check("as it is")
		leaf := s.LeafID()
		s.compact("sum", "")
		check("compacted")
		s.branch(leaf)
		mustDo(t, s.Graft(session.Entry{
			Type: session.TypeCompaction, ID: "foreign", ParentID: &leaf, Timestamp: time.Unix(1, 0),
			Compaction: &session.CompactionEntry{Summary: "sum"},
		}))
		check("compacted by another program")
	}
}

func TestNearestCut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ script, first, want string }{
		{"u a u a", "2u", "2u"},
		{"u c1 r1 a", "2r1", "1c1"},
		{"u c1 l r1 a", "2l", "1c1"},
		{"u c1,2 r1 r2 a", "3r2", "1c1,2"},
		{"u a:x a:x u", "2a:x", "1a:x"},
		{"u t c1 r1", "3r1", "1t"},
		{"u a", "", ""},
		{"u c1", "", "1c1"}, // a call waits: it has to stay
		{"u c1 u", "2u", "1c1"},
		{"u c1 u a", "2u", "2u"},
		{"r9 u", "0r9", "none"},
		{"u a", "elsewhere", "none"},
	} {
		moved, ok := session.MoveCut(script(t, test.script), session.Entry{Compaction: &session.CompactionEntry{FirstKeptEntryID: test.first}})
		got := moved.Compaction.FirstKeptEntryID
		if !ok {
			got = "none"
		}
		if got != test.want {
			t.Errorf("%s, cut before %q: %q, want %q", test.script, test.first, got, test.want)
		}
	}
}

func TestMergeBringsNothingTwice(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	one := s.user("one")
	aside := s.user("aside")
	s.branch(one)
	call := s.call("c")
	result := s.result("c")
	for _, ids := range [][]string{{call, result}, {one}, {aside, aside}} {
		if _, err := s.AppendEntry(session.Merge(slices.Max([]string{ids[0], ids[len(ids)-1]}), "", ids...)); !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), ids[0]) {
			t.Errorf("merge of %q: %v", ids, err)
		}
	}
	mustGet(s.AppendEntry(session.Merge(aside, "", aside)))(t)
	if _, err := s.AppendEntry(session.Merge(aside, "", aside)); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("merged again: %v", err)
	}
	want := []string{"user: one", "assistant: call c", "tool: c = out of c", "merge: ", "user: aside"}
	s.sees(want...)
	if kinds := s.problemKinds(); kinds != nil {
		t.Errorf("problems %q", kinds)
	}
	// Another program may have done it.
	leaf := s.LeafID()
	graft := func(id string, ids ...string) {
		t.Helper()
		leaf := s.LeafID()
		mustDo(t, s.Graft(session.Entry{
			Type: session.TypeMerge, ID: id, ParentID: &leaf, Timestamp: time.Unix(1, 0),
			Merge: &session.MergeEntry{FromID: aside, Summary: id, EntryIDs: ids},
		}))
	}
	graft("twice", result, aside)
	s.sees(append(want, "merge: twice")...)
	problems := s.problems()
	for i, id := range []string{aside, result} {
		if len(problems) != 2 || problems[i].Kind != session.ProblemRepeated || problems[i].EntryID != "twice" || !strings.Contains(problems[i].Detail, id) {
			t.Errorf("problems %v", problems)
		}
	}
	// It is the first merge that brings it, also when that was summarised.
	s.compact("sum", "twice")
	s.sees("summary: sum", "merge: twice")
	s.branch(leaf)
}

// Taking back what was added leaves no trace.
func TestPairsRewind(tt *testing.T) {
	tt.Parallel()
	soak.Check(tt, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom(strings.Fields("u a t c1 c2 c1,2 c1,1 r1 r2 r2,1 ur1 s l a:x a:y c1:x")), 1, 30)
		draw := func(what string) []session.Entry { return script(tt, strings.Join(words.Draw(t, what), " ")) }
		begin, side, end := draw("begin"), draw("side"), draw("end")
		var p, fresh session.Pairs
		for i := range begin {
			p.Add(&begin[i])
			fresh.Add(&begin[i])
		}
		mark := p.Mark()
		for i := range side {
			p.Add(&side[i])
		}
		p.Rewind(mark)
		for i := range end {
			if diff := cmp.Diff(fresh.Add(&end[i]), p.Add(&end[i]), cmp.AllowUnexported(session.Ref{}), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("entry %d (-fresh +rewound):\n%s", i, diff)
			}
			if diff := cmp.Diff(fresh.PendingCalls(), p.PendingCalls(), cmp.AllowUnexported(session.Ref{}), cmpopts.EquateEmpty()); diff != "" || fresh.Pending() != p.Pending() || fresh.Len() != p.Len() {
				t.Fatalf("pending (-fresh +rewound):\n%s", diff)
			}
		}
	})
}

// A damaged line among what survives costs that line and nothing else.
func TestResumeWhenWhatSurvivesIsDamaged(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.message(session.RoleSystem, session.Text("torn rules"))
	s.message(session.RoleSystem, session.Text("rules"))
	for range 20 {
		s.user(strings.Repeat("x", 5000))
	}
	s.compact("sum", s.user("kept"))
	mustDo(t, s.Close())
	data := readBytes(t, s.File())
	mustDo(t, os.WriteFile(s.File(), []byte(strings.Replace(string(data), `"content":"torn rules"`, `"content" "torn rules"`, 1)), 0o600))
	again := s.again()
	again.sees("system: rules", "summary: sum", "user: kept")
	if c := again.at(""); len(c.Problems) != 1 || c.Problems[0].Kind != session.ProblemDamaged {
		t.Errorf("problems %v", c.Problems)
	}
}
