package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// delegating is a model that hands what follows "do: " to tasks, and says what comes back. In a
// task it calls the tool work, once.
func delegating(r *provider.Request) (*session.MessageEntry, error) {
	m := &session.MessageEntry{StopReason: provider.StopEndTurn, ResponseID: session.NewID(), Usage: &session.Usage{Input: 10, Output: 1}}
	last := r.Entries[len(r.Entries)-1].Message
	text := session.TextOf(last.Content)
	if rest, ok := strings.CutPrefix(text, "do: "); ok {
		m.StopReason = provider.StopToolUse
		for i, what := range strings.Split(rest, " and ") {
			m.Content = append(m.Content, session.ToolUse(fmt.Sprint("t", i), "task", map[string]any{"description": what, "prompt": "please " + what}))
		}
		return m, nil
	}
	if strings.HasPrefix(text, "please ") && slices.ContainsFunc(r.Tools, func(t provider.Tool) bool { return t.Name == "work" }) {
		m.StopReason, m.Content = provider.StopToolUse, []session.Content{session.ToolUse("w", "work", map[string]any{})}
		return m, nil
	}
	var heard []string
	for i := len(r.Entries) - 1; i >= 0 && r.Entries[i].Message.Role == session.RoleTool; i-- {
		heard = append(heard, r.Entries[i].Message.Content[0].ToolResult.Content)
	}
	slices.Sort(heard)
	m.Content = []session.Content{session.Text(strings.TrimSpace("reports: " + strings.Join(heard, ", ")))}
	return m, nil
}

func taskTool(t *testing.T, o agent.TaskOptions) agent.Tool {
	t.Helper()
	tool, err := agent.TaskTool(o)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// others returns the sessions of a store except one.
func others(t *testing.T, st store.Store, but string) (all []*session.Session) {
	t.Helper()
	for name, err := range st.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if name.Name != but {
			all = append(all, open(t, st, name.Name))
		}
	}
	return all
}

// TestTasks: tasks run in sessions of their own, cannot start tasks, ask through the agent,
// and what they cost counts once.
func TestTasks(t *testing.T) {
	t.Parallel()
	s, st := shared(t)
	work := during(func(context.Context) error { return nil })
	work.Ask = agent.AskAlways
	var mu sync.Mutex
	var asked []string
	a := startIn(t, s, agent.Options{
		Model: answers(delegating), Tools: []agent.Tool{work, taskTool(t, agent.TaskOptions{})},
		Approve: func(_ context.Context, call agent.Call) (agent.Decision, error) {
			if !mu.TryLock() {
				t.Error("two calls are asked about at once")
				return agent.Deny, nil
			}
			defer mu.Unlock()
			asked = append(asked, call.Reason)
			return agent.Allow, nil
		},
	})
	out := send(t, a, "do: a and b and c")
	if got := session.TextOf(out.Message.Content); got != "reports: reports: done, reports: done, reports: done" {
		t.Errorf("the answer is %q", got)
	}
	if slices.Sort(asked); !slices.Equal(asked, []string{"task a", "task b", "task c"}) {
		t.Errorf("asked about %q", asked)
	}
	if total := out.Usage.Context(); total != 8*11 {
		t.Errorf("the turn cost %d tokens", total)
	}
	sum := spent(t, s)
	subs := others(t, st, "shared")
	for _, sub := range subs {
		sum += spent(t, sub)
		check(t, sub)
		if h := sub.Header(); h.ParentSession != "shared" || h.Relation != session.RelationSubagent {
			t.Errorf("the session of a task has the header %+v", h)
		}
		if lines := said(t, sub); len(lines) != 4 {
			t.Errorf("a task is %q", lines)
		}
	}
	if len(subs) != 3 || sum != 8*11 {
		t.Errorf("%d tasks; the logs have %d tokens", len(subs), sum)
	}
	check(t, s)
}

// TestTaskGoesOn: a task that was under way when the program died is not begun again.
func TestTaskGoesOn(t *testing.T) {
	t.Parallel()
	say := func(s *session.Session, role string, content ...session.Content) string {
		t.Helper()
		id, err := s.AppendMessage(session.MessageRole(role), content)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for name, isDone := range map[string]bool{"half done": false, "done": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, st := shared(t)
			say(s, session.RoleUser, session.Text("do: a"))
			entry := say(s, session.RoleAssistant, session.ToolUse("t0", "task", map[string]any{"description": "a", "prompt": "please a"}))
			if err := agent.RecordCalls(s, entry); err != nil {
				t.Fatal(err)
			}
			if _, err := s.AppendCustomEntry(session.CustomCalls, map[string]any{"state": "running", "calls": []any{"t0"}}); err != nil {
				t.Fatal(err)
			}
			sub, err := session.OpenSubagent(t.Context(), s, entry, "t0")
			if err != nil {
				t.Fatal(err)
			}
			say(sub, session.RoleUser, session.Text("please a"))
			if err := agent.RecordCalls(sub, say(sub, session.RoleAssistant, session.ToolUse("w", "work", map[string]any{}))); err != nil {
				t.Fatal(err)
			}
			if isDone {
				say(sub, session.RoleTool, session.ToolResult("w", "done", false))
				say(sub, session.RoleAssistant, session.Text("reports: done"))
			}
			if err := sub.Close(); err != nil {
				t.Fatal(err)
			}
			ran := 0
			a := startIn(t, s, agent.Options{Model: answers(delegating), Tools: []agent.Tool{
				during(func(context.Context) error { ran++; return nil }), taskTool(t, agent.TaskOptions{}),
			}})
			out, err := a.Resume(t.Context())
			if err != nil || session.TextOf(out.Message.Content) != "reports: reports: done" {
				t.Errorf("%+v, %v", out, err)
			}
			if subs := others(t, st, "shared"); len(subs) != 1 || len(said(t, subs[0])) != 4 || (ran == 0) != isDone {
				t.Errorf("%d tasks; the tool ran %d times", len(subs), ran)
			}
		})
	}
}

// TestTasksWithinLimits: a task ends with the budget of the turn or when the turn is
// cancelled, and what nobody decides is denied.
func TestTasksWithinLimits(t *testing.T) {
	t.Parallel()
	work := during(func(context.Context) error { return nil })
	a := start(t, agent.Options{Model: answers(delegating), Tools: []agent.Tool{work, taskTool(t, agent.TaskOptions{})}, Budget: agent.Budget{Tokens: 20}})
	if out := send(t, a, "do: a"); out.Stop != agent.StopBudget || out.Usage.Context() != 22 || !strings.Contains(said(t, a.Session())[2], "the task is not done: the turn has used 22 of 20 tokens") {
		t.Errorf("%+v\n%q", out, said(t, a.Session()))
	}
	work.Ask = agent.AskAlways
	a = start(t, agent.Options{Model: answers(delegating), Tools: []agent.Tool{work, taskTool(t, agent.TaskOptions{MaxSteps: 1})}})
	if send(t, a, "do: a"); !strings.Contains(said(t, a.Session())[2], "the model was asked 1 times") {
		t.Errorf("%q", said(t, a.Session()))
	}
	a = start(t, agent.Options{Model: answers(delegating), Tools: []agent.Tool{work, taskTool(t, agent.TaskOptions{})}})
	if send(t, a, "do: a"); !strings.Contains(said(t, a.Session())[2], "a task cannot wait") {
		t.Errorf("%q", said(t, a.Session()))
	}
	ctx, cancel := context.WithCancel(t.Context())
	stuck := during(func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	a = start(t, agent.Options{Model: answers(delegating), Tools: []agent.Tool{stuck, taskTool(t, agent.TaskOptions{})}})
	if _, err := a.Send(ctx, session.Text("do: a")); !errors.Is(err, context.Canceled) {
		t.Errorf("the turn ended with %v", err)
	}
	if _, err := taskTool(t, agent.TaskOptions{}).Run(t.Context(), agent.Call{Input: []byte(`{"description":"a","prompt":"b"}`)}); err == nil {
		t.Error("a task was started by no agent")
	}
}

// An agent that hands work to others.
func ExampleTaskTool() {
	ctx := context.Background()
	s, err := session.Create(ctx, memory.New(nil), session.Header{}, nil)
	if err != nil {
		panic(err)
	}
	defer s.Close()
	task, err := agent.TaskTool(agent.TaskOptions{System: "Look, and change nothing."})
	if err != nil {
		panic(err)
	}
	a, err := agent.New(s, agent.Options{Model: answers(delegating), Tools: []agent.Tool{task}})
	if err != nil {
		panic(err)
	}
	defer a.Close()
	out, err := a.Send(ctx, session.Text("do: read the tests and read the docs"))
	if err != nil {
		panic(err)
	}
	fmt.Println(session.TextOf(out.Message.Content))
	// Output: reports: reports:, reports:
}
