package agent_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// answers returns a model that calls a function for each request.
func answers(answer func(r *provider.Request) (*session.MessageEntry, error)) provider.Model {
	return provider.Func{
		About: provider.Info{Provider: "p", Model: "m"},
		Answer: func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
			return answer(r)
		},
	}
}

// open opens a session once more, as another program would.
func open(t *testing.T, st store.Store, id string) *session.Session {
	t.Helper()
	s, err := session.Open(t.Context(), st, id, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// shared returns a session in a store that others can open it in, by the id "shared".
func shared(t *testing.T) (*session.Session, store.Store) {
	t.Helper()
	st := newStore(t)
	s, err := session.Create(t.Context(), st, session.Header{ID: "shared"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, st
}

func TestAnswerThatBrokeOffIsResumed(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{Model: broken(5), RetryWait: 1})
	out, err := a.Send(t.Context(), session.Text("hello"))
	if !errors.Is(err, provider.ErrBroken) || out.Stop != provider.StopFailed {
		t.Fatalf("%+v, %v", out, err)
	}
	if lines := said(t, a.Session()); !slices.Equal(lines, []string{"user: hello", "assistant: half"}) {
		t.Errorf("the conversation is %q", lines)
	}
	if unfinished, err := a.Unfinished(); err != nil || !unfinished {
		t.Errorf("half an answer is no answer, but: %v, %v", unfinished, err)
	}
	if out, err := a.Resume(t.Context()); err != nil || out.Steps != 1 {
		t.Errorf("resume: %+v, %v", out, err)
	}
	if lines := said(t, a.Session()); !slices.Equal(lines, []string{"user: hello", "assistant: whole"}) {
		t.Errorf("after Resume the conversation is %q", lines)
	}
	check(t, a.Session())
}

func TestCancelledAnswerIsNotResumed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	a := start(t, agent.Options{Model: provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(ctx context.Context, _ *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
		_ = tell("half")
		cancel()
		return nil, ctx.Err()
	}}})
	if _, err := a.Send(ctx, session.Text("hello")); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if out, err := a.Resume(t.Context()); err != nil || out.Steps != 0 {
		t.Errorf("somebody had enough of the answer, but: %+v, %v", out, err)
	}
}

// TestModelThatSaysNothing: some models answer the results of their calls with nothing.
// That is an answer.
func TestModelThatSaysNothing(t *testing.T) {
	t.Parallel()
	for _, stop := range []string{provider.StopEndTurn, provider.StopPause} {
		asked := 0
		a := start(t, agent.Options{Model: answers(func(*provider.Request) (*session.MessageEntry, error) {
			asked++
			return &session.MessageEntry{StopReason: stop, Usage: &session.Usage{Input: 7, Output: 1}}, nil
		})})
		out := send(t, a, "hello")
		if out.Steps != 1 || asked != 1 || out.Usage.Input != 7 {
			t.Errorf("%s: asked %d times: %+v", stop, asked, out)
		}
		if unfinished, err := a.Unfinished(); err != nil || unfinished {
			t.Errorf("%s: the model had nothing to add, but: %v, %v", stop, unfinished, err)
		}
		if spent, err := session.SpentIn(a.Session()); err != nil || spent.Tokens() != 8 {
			t.Errorf("%s: spent %+v, %v", stop, spent, err)
		}
		send(t, a, "still there?")
		check(t, a.Session())
	}
}

func TestModelThatPausesForEver(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{MaxSteps: 5, Model: answers(func(*provider.Request) (*session.MessageEntry, error) {
		return &session.MessageEntry{StopReason: provider.StopPause, Content: []session.Content{session.Text("wait")}}, nil
	})})
	if out := send(t, a, "hello"); out.Steps != 5 || out.Stop != agent.StopMaxSteps {
		t.Errorf("%+v", out)
	}
}

// TestPromptAfterAnotherProgram: two programs have one session open and speak in turns. Each
// goes on from what the other left, so that nothing is stranded on a branch.
func TestPromptAfterAnotherProgram(t *testing.T) {
	t.Parallel()
	s, st := shared(t)
	a := startIn(t, s, agent.Options{})
	b := startIn(t, open(t, st, "shared"), agent.Options{})
	send(t, a, "one")
	send(t, b, "two")
	send(t, a, "three")
	if lines := said(t, s); len(lines) != 6 || !strings.Contains(lines[2], "two") {
		t.Errorf("the conversation is %q", lines)
	}
	if leaves, err := s.Leaves(); err != nil || len(leaves) != 1 {
		t.Errorf("branches: %v, %v", leaves, err)
	}
}

// TestPromptStaysOnItsBranch: another program works on another branch. What was said here
// stays in the conversation.
func TestPromptStaysOnItsBranch(t *testing.T) {
	t.Parallel()
	s, st := shared(t)
	a := startIn(t, s, agent.Options{})
	send(t, a, "the plan")
	there := s.LeafID()
	b := startIn(t, open(t, st, "shared"), agent.Options{})
	send(t, a, "to the left")
	if err := b.Branch(t.Context(), there, false); err != nil {
		t.Fatal(err)
	}
	send(t, b, "to the right")
	send(t, a, "further")
	if lines := said(t, s); len(lines) != 6 || !strings.Contains(lines[2], "left") {
		t.Errorf("the conversation is %q", lines)
	}
}

// TestBranchIntoAToolExchange: the conversation goes back to a call that has run. It does not
// run again.
func TestBranchIntoAToolExchange(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"send", "resume"} {
		ran := 0
		one := echo("one")
		one.Run = func(context.Context, agent.Call) (agent.Result, error) {
			ran++
			return agent.Result{Text: "done"}, nil
		}
		a := start(t, agent.Options{Tools: []agent.Tool{one}})
		send(t, a, `call one {"text":"1"}`)
		c, err := a.Session().Context(session.ContextOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Branch(t.Context(), c.Entries[1].ID, false); err != nil {
			t.Fatal(err)
		}
		if next == "send" {
			send(t, a, "never mind")
		} else if _, err := a.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ran != 1 {
			t.Errorf("%s: the call ran %d times", next, ran)
		}
		if unfinished, err := a.Unfinished(); err != nil || unfinished {
			t.Errorf("%s: unfinished: %v, %v", next, unfinished, err)
		}
		check(t, a.Session())
	}
}

// TestSettingsSurviveAFailedAppend: the disk is full when a turn begins. When it is not any
// more, the log says which model answers.
func TestSettingsSurviveAFailedAppend(t *testing.T) {
	t.Parallel()
	full := false
	faulty := &vfstest.Faulty{FS: vfstest.NewMemory(), Before: func(op vfstest.Op) error {
		if full && op.Kind == vfstest.OpWrite {
			return syscall.ENOSPC
		}
		return nil
	}}
	st, err := file.Open("/store", &file.Options{FS: faulty})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	s, err := session.Create(t.Context(), st, session.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	a := startIn(t, s, agent.Options{Thinking: "low", System: "be brief"})
	full = true
	if _, err := a.Send(t.Context(), session.Text("hello")); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is full: %v", err)
	}
	full = false
	send(t, a, "hello")
	changes := 0
	for e, err := range s.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if e.ModelChange != nil || e.ThinkingLevel != nil {
			changes++
		}
	}
	if lines := said(t, s); changes != 2 || len(lines) != 3 {
		t.Errorf("%d changes are in the log, want 2; the conversation is %q", changes, lines)
	}
}

// TestModelWithAnotherName: a provider answers with the exact name of its model. Whoever opens
// the session again has not changed the model.
func TestModelWithAnotherName(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	model := answers(func(*provider.Request) (*session.MessageEntry, error) {
		return &session.MessageEntry{Provider: "p", Model: "m-2026-01-01", Content: []session.Content{session.Text("ok")}}, nil
	})
	for range 3 {
		a := startIn(t, s, agent.Options{Model: model})
		send(t, a, "hello")
		_ = a.Close()
	}
	changes := 0
	for e, err := range s.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if e.ModelChange != nil {
			changes++
		}
	}
	if changes != 1 {
		t.Errorf("%d changes of the model are in the log, want 1", changes)
	}
}

// TestRetryBeforeTheCompaction: the last turn began in the part that was compacted.
func TestRetryBeforeTheCompaction(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	a := startIn(t, s, agent.Options{})
	for i := range 3 {
		send(t, a, fmt.Sprint("prompt ", i))
	}
	if _, err := s.AppendCompaction("what happened", "", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lines := said(t, s); len(lines) != 6 || lines[4] != "user: prompt 2" {
		t.Errorf("the conversation is %q", lines)
	}
	if _, err := start(t, agent.Options{}).Retry(t.Context()); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("there is nothing to answer again: %v", err)
	}
}

// TestHooksThatPanic: a program's own functions may be wrong. What the model said is in the
// log all the same, and the agent goes on.
func TestHooksThatPanic(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	odd := echo("odd")
	odd.Ask = func(agent.Call) (bool, string) { panic("oh") }
	odd.Run = func(context.Context, agent.Call) (agent.Result, error) { panic("nobody allowed it") }
	a := startIn(t, s, agent.Options{Tools: []agent.Tool{odd}})
	out := send(t, a, `call odd {}`)
	if out.Stop != agent.StopApproval || len(out.Waiting) != 1 || !strings.Contains(out.Waiting[0].Reason, "panic") {
		t.Fatalf("a call about which nobody can tell whether it must be approved: %+v", out)
	}
	b := startIn(t, s, agent.Options{Tools: []agent.Tool{odd}, Approve: func(context.Context, agent.Call) (agent.Decision, error) { panic("oh") }})
	if _, err := b.Resume(t.Context()); err == nil || !strings.Contains(err.Error(), "panic") {
		t.Errorf("a hook that panics: %v", err)
	}
	b = startIn(t, s, agent.Options{Tools: []agent.Tool{odd}, Approve: func(context.Context, agent.Call) (agent.Decision, error) { return "maybe", nil }})
	if _, err := b.Resume(t.Context()); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a decision that there is not: %v", err)
	}
	if pending, err := b.Pending(); err != nil || len(pending) != 1 || pending[0].State != agent.CallWaiting {
		t.Errorf("pending: %+v, %v", pending, err)
	}
	// A model that panics takes its turn along, and no more.
	c := startIn(t, s, agent.Options{Model: answers(func(*provider.Request) (*session.MessageEntry, error) { panic("oh") })})
	news := c.Subscribe(0)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic of a model is its caller's")
			}
		}()
		_, _ = c.Send(t.Context(), session.Text("hello"))
	}()
	if err := c.SetModel(&offline.Model{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resume(t.Context()); err != nil {
		t.Error(err)
	}
	_ = c.Close()
	ends := 0
	for e := range news.Events(t.Context()) {
		if e.Type == agent.TurnEnd {
			ends++
		}
	}
	if ends != 2 {
		t.Errorf("%d ends of 2 turns were told", ends)
	}
	check(t, s)
}

// TestCallWithAResultElsewhere: another program ran the calls of a session, and left no marks.
// Somebody goes back to before their results. The calls have run all the same, and what was
// denied stays denied.
func TestCallWithAResultElsewhere(t *testing.T) {
	t.Parallel()
	ran := make(map[string]int)
	var mu sync.Mutex // the calls run side by side
	tool := func(name string, repeatable bool) agent.Tool {
		one := echo(name)
		one.Repeatable = repeatable
		one.Run = func(_ context.Context, c agent.Call) (agent.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			ran[c.ID]++
			return agent.Result{Text: "again"}, nil
		}
		return one
	}
	s := newSession(t)
	say := func(role session.MessageRole, content ...session.Content) string {
		id, err := s.AppendMessage(role, content)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	input := map[string]any{"text": "x"}
	say(session.RoleUser, session.Text("do it"))
	calls := say(session.RoleAssistant, session.ToolUse("ran", "once", input), session.ToolUse("read", "often", input),
		session.ToolUse("denied", "once", input), session.ToolUse("new", "once", input))
	if err := agent.RecordCalls(s, calls); err != nil {
		t.Fatal(err)
	}
	say(session.RoleTool, session.ToolResult("ran", "done", false), session.ToolResult("read", "done", false))
	say(session.RoleTool, session.ToolResult("denied", "[denied: the user did not allow this call]", true),
		session.ToolResult("new", "[not run: the user cancelled the turn]", true))
	if err := s.Branch(calls); err != nil {
		t.Fatal(err)
	}
	a := startIn(t, s, agent.Options{Tools: []agent.Tool{tool("once", false), tool("often", true)}})
	pending, err := a.Pending()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pending {
		want := map[string]agent.CallState{"ran": agent.CallElsewhere, "read": agent.CallElsewhere, "denied": agent.CallElsewhere, "new": agent.CallNew}[p.ID]
		if p.State != want {
			t.Errorf("%s is %q, want %q", p.ID, p.State, want)
		}
	}
	if _, err := a.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ran["ran"] != 0 || ran["read"] != 1 || ran["denied"] != 0 || ran["new"] != 1 {
		t.Errorf("ran %v", ran)
	}
	check(t, s)
}

// TestManyUnansweredCalls: finding out how far each of many calls has come costs a walk
// through the tree, not one for each message.
func TestManyUnansweredCalls(t *testing.T) {
	cost := func(n int) uint64 {
		s := newSession(t)
		var calls []session.Entry
		for i := range n {
			calls = append(calls, session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
				Role: session.RoleAssistant, Content: []session.Content{session.ToolUse(fmt.Sprint("c", i), "run", nil)},
			}})
		}
		if _, err := s.AppendAll(calls...); err != nil {
			t.Fatal(err)
		}
		a := startIn(t, s, agent.Options{})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		pending, err := a.Pending()
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if len(pending) != n {
			t.Fatalf("%d calls wait, want %d", len(pending), n)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := cost(200), cost(1600); many > 16*few {
		t.Errorf("8 times the calls take %d bytes instead of %d: %.1f times", many, few, float64(many)/float64(few))
	}
}
