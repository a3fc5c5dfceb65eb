package session_test

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
)

// writeStory appends all kinds of entries at random, never leaving a call without
// its result.
func writeStory(s scribe, rng *rand.Rand, steps int) {
	s.message(session.RoleSystem, session.Text("rules"))
	var messages []string
	some := func() string { return messages[rng.IntN(len(messages))] }
	for i := range steps {
		n := strconv.Itoa(i)
		if len(messages) == 0 {
			messages = append(messages, s.user("begin"))
		}
		switch rng.IntN(12) {
		case 0, 1:
			messages = append(messages, s.user("question "+n))
		case 2:
			messages = append(messages, s.say("answer "+n))
		case 3, 4, 5:
			messages = append(messages, s.call("a"+n, "b"+n))
			s.result("b" + n)
			messages = append(messages, s.result("a"+n))
		case 6:
			messages = append(messages, s.message(session.RoleSystem, session.Text("more rules "+n)))
		case 7:
			_, _ = s.AppendEntry(session.ContextEdit(some(), session.Text("edited "+n)))
		case 8:
			_, _ = s.AppendEntry(session.ContextEdit(some()))
		case 9:
			_, _ = s.AppendCompaction("summary "+n, some(), 1) // many are not legal
		case 10:
			_, _ = s.Undo()
		case 11:
			_, _ = s.SetLabel(some(), "label "+n)
		}
	}
}

// A plan says before what AppendCompaction leaves afterwards, and refuses what it
// refuses: at every entry of a path.
func TestPlanCompactionAtSaysWhatWillBeSent(t *testing.T) {
	one := func(session.Entry) int { return 1 }
	legal := 0
	rng := soak.Rand(t)
	for story := range 10 {
		s := newScribe(t)
		writeStory(s, rng, 40)
		path, err := s.Forward("")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range path {
			plan, planErr := s.PlanCompaction(session.PlanOptions{FirstKept: e.ID, Count: one})
			id, err := s.AppendCompaction("the summary", e.ID, 1)
			if (planErr == nil) != (err == nil) {
				t.Fatalf("story %d, cut before %s: planned %v, appended %v", story, e.ID, planErr, err)
			}
			if err != nil {
				var cut *session.CutError
				if !errors.As(planErr, &cut) {
					t.Fatalf("story %d: error is %v, want a CutError", story, planErr)
				}
				continue
			}
			legal++
			c, err := s.Context(session.ContextOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var want []session.Entry
			for _, e := range c.Entries {
				if e.ID != id {
					want = append(want, e)
				}
			}
			if diff := cmp.Diff(view(want), view(plan.Kept)); diff != "" || plan.TokensKept != len(want) {
				t.Fatalf("story %d, cut before %s: %d tokens kept of %d; (-sent +planned):\n%s", story, e.ID, plan.TokensKept, len(want), diff)
			}
			if _, err := s.AppendEntry(session.Revert(id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if legal < 100 {
		t.Errorf("only %d cuts were legal", legal)
	}
}
