package keyed_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
)

// work is a turn of so many steps.
func work(m manager, steps int) {
	m.talk("u1")
	for i := range steps {
		m.talk(fmt.Sprintf("+%d", i+1), fmt.Sprintf("=%d", i+1))
	}
}

// TestOneLongTurnIsTruncated: an agent works for many steps on one prompt. The
// prompt stays with the last of them.
func TestOneLongTurnIsTruncated(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m manager) {
		m.talk("s1")
		work(m, 100)
		cut, err := m.Truncate(key, 4)
		if err != nil || cut != (keyed.Cut{Kept: 6, Dropped: 196}) {
			t.Errorf("truncated to %+v, %v", cut, err)
		}
		m.sees("s1", "u1", "+99", "=99", "+100", "=100")
		for _, keep := range []int{3, 4, 5, 6} { // what stays is no place to cut: more would come back
			if cut, err := m.Truncate(key, keep); err != nil || cut != (keyed.Cut{Kept: 6}) {
				t.Errorf("there is nothing to cut, and %+v, %v", cut, err)
			}
		}
		if cut, err := m.Truncate(key, 2); err != nil || cut != (keyed.Cut{Kept: 4, Dropped: 2}) {
			t.Errorf("truncated again to %+v, %v", cut, err)
		}
		m.sees("s1", "u1", "+100", "=100")
		m.talk("a1", "u2")
		m.SetSummary(key, "sum") // the cut stays where it is
		m.save(key)
		m.sees("s1", "u1", "+100", "=100", "a1", "u2")
		m.summaryIs("sum")
		if cut, err := m.Truncate(key, 0); err != nil || cut != (keyed.Cut{Dropped: 6}) {
			t.Errorf("cleared: %+v, %v", cut, err)
		}
		m.sees()
	})
}

// TestOneLongTurnIsSummarised, once: the next message is no reason to do it again.
func TestOneLongTurnIsSummarised(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m manager) {
		work(m, 100)
		calls, old := 0, 0
		summarize := func() keyed.Cut {
			cut, err := m.Summarize(key, func(_ string, messages []keyed.Message) (string, error) {
				calls, old = calls+1, len(messages)
				return "98 steps", nil
			})
			if err != nil {
				t.Error(err)
			}
			return cut
		}
		if cut := summarize(); cut != (keyed.Cut{Kept: 5, Dropped: 196}) || old != 197 {
			t.Errorf("%+v, of %d messages", cut, old)
		}
		m.sees("u1", "+99", "=99", "+100", "=100")
		m.summaryIs("98 steps")
		m.talk("+101", "=101")
		if cut := summarize(); calls != 1 || cut != (keyed.Cut{Kept: 7}) {
			t.Errorf("%d calls, %+v", calls, cut)
		}
	})
}

// TestClearedPromptsDoNotComeBack: what was cleared stays out of the context, also
// when a later cut begins within a turn that has no prompt.
func TestClearedPromptsDoNotComeBack(t *testing.T) {
	t.Parallel()
	for name, clear := range map[string]func(m manager){
		"truncated": func(m manager) { m.TruncateHistory(key, 0) },
		"replaced":  func(m manager) { m.SetHistory(key, messages("a1")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			m := inDir(t, dir)
			m.talk("s1", "u1", "a1", "s2", "u2")
			clear(m)
			m.talk("a3", "+x", "=x", "+y", "=y")
			m.TruncateHistory(key, 2)
			for _, m := range []manager{m, inDir(t, dir)} {
				m.sees("+y", "=y")
			}
		})
	}
}

// TestContextOfAKey: the prompt of the caller, system messages, the summary, the
// prompt of the turn, the rest; and the same is the session's own context.
func TestContextOfAKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := inDir(t, dir)
	m.talk("s1", "u0", "a0", "s2")
	work(m, 10)
	m.SetSummary(key, "nine steps")
	m.TruncateHistory(key, 2)
	got, err := m.BuildContext(key, "prompt", "now")
	if err != nil {
		t.Fatal(err)
	}
	sameText(t, "context", brief(got), strings.Fields("prompt s1 s2 Previous conversation summary: nine steps u1 +10 =10 now"))
	c, err := logOf(t, dir).Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Entries) != len(got)-2 || c.Entries[2].Compaction == nil {
		t.Errorf("the session's context has %d entries, the third of which is %+v", len(c.Entries), c.Entries[2])
	}
}

// TestLateResultOfAnotherProcess: a result that comes when its call has been
// cleared is in no context.
func TestLateResultOfAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, other := inDir(t, dir), inDir(t, dir)
	m.talk("u1", "+x")
	other.sees("u1", "+x")
	m.TruncateHistory(key, 0)
	other.talk("=x")
	m.talk("u2")
	got, err := m.BuildContext(key, "prompt", "now")
	if err != nil {
		t.Fatal(err)
	}
	sameText(t, "context", brief(got), []string{"prompt", "u2", "now"})
	m.hasAll("u1", "+x", "=x", "u2") // and nothing that nobody said
	if problems, err := logOf(t, dir).Problems(); err != nil {
		t.Errorf("problems: %v, %v", problems, err)
	}
}

// TestSummaryBeforeAResult: a history that begins with a tool result, whose call
// nobody ever saw, can have a summary like any other.
func TestSummaryBeforeAResult(t *testing.T) {
	t.Parallel()
	for _, talk := range []string{"=x u1 a1", "=x", "s1 =x u1", "=x +y", "=x s2 u1"} {
		t.Run(talk, func(t *testing.T) {
			dir := t.TempDir()
			m := inDir(t, dir)
			m.talk(strings.Fields(talk)...)
			m.SetSummary(key, "one")
			m.save(key)
			m.SetSummary(key, "two")
			m.save(key)
			for _, m := range []manager{m, inDir(t, dir)} {
				m.sees(strings.Fields(talk)...)
				m.summaryIs("two")
			}
		})
	}
}
