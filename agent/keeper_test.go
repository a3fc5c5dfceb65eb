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
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/lease"
)

func keeperOf(t *testing.T, s *session.Session, o agent.KeeperOptions) *agent.Keeper {
	t.Helper()
	k, err := agent.NewKeeper(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// beginIn has a keeper of its own begin work in a session, as another program would.
func beginIn(t *testing.T, st store.Store, o agent.KeeperOptions) (*agent.Keeper, *session.Session) {
	t.Helper()
	s := open(t, st, "shared")
	k := keeperOf(t, s, o)
	if _, err := k.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k, s
}

// must fails the test for what should have worked.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// answerWith asks, and has the model answer with blocks.
func answerWith(t *testing.T, k *agent.Keeper, blocks ...session.Content) []agent.Pending {
	t.Helper()
	_, err := k.Context()
	must(t, err)
	calls, open, err := k.Answer(session.MessageEntry{Content: blocks})
	must(t, err)
	if open != (len(calls) > 0) {
		t.Errorf("%d calls, and the model goes on: %v", len(calls), open)
	}
	return calls
}

func use(id string) session.Content {
	return session.ToolUse(id, "one", map[string]any{"text": "x"})
}

// A loop of another kind says what happens, and the log has what an agent would have left
// there: messages, settings, calls, and a record of each request.
func TestKeeper(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	var news []agent.EventType
	k := keeperOf(t, s, agent.KeeperOptions{
		Model: provider.Info{Provider: "p", Model: "m"}, System: "be brief", Tools: []provider.Tool{echo("one").Tool},
		Events: func(e agent.Event) { news = append(news, e.Type) },
	})
	_, err := k.Begin(t.Context())
	must(t, err)
	must(t, k.Prompt(session.Text("hello")))
	// Two calls of one id, as some models make them.
	calls := answerWith(t, k, session.Text("I look."), use("c"), use("c"))
	if len(calls) != 2 || calls[0].ID == calls[1].ID || calls[0].Name != "one" || string(calls[0].Input) != `{"text":"x"}` {
		t.Fatalf("the calls are %+v", calls)
	}
	must(t, k.ToolStart(calls[0].ID, calls[1].ID))
	var side sync.WaitGroup
	for _, call := range calls {
		side.Go(func() {
			if err := k.ToolEnd(call.ID, agent.Result{Text: "found"}); err != nil {
				t.Error(err)
			}
		})
	}
	side.Wait()
	c, err := k.Context()
	must(t, err)
	if n := len(c.Entries); n != 5 || c.Model != "m" {
		t.Errorf("%d entries are sent to %q", n, c.Model)
	}
	calls, _, err = k.Answer(session.MessageEntry{Content: []session.Content{session.Text("done")}, Usage: &session.Usage{Input: 7, Output: 1}})
	if err != nil || len(calls) != 0 {
		t.Fatalf("%v, %v", calls, err)
	}
	must(t, k.End())
	want := []string{"system: be brief", "user: hello", "assistant: I look.→one→one", "tool: found", "tool: found", "assistant: done"}
	if lines := said(t, s); !slices.Equal(lines, want) {
		t.Errorf("the conversation is %q", lines)
	}
	check(t, s)
	requests, err := agent.Requests(s, 0, func(*agent.Record) provider.Model { return &offline.Model{} })
	must(t, err)
	if len(requests) != 2 || requests[0].Error != "" || requests[0].Rebuilt != nil || requests[1].Same != 2 || requests[1].Usage.Input != 7 || requests[1].Tools == "" {
		t.Errorf("the requests are %+v", requests)
	}
	told := []agent.EventType{
		agent.MessageEnd, agent.MessageEnd, agent.MessageEnd, agent.ToolStart, agent.ToolStart,
		agent.MessageEnd, agent.ToolEnd, agent.MessageEnd, agent.ToolEnd, agent.MessageEnd,
	}
	if !slices.Equal(news, told) {
		t.Errorf("the events are %q", news)
	}
}

// A loop that ends at any point, as a program that dies does, is continued by another one.
// No call runs twice.
func TestKeeperRestores(t *testing.T) {
	t.Parallel()
	prompt := func(t *testing.T, k *agent.Keeper) { must(t, k.Prompt(session.Text("hello"))) }
	ask := func(t *testing.T, k *agent.Keeper) {
		prompt(t, k)
		if calls := answerWith(t, k, use("a"), use("b")); len(calls) != 2 {
			t.Fatalf("the calls are %+v", calls)
		}
	}
	run := func(t *testing.T, k *agent.Keeper) {
		ask(t, k)
		must(t, k.ToolStart("a"))
	}
	end := func(t *testing.T, k *agent.Keeper) {
		run(t, k)
		must(t, k.ToolEnd("a", agent.Result{Text: "found"}))
		must(t, k.ToolEnd("b", agent.Result{Text: "not allowed", IsError: true}))
	}
	for name, c := range map[string]struct {
		before     func(*testing.T, *agent.Keeper)
		repeatable bool
		calls      string
		open       bool
		said       string
	}{
		"nothing":       {func(*testing.T, *agent.Keeper) {}, false, "", false, ""},
		"a prompt":      {prompt, false, "", true, "user: hello"},
		"a request":     {func(t *testing.T, k *agent.Keeper) { prompt(t, k); _, err := k.Context(); must(t, err) }, false, "", true, "user: hello"},
		"calls":         {ask, false, "a b", true, ""},
		"a running one": {run, false, "b", true, "tool: [interrupted: the program ended while"},
		"a repeatable":  {run, true, "a b", true, ""},
		"results":       {end, false, "", true, "tool: not allowed"},
		"an answer":     {func(t *testing.T, k *agent.Keeper) { end(t, k); answerWith(t, k, session.Text("done")) }, false, "", false, "assistant: done"},
		"no answer":     {func(t *testing.T, k *agent.Keeper) { prompt(t, k); answerWith(t, k) }, false, "", false, "user: hello"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, st := shared(t)
			o := agent.KeeperOptions{Repeatable: func(agent.Call) bool { return c.repeatable }}
			k, _ := beginIn(t, st, o)
			c.before(t, k)
			must(t, k.End())
			k, s := beginIn(t, st, o)
			calls, open, err := k.Restore()
			ids := make([]string, len(calls))
			for i := range calls {
				ids[i] = calls[i].ID
			}
			if err != nil || open != c.open || strings.Join(ids, " ") != c.calls {
				t.Fatalf("to do: %q, %v, %v", ids, open, err)
			}
			if lines := said(t, s); c.said != "" && !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, c.said) }) {
				t.Errorf("the conversation is %q", lines)
			}
			for _, id := range ids {
				must(t, k.ToolStart(id))
				must(t, k.ToolEnd(id, agent.Result{Text: "found"}))
			}
			if open {
				answerWith(t, k, session.Text("done"))
			}
			if _, open, err = k.Restore(); open || err != nil {
				t.Errorf("it is still open: %v", err)
			}
			must(t, k.End())
			check(t, s)
		})
	}
}

// The agent's loop goes on where another loop stopped, and the other way round.
func TestKeeperAndAgentTakeTurns(t *testing.T) {
	t.Parallel()
	_, st := shared(t)
	k, _ := beginIn(t, st, agent.KeeperOptions{})
	must(t, k.Prompt(session.Text("hello")))
	answerWith(t, k, use("a"), use("b"))
	must(t, k.ToolStart("a"))
	ran := 0
	one := echo("one")
	one.Run = func(_ context.Context, c agent.Call) (agent.Result, error) {
		ran++
		return agent.Result{Text: c.ID}, nil
	}
	one.Ask = agent.AskAlways
	a := startIn(t, open(t, st, "shared"), agent.Options{Tools: []agent.Tool{one}})
	if _, err := a.Resume(t.Context()); !errors.As(err, new(*lease.HeldError)) {
		t.Errorf("two loops worked at once: %v", err)
	}
	must(t, k.End())
	out, err := a.Resume(t.Context())
	if err != nil || len(out.Waiting) != 1 || out.Waiting[0].ID != "b" || ran != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	k, s := beginIn(t, st, agent.KeeperOptions{})
	calls, open, err := k.Restore()
	if err != nil || !open || len(calls) != 1 || calls[0].ID != "b" || calls[0].State != agent.CallWaiting {
		t.Fatalf("%+v, %v, %v", calls, open, err)
	}
	must(t, k.ToolEnd("b", agent.Result{Text: "no", IsError: true}))
	answerWith(t, k, session.Text("done"))
	must(t, k.End())
	if out, err := a.Resume(t.Context()); err != nil || out.Steps != 0 {
		t.Errorf("there was something left to do: %+v, %v", out, err)
	}
	check(t, s)
}

func TestKeeperWorksAlone(t *testing.T) {
	t.Parallel()
	_, st := shared(t)
	k, _ := beginIn(t, st, agent.KeeperOptions{})
	if _, err := k.Begin(t.Context()); !errors.Is(err, agent.ErrBusy) {
		t.Errorf("it began twice: %v", err)
	}
	other := keeperOf(t, open(t, st, "shared"), agent.KeeperOptions{})
	if _, err := other.Begin(t.Context()); !errors.As(err, new(*lease.HeldError)) {
		t.Errorf("two loops work at once: %v", err)
	}
	waits := keeperOf(t, open(t, st, "shared"), agent.KeeperOptions{Wait: true})
	began := make(chan error)
	go func() {
		_, err := waits.Begin(context.WithoutCancel(t.Context()))
		began <- err
	}()
	must(t, k.Prompt(session.Text("hello")))
	must(t, k.End())
	must(t, <-began)
	if _, open, err := waits.Restore(); !open || err != nil {
		t.Errorf("the one that waited has nothing to do: %v", err)
	}
	must(t, waits.End())
	must(t, waits.End())
}

// What a loop says out of turn is refused, and nothing of it is kept.
func TestKeeperOutOfTurn(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	k := keeperOf(t, s, agent.KeeperOptions{})
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("a prompt before Begin", k.Prompt(session.Text("hello")))
	ctx, err := k.Begin(t.Context())
	must(t, err)
	refused("an empty prompt", k.Prompt())
	_, _, err = k.Answer(session.MessageEntry{Content: []session.Content{session.Text("hi")}})
	refused("an answer to nothing", err)
	refused("a draft of nothing", k.Draft("hi"))
	refused("a call of nobody", k.ToolStart("a"))
	refused("a result of nothing", k.ToolEnd("a", agent.Result{}))
	_, err = k.Compact("")
	refused("a summary by nobody", err)
	must(t, k.Prompt(session.Text("hello")))
	answerWith(t, k, use("a"))
	_, err = k.Context()
	refused("a request without a result", err)
	must(t, k.ToolStart("a"))
	refused("a call that runs", k.ToolStart("a"))
	must(t, k.ToolEnd("a", agent.Result{Text: "x"}))
	refused("a second result", k.ToolEnd("a", agent.Result{Text: "y"}))
	must(t, k.End())
	if ctx.Err() == nil {
		t.Error("the work has ended, and its context has not")
	}
	refused("a request after End", func() error { _, err := k.Context(); return err }())
	if lines := said(t, s); !slices.Equal(lines, []string{"user: hello", "assistant: →one", "tool: x"}) {
		t.Errorf("the conversation is %q", lines)
	}
	for _, o := range []agent.KeeperOptions{{Thinking: "loud"}, {MaxTokens: -1}, {Tools: []provider.Tool{{}}}} {
		_, err := agent.NewKeeper(s, o)
		refused(fmt.Sprintf("%+v", o), err)
	}
}

// Of an answer that broke off, the text is kept: on a branch if the model is asked again. A
// call of an answer that was cut off does not run.
func TestKeeperOfBrokenAnswers(t *testing.T) {
	t.Parallel()
	_, st := shared(t)
	k, s := beginIn(t, st, agent.KeeperOptions{})
	half := &session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{session.Text("half"), use("a")}}
	cause := errors.New("the line is dead")
	must(t, k.Prompt(session.Text("hello")))
	for range 2 {
		_, err := k.Context()
		must(t, err)
		must(t, k.Failed(half, cause, true))
	}
	_, err := k.Context()
	must(t, err)
	must(t, k.Failed(nil, cause, true))
	if lines := said(t, s); !slices.Equal(lines, []string{"user: hello"}) {
		t.Errorf("the conversation is %q", lines)
	}
	_, err = k.Context()
	must(t, err)
	must(t, k.Failed(half, cause, false))
	if lines := said(t, s); !slices.Equal(lines, []string{"user: hello", "assistant: half"}) {
		t.Errorf("the conversation is %q", lines)
	}
	if leaves, err := s.Leaves(); err != nil || len(leaves) != 3 {
		t.Errorf("%d branches, %v", len(leaves), err)
	}
	if calls, open, err := k.Restore(); len(calls) > 0 || !open || err != nil {
		t.Fatalf("%v, %v, %v", calls, open, err)
	}
	_, err = k.Context()
	must(t, err)
	if err := k.Failed(nil, nil, false); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("an answer that broke off for no reason: %v", err)
	}
	if _, _, err := k.Answer(session.MessageEntry{StopReason: "tool_calls", Content: []session.Content{use("a")}}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a stop reason that is unknown: %v", err)
	}
	calls, open, err := k.Answer(session.MessageEntry{StopReason: provider.StopMaxTokens, Content: []session.Content{use("a")}})
	if len(calls) > 0 || !open || err != nil {
		t.Fatalf("a call that was cut off: %v, %v, %v", calls, open, err)
	}
	if lines := said(t, s); !strings.HasPrefix(lines[2], "tool: [not run: the answer was cut off") {
		t.Errorf("the conversation is %q", lines)
	}
	must(t, k.End())
	check(t, s)
}

// What arrived of an answer is there when the program has died in the middle of it.
func TestKeeperDrafts(t *testing.T) {
	t.Parallel()
	_, st := shared(t)
	k, _ := beginIn(t, st, agent.KeeperOptions{Draft: 1})
	must(t, k.Prompt(session.Text("hello")))
	_, err := k.Context()
	must(t, err)
	must(t, k.Draft("half an "))
	must(t, k.Draft("answer"))
	must(t, k.End())
	k, s := beginIn(t, st, agent.KeeperOptions{})
	must(t, k.Prompt(session.Text("go on")))
	if lines := said(t, s); !slices.Equal(lines, []string{"user: hello", "assistant: half an answer", "user: go on"}) {
		t.Errorf("the conversation is %q", lines)
	}
	must(t, k.End())
}

// A full window is compacted before the next request if there is a model that writes
// summaries, and when the loop asks for it.
func TestKeeperCompacts(t *testing.T) {
	t.Parallel()
	model := &offline.Model{}
	for name, c := range map[string]agent.Compaction{
		"window": {Window: 2000, Model: model}, "asked": {Window: 100_000, Model: model}, "": {Window: 2000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t)
			reason := ""
			k := keeperOf(t, s, agent.KeeperOptions{Compaction: c, Events: func(e agent.Event) {
				if e.Compacted != nil {
					reason = e.Compacted.Reason
				}
			}})
			_, err := k.Begin(t.Context())
			must(t, err)
			for range 8 {
				must(t, k.Prompt(session.Text(strings.Repeat("words and words ", 100))))
				answerWith(t, k, session.Text("done"))
			}
			if name == "asked" {
				_, err := k.Compact("")
				must(t, err)
			}
			if first := said(t, s)[0]; reason != name || strings.HasPrefix(first, "summary: ") != (name != "") {
				t.Errorf("the reason is %q, and the conversation begins with %.60q", reason, first)
			}
			must(t, k.End())
			check(t, s)
		})
	}
}

// A loop that was told to stop asks and starts nothing, but what has happened is kept.
func TestKeeperWhenCancelled(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	k := keeperOf(t, s, agent.KeeperOptions{})
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := k.Begin(ctx)
	must(t, err)
	must(t, k.Prompt(session.Text("hello")))
	answerWith(t, k, use("a"), use("b"))
	must(t, k.ToolStart("a"))
	cancel(enough)
	must(t, k.ToolEnd("a", agent.Result{Text: "found"}))
	if err := k.ToolStart("b"); !errors.Is(err, enough) {
		t.Errorf("b started: %v", err)
	}
	if err := k.Prompt(session.Text("more")); !errors.Is(err, enough) {
		t.Errorf("the user spoke: %v", err)
	}
	must(t, k.End())
	if lines := said(t, s); lines[2] != "tool: found" {
		t.Errorf("the conversation is %q", lines)
	}
}

// A loop goes back to an entry, with or without a summary of what it leaves. Calls that are
// left behind no longer wait.
func TestKeeperBranches(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	k := keeperOf(t, s, agent.KeeperOptions{Compaction: agent.Compaction{Model: &offline.Model{}}})
	_, err := k.Begin(t.Context())
	must(t, err)
	must(t, k.Prompt(session.Text("hello")))
	prompt := s.LeafID()
	answerWith(t, k, use("a"))
	must(t, k.Branch(prompt, false))
	answerWith(t, k, session.Text(strings.Repeat("This is another way to answer. ", 20)))
	must(t, k.Branch(prompt, true))
	if lines := said(t, s); len(lines) != 2 || !strings.HasPrefix(lines[1], "summary: ") {
		t.Errorf("the conversation is %q", lines)
	}
	must(t, k.End())
	k = keeperOf(t, s, agent.KeeperOptions{})
	_, err = k.Begin(t.Context())
	must(t, err)
	if err := k.Branch(prompt, true); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a summary by nobody: %v", err)
	}
	must(t, k.End())
}
