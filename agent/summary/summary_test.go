package summary_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/window"
)

// story writes a session.
type story struct {
	*session.Session
	t *testing.T
	n int
}

func newStory(t *testing.T) *story {
	t.Helper()
	s, err := session.Create(t.Context(), memory.New(nil), session.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &story{Session: s, t: t}
}

func (s *story) add(role session.MessageRole, content ...session.Content) string {
	s.t.Helper()
	id, err := s.AppendMessage(role, content)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *story) user(text string) string  { return s.add(session.RoleUser, session.Text(text)) }
func (s *story) reply(text string) string { return s.add(session.RoleAssistant, session.Text(text)) }

// call makes a call and its result.
func (s *story) call(tool, path, result string) {
	s.n++
	id := fmt.Sprintf("call_%d", s.n)
	s.add(session.RoleAssistant, session.ToolUse(id, tool, map[string]any{"path": path}))
	s.add(session.RoleTool, session.ToolResult(id, result, false))
}

// plan plans a compaction that keeps a number of tokens.
func (s *story) plan(keep int) *session.CompactionPlan {
	s.t.Helper()
	counter := window.Estimate("", "")
	plan, err := s.PlanCompaction(keep, func(e session.Entry) int { return window.CountEntry(counter, "", &e).Tokens })
	if err != nil {
		s.t.Fatal(err)
	}
	return plan
}

// writes is a model that answers with a text.
func writes(text string) provider.Model {
	return provider.Func{About: provider.Info{Provider: "test", Model: "m", Window: 100_000}, Answer: func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
		return &session.MessageEntry{Content: []session.Content{session.Text(text)}, Usage: &session.Usage{Input: 10, Output: 5}}, nil
	}}
}

func TestOfflineModelWritesACompaction(t *testing.T) {
	s := newStory(t)
	s.user("Fix the parser, please.\nIt loses tokens.")
	s.call("read", "parser.go", strings.Repeat("line of code\n", 200))
	s.call("edit", "parser.go", "done")
	s.reply("I have fixed it." + strings.Repeat(" Words.", 300))
	last := s.user("Now the lexer.")
	plan := s.plan(20)
	if plan.FirstKept != last {
		t.Fatalf("kept from %s", plan.FirstKept)
	}
	sum, err := summary.Compaction(t.Context(), &offline.Model{}, plan, summary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Fix the parser, please.", "I have fixed it.", "- parser.go"} {
		if !strings.Contains(sum.Text, want) {
			t.Errorf("the summary lacks %q:\n%s", want, sum.Text)
		}
	}
	id, err := sum.Append(s.Session, plan)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Context(session.ContextOptions{})
	if err != nil || c.Compaction != id || len(c.Entries) != 2 {
		t.Fatalf("context of %d entries with compaction %q, want %q: %v", len(c.Entries), c.Compaction, id, err)
	}
	if spent, err := s.Spent(); err != nil || spent.Reported == 0 {
		t.Errorf("the cost is not in the log: %+v, %v", spent, err)
	}
}

func TestTitle(t *testing.T) {
	s := newStory(t)
	s.user("Warum ist der Himmel blau?")
	s.reply("Wegen der Streuung.")
	path, err := s.PathTo("")
	if err != nil {
		t.Fatal(err)
	}
	got, err := summary.Title(t.Context(), &offline.Model{}, path, summary.Options{})
	if err != nil || got.Text != "Warum ist der Himmel blau?" {
		t.Errorf("title %q, %v", got.Text, err)
	}
	_, err = summary.Title(t.Context(), writes("no\n"), nil, summary.Options{})
	if !errors.Is(err, summary.ErrNothing) {
		t.Errorf("a title of nothing: %v", err)
	}
}
