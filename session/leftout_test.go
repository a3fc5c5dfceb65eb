package session_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

func (s scribe) leftOut() map[session.LeftOutReason]int {
	counts := make(map[session.LeftOutReason]int)
	for _, l := range mustGet(s.Context(session.ContextOptions{LeftOut: true}))(s.t).LeftOut {
		counts[l.Reason] += max(l.Count, 1)
	}
	return counts
}

func TestLeftOutCountsWhatTheSummaryStandsFor(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	s.call("a") // never answered: what is made up for it is nobody's entry
	s.user("two")
	s.say("yes")
	three := s.user("three")
	s.say("well")
	four := s.user("four")
	check := func(want map[session.LeftOutReason]int) {
		t.Helper()
		got := s.leftOut()
		delete(got, session.LeftOutReason(session.ProblemInterrupted))
		for reason, n := range want {
			if got[reason] != n {
				t.Errorf("%q: %d entries, want %d", reason, got[reason], n)
			}
			delete(got, reason)
		}
		if len(got) > 0 {
			t.Errorf("also left out: %v", got)
		}
	}
	planned := mustGet(s.PlanCompaction(session.PlanOptions{FirstKept: three, Count: one}))(t).StandsFor
	s.compact("before three", three)
	check(map[session.LeftOutReason]int{session.LeftOutSummarised: 4})
	if planned != 4 {
		t.Errorf("planned for %d entries", planned)
	}
	// The next summary stands for what the first did, and for more.
	planned = mustGet(s.PlanCompaction(session.PlanOptions{FirstKept: four, Count: one}))(t).StandsFor
	s.compact("before four", four)
	check(map[session.LeftOutReason]int{session.LeftOutSummarised: 6, session.LeftOutSuperseded: 1})
	if planned != 6 {
		t.Errorf("planned for %d entries", planned)
	}
	mustGet(s.Undo())(t)
	check(map[session.LeftOutReason]int{session.LeftOutSummarised: 4, session.LeftOutTakenBack: 1, session.LeftOutNeverSent: 1})
	mustGet(s.Undo())(t)
	check(map[session.LeftOutReason]int{session.LeftOutTakenBack: 2, session.LeftOutNeverSent: 2})
}

// Every entry of the path is sent, counted once, or named; and what a plan says that
// the summary stands for is what the context says once it is written.
func TestLeftOutAccountsForThePath(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(rt *rapid.T) {
		st := mustGet(session.Create(t.Context(), memory.New(nil), session.Header{}, nil))(t)
		defer st.Close()
		b := &biller{scribe: scribe{st, t}, edited: make(map[string]bool)}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			b.step(rt)
		}
		if plan, err := b.PlanCompaction(session.PlanOptions{KeepTokens: rapid.IntRange(0, 8).Draw(rt, "keep"), Count: one}); err == nil {
			b.compact("all of it", plan.FirstKept)
			if got := b.leftOut()[session.LeftOutSummarised]; got != plan.StandsFor {
				rt.Fatalf("the summary stands for %d entries, planned %d", got, plan.StandsFor)
			}
		}
		c := mustGet(b.Context(session.ContextOptions{LeftOut: true}))(t)
		sent := entryIDs(c.Entries)
		var left []string // not sent
		for _, id := range entryIDs(mustGet(b.Forward(""))(t)) {
			if !slices.Contains(sent, id) {
				left = append(left, id)
			}
		}
		counted, named := 0, make(map[string]bool)
		for _, l := range c.LeftOut {
			counted += l.Count
			if l.Count == 0 && slices.Contains(left, l.EntryID) {
				named[l.EntryID] = true
			}
		}
		if counted+len(named) != len(left) {
			rt.Fatalf("%d entries of the path are not sent; %d are counted and %d named", len(left), counted, len(named))
		}
	})
}
