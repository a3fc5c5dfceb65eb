package session_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// script makes entries of a short notation, one word an entry:
//
//	u        the user speaks           a       the model answers
//	a:x      … in response x           t       the model thinks, nothing else
//	c1,2     the model calls 1 and 2   r1,2    a message with the results of 1 and 2
//	ur1      the user's message has the result of 1
//	l        a label                   m       a change of model
//	s        a system message          x       an extension's message
//	b        a branch summary          k       a compaction
func script(t testing.TB, text string) []session.Entry {
	t.Helper()
	var entries []session.Entry
	for i, word := range strings.Fields(text) {
		e := session.Entry{Type: session.TypeMessage, ID: fmt.Sprintf("%d%s", i, word)}
		say := func(role string, content ...session.Content) {
			e.Message = &session.MessageEntry{Role: role, Content: content}
		}
		word, response, _ := strings.Cut(word, ":")
		switch rest := word[1:]; word[0] {
		case 'u':
			if strings.HasPrefix(word, "ur") {
				say("user", results(strings.Split(word[2:], ",")...)...)
			} else {
				say("user", session.Text("u"))
			}
		case 'a':
			say("assistant", session.Text("a"))
		case 't':
			say("assistant", session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm"}})
		case 'c':
			say("assistant", calls(strings.Split(rest, ",")...)...)
		case 'r':
			say("tool", results(strings.Split(rest, ",")...)...)
		case 's':
			say("system", session.Text("s"))
		case 'x':
			say("custom", session.Text("x"))
		case 'l':
			e.Type, e.Label = session.TypeLabel, &session.LabelEntry{TargetID: "x", Label: "l"}
		case 'm':
			e.Type, e.ModelChange = session.TypeModelChange, &session.ModelChangeEntry{}
		case 'b':
			e.Type, e.BranchSummary = session.TypeBranchSummary, &session.BranchSummaryEntry{Summary: "b"}
		case 'k':
			e.Type, e.Compaction = session.TypeCompaction, &session.CompactionEntry{Summary: "k"}
		default:
			t.Fatalf("script: %q", word)
		}
		if e.Message != nil {
			e.Message.ResponseID = response
		}
		entries = append(entries, e)
	}
	return entries
}

// drawCuts writes cuts as numbers, those that split a turn with a stroke.
func drawCuts(cuts []session.Cut) string {
	var text []string
	for _, cut := range cuts {
		word := fmt.Sprint(cut.At)
		if cut.Kind == session.CutStep {
			word += "'"
		}
		text = append(text, word)
	}
	return strings.Join(text, " ")
}

func TestCutPoints(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ script, legal, pending string }{
		// Before the user's messages, before the model's, before entries that are
		// not messages. A stroke: it splits a turn.
		{"u a u a", "0 1' 2 3'", ""},
		{"u a l m b k u", "0 1' 2 3 4 5 6", ""},
		{"s u x a", "0' 1 2' 3'", ""},
		// Never between a call and its result, but between the steps of a turn.
		{"u c1 r1 a", "0 1' 3'", ""},
		{"u c1 l r1 m a", "0 1' 4' 5'", ""},
		{"u c1,2 r1 r2 a u", "0 1' 4' 5", ""},
		{"u c1,2 r2,1 a u", "0 1' 3' 4", ""},
		{"u c1 c2 r1 r2 a", "0 1' 5'", ""},
		{"u c1 r1 c2 r2 a", "0 1' 3' 5'", ""},
		{"u c1 ur1 a", "0 1' 3'", ""},
		{"u c1 s r1 a", "0 1' 4'", ""},
		{"u c1 x r1 a", "0 1' 4'", ""},
		// While a call waits there is none after it.
		{"u a u c1", "0 1' 2 3'", "pending"},
		{"u a u c1 l m", "0 1' 2 3'", "pending"},
		{"u c1,2 r1", "0 1'", "pending"},
		// A call that was never answered holds them up until the model speaks
		// after the user has: until then its result may come.
		{"u c1 u", "0 1'", "pending"},
		{"u c1 u l u", "0 1'", "pending"},
		{"u c1 l u a", "0 1' 3 4'", ""},
		{"u c1 a c2 u l u a l", "0 1' 4 5 6 7' 8", ""},
		{"u c1,2 u r1", "0 1'", "pending"},
		{"u c1,2 u r1 a u", "0 1' 4' 5", ""},
		{"u c1 u a c2", "0 1' 2 3' 4'", "pending"},
		{"u c1 x a", "0 1'", "pending"},
		{"u c1 ur9 a", "0 1'", "pending"},
		{"u c1 u a", "0 1' 2 3'", ""},
		{"u c1,2 r1 u a u", "0 1' 3 4' 5", ""},
		{"u c1 a l", "0 1'", "pending"},
		{"u c1 u c2 r2 a u", "0 1' 2 3' 5' 6", ""},
		// A result that comes after all takes the cuts since its call back.
		{"u c1 u r1 a u", "0 1' 4' 5", ""},
		{"u c1 u a u a r1 a u", "0 1' 7' 8", ""},
		{"u c1 u c2 r2 a r1 a", "0 1' 7'", ""},
		{"u c1 u l c2 r2 r1 a", "0 1' 7'", ""},
		// Ids that are used again in each turn.
		{"u c0 r0 u c0 r0 u c0 r0 a", "0 1' 3 4' 6 7' 9'", ""},
		{"u c0 u c0 r0 a u", "0 1' 2 3' 5' 6", ""},
		{"u c0 u c0 r0 a r0 a u", "0 1' 7' 8", ""},
		{"u c0 c0 r0 r0 a", "0 1' 5'", ""},
		{"u c0,0 r0 l", "0 1'", "pending"},
		// Orphans make no difference.
		{"u r9 a u", "0 2' 3", ""},
		{"r9 u", "1", ""},
		// One response in several entries.
		{"u a:x a:x a:y u", "0 1' 3' 4", ""},
		{"u a:x l a:x u", "0 1' 4", ""},
		{"u a:x c1:x r1 a:y u", "0 1' 4' 5", ""},
		{"u a:x a a:x", "0 1' 2' 3'", ""},
		// Thinking stays with what it was about.
		{"u t c1 r1 a", "0 1' 4'", ""},
		{"u t a u", "0 1' 3", ""},
		{"u t l c1 r1 a", "0 1' 5'", ""},
		{"u t t a u", "0 1' 4", ""},
		{"u t u", "0 1' 2", ""},
		{"u t:x c1:y r1 u", "0 1' 2' 4", ""},
	} {
		entries := script(t, test.script)
		var cuts session.Cuts
		for _, e := range entries {
			cuts.Add(e)
		}
		if got := drawCuts(cuts.Points()); got != test.legal {
			t.Errorf("%s: cuts at %s, want %s", test.script, got, test.legal)
		}
		if cuts.Pending() != (test.pending != "") {
			t.Errorf("%s: pending %v", test.script, cuts.Pending())
		}
		if got := session.CutPoints(entries); !slices.Equal(got, cuts.Points()) {
			t.Errorf("%s: CutPoints %v, Cuts %v", test.script, got, cuts.Points())
		}
		for i := range entries {
			err := session.CheckCut(entries, entries[i].ID)
			if legal := slices.Contains(cuts.Legal(), i); legal != (err == nil) {
				t.Errorf("%s: CheckCut at %d: %v, legal %v", test.script, i, err, legal)
			}
		}
	}
	var none session.Cuts
	if none.Legal() != nil || none.Pending() || session.CutPoints(nil) != nil {
		t.Error("an empty conversation has cuts")
	}
	cuts := session.Cuts{}
	cuts.Add(script(t, "u")[0])
	cuts.Legal()[0] = 99
	if cuts.Legal()[0] != 0 {
		t.Error("a caller changed the cuts")
	}
}

func TestCheckCutSaysWhy(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		script string
		at     int
		reason string
	}{
		{"u c1 r1 a", 2, "it would separate tool call 1 from its result in entry 2r1"},
		{"u c1 l r1 a", 2, "it would separate tool call 1 from its result in entry 3r1"},
		{"u c1 u r1 a", 2, "it would separate tool call 1 from its result in entry 3r1"},
		{"u c1 l", 2, "tool call 1 still waits for its result"},
		{"u r9 a", 1, "a tool result cannot come first"},
		{"u c1 u", 2, "tool call 1 still waits for its result"},
		{"u c1,2 r2 a", 3, "tool call 1 still waits for its result"},
		{"u a:x a:x u", 2, "it continues the response of the entry before it"},
		{"u t a u", 2, "it continues the response of the entry before it"},
		{"u t l a u", 2, "response"},
		{"u c0 r0 u c0 r0", 5, "it would separate tool call 0 from its result in entry 5r0"},
	} {
		entries := script(t, test.script)
		err := session.CheckCut(entries, entries[test.at].ID)
		var cut *session.CutError
		if !errors.As(err, &cut) || cut.EntryID != entries[test.at].ID || !strings.Contains(cut.Reason, test.reason) || !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s at %d: %v, want %q", test.script, test.at, err, test.reason)
		}
	}
	if err := session.CheckCut(nil, "x"); err == nil || !strings.Contains(err.Error(), "not on the path") {
		t.Errorf("%v", err)
	}
}

func one(session.Entry) int { return 1 }

func TestPlanCompaction(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		script     string
		compaction bool // the first entry is the compaction in force
		keep       int
		first      string
	}{
		{"u a u a u a", false, 6, ""}, // all of it fits
		{"u a u a u a", false, 5, "2u"},
		{"u a u a u a", false, 2, "4u"},
		{"u a u a u a", false, 1, "4u"}, // not even the shortest end fits: that one
		{"u a u a u a", false, 0, "4u"},
		{"u c1 r1 c2 r2 u", false, 3, "5u"}, // between two turns, though a step more would fit
		{"u a u c1 r1 a", false, 4, "2u"},
		{"u a u c1 r1 a", false, 3, "5a"}, // the turn does not fit as a whole: it is split
		{"u c1 r1 c2 r2 c3 r3", false, 6, "3c2"},
		{"u c1 r1 c2 r2 c3 r3", false, 4, "5c3"},
		{"u c1 r1 c2 r2 c3 r3", false, 1, "5c3"},
		{"s u c1 r1 c2 r2 c3 r3", false, 6, "4c2"}, // system messages stay
		{"s u c1 r1 c2 r2 c3 r3", false, 5, "6c3"},
		{"u c1", false, 1, ""}, // no legal cut leaves anything out
		{"u a", false, 1, ""},
		{"s s u", false, 1, ""},
		{"u", false, 0, ""},
		{"u a u c1", false, 1, "2u"}, // the end cannot be cut: what is before it can
		{"k u a u", true, 3, "3u"},   // a summary alone is not worth a summary
		{"k u a", true, 1, ""},
		{"k u", true, 1, ""},
		{"", false, 0, ""},
	} {
		c := &session.Context{Entries: script(t, test.script)}
		if test.compaction {
			c.Compaction = c.Entries[0].ID
		}
		plan, err := c.PlanCompaction(test.keep, one)
		if test.first == "" {
			if !errors.Is(err, session.ErrNothingToCompact) {
				t.Errorf("%q, keep %d: %+v, %v; want ErrNothingToCompact", test.script, test.keep, plan, err)
			}
			continue
		}
		if err != nil || plan.FirstKept != test.first {
			t.Errorf("%q, keep %d: %+v, %v; want %q", test.script, test.keep, plan, err, test.first)
			continue
		}
		if plan.TokensBefore != len(c.Entries) || plan.TokensKept != len(plan.Kept) || plan.Over != max(0, plan.TokensKept-test.keep) ||
			len(plan.Summarise)+len(plan.Kept) != len(c.Entries) || !slices.Contains(entryIDs(plan.Kept), plan.FirstKept) {
			t.Errorf("%q: %+v", test.script, plan)
		}
	}
}

// What is planned can be done, whatever the session looks like: otherwise a
// program that plans and appends would fail for ever.
func TestPlansAreAccepted(t *testing.T) {
	t.Parallel()
	for n := range soak.N(8) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := wanderer{scribe: newScribe(t), rng: soak.Rand(t)}
			for range 6 {
				for range 20 {
					w.step()
				}
				for keep := range 12 {
					plan, err := w.PlanCompaction(session.PlanOptions{KeepTokens: keep, Count: one})
					if err != nil {
						continue
					}
					leaf := w.LeafID()
					if _, err = w.AppendCompaction("planned", plan.FirstKept, 1); err != nil {
						t.Fatalf("keep %d of %q: %v", keep, view(mustGet(w.GetContext())(t)), err)
					}
					got := mustGet(w.GetContext())(t)
					checkPairs(t, got)
					if diff := cmp.Diff(view(plan.Kept), view(withoutSummary(got))); diff != "" {
						t.Fatalf("kept (-planned +got):\n%s", diff)
					}
					if plan.TokensKept != len(got)-1 || plan.Over != max(0, len(got)-1-keep) {
						t.Fatalf("keep %d: planned %d tokens, %d over; there are %d", keep, plan.TokensKept, plan.Over, len(got)-1)
					}
					w.branch(leaf)
				}
			}
		})
	}
}

// withoutSummary returns the entries of a context without the compaction in force.
func withoutSummary(entries []session.Entry) []session.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e session.Entry) bool { return e.Compaction != nil })
}

// In a long turn a call nearly always waits, and a conversation that is too large
// must become smaller all the same.
func TestCompactionWhileACallWaits(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	s.call("c1")
	s.result("c1")
	waits := s.call("c2")
	plan := mustGet(s.PlanCompaction(session.PlanOptions{KeepTokens: 2, Count: one}))(t)
	if plan.FirstKept != waits {
		t.Errorf("cut before %q, want the call that waits", plan.FirstKept)
	}
	generic := session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: "sum", FirstKeptEntryID: waits}}
	noError(t, s.Append(generic))
	mustGet(s.Undo())(t)
	s.compact("sum", waits)
	s.result("c2")
	s.say("done")
	s.sees("summary: sum", "user: one", "assistant: call c2", "tool: c2 = out of c2", "assistant: done")
	s.again().sees("summary: sum", "user: one", "assistant: call c2", "tool: c2 = out of c2", "assistant: done")
	if problems := mustGet(s.Problems())(t); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

func TestNoPlanSaysThatACallWaits(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	s.call("c1")
	s.user("while it runs")
	_, err := s.PlanCompaction(session.PlanOptions{KeepTokens: 0, Count: one})
	if !errors.Is(err, session.ErrNothingToCompact) || !strings.Contains(err.Error(), "c1") {
		t.Errorf("%v, want ErrNothingToCompact that names the call", err)
	}
}

func TestPlanAfterALateResult(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	s.call("slow")
	s.user("while it runs")
	s.say("hm")
	s.result("slow")
	s.say("done")
	s.user("next")
	// In the context the result stands with its call, and a cut before "while it
	// runs" would look legal.
	for keep := range 7 {
		plan, err := s.PlanCompaction(session.PlanOptions{KeepTokens: keep, Count: one})
		if err != nil {
			t.Fatalf("keep %d: %v", keep, err)
		}
		if _, err := s.AppendCompaction("sum", plan.FirstKept, 1); err != nil {
			t.Errorf("keep %d: planned before %q: %v", keep, viewMessage(plan.Kept[0].Message), err)
		}
		mustGet(s.Undo())(t)
	}
}

func TestPlanAfterAMerge(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	u := s.user("one")
	s.user("side")
	pickA, pickB := s.say("pick a"), s.user("pick b")
	s.branch(u)
	s.say("two")
	mustGet(s.AppendEntry(session.Merge(pickB, "merged", pickA, pickB)))(t)
	s.user("three")
	s.sees("user: one", "assistant: two", "merge: merged", "assistant: pick a", "user: pick b", "user: three")
	for keep := range 6 {
		plan := mustGet(s.PlanCompaction(session.PlanOptions{KeepTokens: keep, Count: one}))(t)
		if _, err := s.AppendCompaction("sum", plan.FirstKept, 1); err != nil {
			t.Errorf("keep %d: %v", keep, err)
		}
		if diff := cmp.Diff(view(plan.Kept), view(withoutSummary(mustGet(s.GetContext())(t)))); diff != "" {
			t.Errorf("keep %d:\n%s", keep, diff)
		}
		mustGet(s.Undo())(t)
	}
}

func TestAppendCompactionRefuses(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	u := s.user("one")
	s.call("c1", "c2")
	refused := func(first, reason string) {
		t.Helper()
		leaf := s.LeafID()
		_, err := s.AppendCompaction("sum", first, 1)
		var cut *session.CutError
		if !errors.As(err, &cut) || !strings.Contains(cut.Reason, reason) {
			t.Errorf("compaction before %q: %v, want %q", first, err, reason)
		}
		if s.LeafID() != leaf {
			t.Error("something was appended")
		}
	}
	refused("", "waits for its result")
	r1 := s.result("c1")
	refused("", "waits for its result")
	refused(s.user("while c2 runs"), "waits for its result")
	r2 := s.result("c2")
	refused(r1, "separate tool call")
	refused(r2, "separate tool call")
	s.branch(u)
	other := s.say("another branch")
	s.branch(r2)
	refused(other, "not on the path")
	s.compact("sum", u)
	s.again().sees("summary: sum", "user: one", "assistant: call c1, call c2", "tool: c1 = out of c1", "tool: c2 = out of c2", "user: while c2 runs")
}

// meddler is a store whose logs let somebody in while they are read.
type meddler struct {
	store.Store
	meddle func() // called once
}

type meddledLog struct {
	store.Log
	store *meddler
}

func (m *meddler) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := m.Store.Open(ctx, name)
	return meddledLog{log, m}, err
}

func (l meddledLog) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	if meddle := l.store.meddle; meddle != nil {
		l.store.meddle = nil
		meddle()
	}
	return l.Log.Forward(ctx, from)
}

// The agent calls a tool between the moment when a compaction was found legal
// and the moment when it is written.
func TestCompactionWhenACallComesInBetween(t *testing.T) {
	t.Parallel()
	st := &meddler{Store: memory.New(nil)}
	made := scribe{closeWith(t, mustGet(session.Create(t.Context(), st, session.Header{ID: "s"}, nil))(t)), t}
	made.user("one")
	kept := made.user("two")
	s := scribe{closeWith(t, mustGet(session.Open(t.Context(), st, "s", nil))(t)), t}
	mustGet(s.MessageCount())(t) // the tree is in memory, the entries are not
	st.meddle = func() { s.call("c") }
	var cut *session.CutError
	if _, err := s.AppendCompaction("sum", "", 1); !errors.As(err, &cut) {
		t.Errorf("%v, want a CutError", err)
	}
	if st.meddle != nil {
		t.Fatal("nobody meddled")
	}
	s.compact("sum", kept) // it keeps the call
	s.result("c")
	s.sees("summary: sum", "user: two", "assistant: call c", "tool: c = out of c")
	checkNoSplit(t, mustGet(s.Forward(""))(t))
}

// A compaction that is decided in the background while the agent goes on can
// never cut between a call and its result, even if it comes to stand there.
func TestBackgroundCompactionNeverSplitsAPair(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("begin")
	var agent, compactor sync.WaitGroup
	done := make(chan struct{})
	agent.Go(func() {
		for i := range 150 {
			s.user(fmt.Sprint("question ", i))
			s.call(fmt.Sprint("c", i), fmt.Sprint("d", i))
			s.result(fmt.Sprint("d", i))
			s.result(fmt.Sprint("c", i))
			s.say("answer")
		}
	})
	compacted := 0
	compactor.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			plan, err := s.PlanCompaction(session.PlanOptions{KeepTokens: 5, Count: one})
			if err != nil {
				continue
			}
			if _, err := s.AppendCompaction("sum", plan.FirstKept, 1); err == nil {
				compacted++
			}
		}
	})
	agent.Wait()
	close(done)
	compactor.Wait()
	if compacted == 0 {
		t.Log("the compactor never had its turn")
	}
	path := mustGet(s.Forward(""))(t)
	checkNoSplit(t, path)
	for _, e := range path {
		if e.Compaction != nil {
			c := s.at(e.ID)
			checkPairs(t, c.Entries)
			for _, p := range c.Problems {
				if p.Kind != session.ProblemInterrupted { // its result comes after the compaction
					t.Fatalf("problem %v in %q", p, view(c.Entries))
				}
			}
		}
	}
	if kinds := s.problemKinds(); kinds != nil {
		t.Errorf("problems %q", kinds)
	}
}

// checkNoSplit fails if a compaction cuts between a call and its result. It may
// stand between them.
func checkNoSplit(t testing.TB, path []session.Entry) {
	t.Helper()
	at := make(map[string]int)
	for i, e := range path {
		at[e.ID] = i
	}
	made := make(map[string]int)
	for i, e := range path {
		if e.Message == nil {
			continue
		}
		for _, c := range e.Message.Content {
			switch {
			case c.ToolUse != nil:
				made[c.ToolUse.ID] = i
			case c.ToolResult != nil:
				for _, k := range path {
					if k.Compaction == nil {
						continue
					}
					call, cut := made[c.ToolResult.ToolUseID], at[k.Compaction.FirstKeptEntryID]
					if call < cut && cut <= i {
						t.Errorf("compaction %s splits call %s", k.ID, c.ToolResult.ToolUseID)
					}
				}
			}
		}
	}
}
