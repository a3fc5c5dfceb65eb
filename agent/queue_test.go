package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/lease"
	"github.com/coppice-dev/coppice/store/memory"
)

// during returns a tool whose calls do something.
func during(f func(ctx context.Context) error) agent.Tool {
	return agent.Tool{Tool: provider.Tool{Name: "work"}, Run: func(ctx context.Context, _ agent.Call) (agent.Result, error) {
		return agent.Result{Text: "done"}, f(ctx)
	}}
}

// worker is a model that makes one call after "go", and else repeats what it heard last.
func worker(r *provider.Request) (*session.MessageEntry, error) {
	last := r.Entries[len(r.Entries)-1].Message
	if session.TextOf(last.Content) == "go" {
		return &session.MessageEntry{StopReason: provider.StopToolUse, Content: []session.Content{session.ToolUse("c"+session.NewID(), "work", map[string]any{})}}, nil
	}
	return &session.MessageEntry{StopReason: provider.StopEndTurn, Content: []session.Content{session.Text("heard " + session.TextOf(last.Content))}}, nil
}

// steered is the conversation of a turn that was steered while a call ran.
var steered = []string{"user: go", "assistant: →work", "tool: done", "user: careful", "assistant: heard careful", "user: and then?", "assistant: heard and then?"}

func steer(ctx context.Context, a *agent.Agent) error {
	_, err := a.FollowUp(ctx, session.Text("and then?"))
	_, err2 := a.Steer(ctx, session.Text("careful"))
	return errors.Join(err, err2)
}

// TestSteer: what is said during a turn is heard at the next step, or at its end.
func TestSteer(t *testing.T) {
	t.Parallel()
	answer := func(r *providertest.Request) providertest.Answer {
		m, _ := worker(&provider.Request{Entries: r.Entries})
		m.Role = session.RoleAssistant
		return providertest.Answer{Message: *m}
	}
	dialects(t, answer, func(t *testing.T, _ *providertest.Server, model provider.Model) {
		var a *agent.Agent
		a = start(t, agent.Options{Model: model, Tools: []agent.Tool{during(func(ctx context.Context) error { return steer(ctx, a) })}})
		news := a.Subscribe(0)
		out := send(t, a, "go")
		if lines := said(t, a.Session()); !slices.Equal(lines, steered) {
			t.Errorf("the conversation is\n%s", strings.Join(lines, "\n"))
		}
		if out.Steps != 3 || session.TextOf(out.Message.Content) != "heard and then?" {
			t.Errorf("the outcome is %+v", out)
		}
		if queued, err := a.Session().Queued(); err != nil || len(queued) > 0 {
			t.Errorf("still queued: %v, %v", queued, err)
		}
		news.Close()
		var told []string
		for e := range news.Events(t.Context()) {
			if e.Type == agent.Queued {
				q, _ := e.Entry.Queued()
				told = append(told, session.TextOf(q.Content))
			}
		}
		if !slices.Equal(told, []string{"and then?", "careful"}) {
			t.Errorf("told of %q", told)
		}
		check(t, a.Session())
		for _, r := range records(t, a.Session()) {
			if _, same, err := r.Rebuild(a.Session(), model); err != nil || !same {
				t.Errorf("a request cannot be rebuilt: %v", err)
			}
		}
	})
}

// TestSteerFromElsewhere: another program may steer, and a note of it does not make a branch.
func TestSteerFromElsewhere(t *testing.T) {
	t.Parallel()
	s, st := shared(t)
	other := startIn(t, open(t, st, "shared"), agent.Options{Model: answers(worker)})
	if _, err := other.Steer(t.Context(), session.Text("hello?")); !errors.Is(err, agent.ErrIdle) {
		t.Errorf("there is no turn, but: %v", err)
	}
	a := startIn(t, s, agent.Options{Model: answers(worker), Tools: []agent.Tool{during(func(ctx context.Context) error { return steer(ctx, other) })}})
	news := a.Subscribe(0)
	send(t, a, "go")
	if lines := said(t, s); !slices.Equal(lines, steered) {
		t.Errorf("the conversation is\n%s", strings.Join(lines, "\n"))
	}
	news.Close()
	for e := range news.Events(t.Context()) {
		if e.Type == agent.Error {
			t.Errorf("the agent complains: %v", e.Err)
		}
	}
	if leaves, err := s.Leaves(); err != nil || len(leaves) != 1 {
		t.Errorf("the branches are %v, %v", leaves, err)
	}
	if queued, err := other.TakeBack(t.Context()); err != nil || len(queued) > 0 {
		t.Errorf("the other takes back %v, %v", queued, err)
	}
	check(t, s)
}

// TestSteerSurvives: what was queued in a turn that did not get to it is used by the next,
// once, whichever agent takes it. A copy of the session has nothing queued.
func TestSteerSurvives(t *testing.T) {
	t.Parallel()
	heard := []string{"user: and then?", "user: careful"}
	for name, goOn := range map[string]struct {
		act  func(*agent.Agent) (*agent.Outcome, error)
		want []string
	}{
		"resume": {func(a *agent.Agent) (*agent.Outcome, error) { return a.Resume(t.Context()) }, steered[3:]},
		"send": {
			func(a *agent.Agent) (*agent.Outcome, error) { return a.Send(t.Context(), session.Text("hello")) },
			append(slices.Clone(heard), "user: hello", "assistant: heard hello"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, st := shared(t)
			ctx, cancel := context.WithCancel(t.Context())
			var a *agent.Agent
			a = startIn(t, s, agent.Options{Model: answers(worker), Tools: []agent.Tool{during(func(ctx context.Context) error {
				defer cancel()
				return steer(ctx, a)
			})}})
			if _, err := a.Send(ctx, session.Text("go")); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			before := len(said(t, s))

			next := startIn(t, open(t, st, "shared"), agent.Options{Model: answers(worker)})
			if unfinished, err := next.Unfinished(); err != nil || !unfinished {
				t.Errorf("unfinished: %v, %v", unfinished, err)
			}
			copied, err := s.Fork(t.Context(), st, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer copied.Close()
			if queued, err := copied.Queued(); err != nil || len(queued) > 0 {
				t.Errorf("in a copy is queued: %v, %v", queued, err)
			}
			if _, err := goOn.act(next); err != nil {
				t.Fatal(err)
			}
			if lines := said(t, next.Session())[before:]; !slices.Equal(lines, goOn.want) {
				t.Errorf("after that:\n%s", strings.Join(lines, "\n"))
			}
			send(t, a, "bye") // the first one must not use them again
			if all := strings.Join(said(t, s), "\n"); strings.Count(all, "user: careful") != 1 || strings.Count(all, "user: and then?") != 1 {
				t.Errorf("the conversation is\n%s", all)
			}
			check(t, s)
		})
	}
}

// TestSteerAfterTheEnd: what was queued when the program died after the last answer is not
// forgotten.
func TestSteerAfterTheEnd(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{Model: answers(worker)})
	send(t, a, "hello")
	e, err := agent.FollowUpEntry(a.Session(), session.Text("one more"))
	if err == nil {
		_, err = a.Session().AppendEntry(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := a.Resume(t.Context()); err != nil || out.Steps != 1 {
		t.Errorf("resume: %+v, %v", out, err)
	}
	if lines := said(t, a.Session()); lines[len(lines)-1] != "assistant: heard one more" {
		t.Errorf("the conversation is %q", lines)
	}
}

// TestSteerDuringABrokenAnswer: what is said while an answer breaks off is heard when the
// model is asked again, and what arrived is still one draft.
func TestSteerDuringABrokenAnswer(t *testing.T) {
	t.Parallel()
	var a *agent.Agent
	asked := 0
	a = start(t, agent.Options{Draft: 1, RetryWait: 1, Model: provider.Func{
		About: provider.Info{Provider: "p", Model: "m"},
		Answer: func(ctx context.Context, r *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
			if asked++; asked > 1 {
				return worker(r)
			}
			err := tell("half of ")
			err2 := steer(ctx, a)
			err3 := tell("an answer ")
			return nil, errors.Join(&provider.Error{Kind: provider.ErrBroken, Provider: "p"}, err, err2, err3)
		},
	}})
	send(t, a, "hello")
	want := []string{"user: hello", "user: careful", "assistant: heard careful", "user: and then?", "assistant: heard and then?"}
	if lines := said(t, a.Session()); !slices.Equal(lines, want) {
		t.Errorf("the conversation is\n%s", strings.Join(lines, "\n"))
	}
	check(t, a.Session())
	leaves, err := a.Session().Leaves()
	if err != nil || len(leaves) != 2 {
		t.Fatalf("the branches are %v, %v", leaves, err)
	}
	broken, err := a.Session().Entry(leaves[0])
	if err != nil || session.TextOf(broken.Message.Content) != "half of an answer " {
		t.Errorf("the branch ends with %+v, %v", broken, err)
	}
	if text, _, err := session.DraftAt(a.Session(), *broken.ParentID); err != nil || text != "half of an answer " {
		t.Errorf("the draft is %q, %v", text, err)
	}
}

// TestTakeBack: what is queued can be taken back, and what cannot be said cannot be queued.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	var a *agent.Agent
	var back []session.Queued
	a = start(t, agent.Options{Model: answers(worker), Tools: []agent.Tool{during(func(ctx context.Context) (err error) {
		if _, err := a.Steer(ctx, session.Text(" ")); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("nothing was said, but: %v", err)
		}
		if err = steer(ctx, a); err == nil {
			back, err = a.TakeBack(ctx)
		}
		return err
	})}})
	send(t, a, "go")
	if len(back) != 2 || session.TextOf(back[1].Content) != "careful" || !back[0].After || back[1].After {
		t.Errorf("taken back: %+v", back)
	}
	if lines := said(t, a.Session()); len(lines) != 4 {
		t.Errorf("the conversation is %q", lines)
	}
	if back, err := a.TakeBack(t.Context()); err != nil || len(back) > 0 {
		t.Errorf("taken back again: %v, %v", back, err)
	}
	for _, f := range []func(context.Context, ...session.Content) (string, error){a.Steer, a.FollowUp} {
		if _, err := f(t.Context(), session.Text("x")); !errors.Is(err, agent.ErrIdle) {
			t.Errorf("without a turn: %v", err)
		}
	}
}

// TestSteerIsRedacted: a secret that is queued is in neither the note nor the message.
func TestSteerIsRedacted(t *testing.T) {
	t.Parallel()
	secret := "ghp_" + strings.Repeat("a1B2c3D4e5", 3) + "f6G7h8"
	var a *agent.Agent
	a = startIn(t, sessionIn(t, newStore(t), &session.Options{Clean: clean.Append}), agent.Options{Model: answers(worker), Tools: []agent.Tool{during(func(ctx context.Context) error {
		_, err := a.Steer(ctx, session.Text("the key is "+secret))
		return err
	})}})
	send(t, a, "go")
	for e, err := range a.Session().Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if text, err := e.MarshalJSON(); err != nil || strings.Contains(string(text), secret) {
			t.Errorf("%v: %s", err, text)
		}
	}
	if lines := said(t, a.Session()); !strings.HasPrefix(lines[3], "user: the key is ") {
		t.Errorf("the conversation is %q", lines)
	}
}

// Steering an agent while it works.
func ExampleAgent_Steer() {
	ctx := context.Background()
	s, err := session.Create(ctx, memory.New(nil), session.Header{}, nil)
	if err != nil {
		panic(err)
	}
	defer s.Close()
	var a *agent.Agent
	work := agent.Tool{Tool: provider.Tool{Name: "work"}, Run: func(ctx context.Context, _ agent.Call) (agent.Result, error) {
		_, err := a.Steer(ctx, session.Text("only the tests, please")) // a person, from another goroutine
		return agent.Result{Text: "half done"}, err
	}}
	a, err = agent.New(s, agent.Options{Model: answers(worker), Tools: []agent.Tool{work}})
	if err != nil {
		panic(err)
	}
	defer a.Close()
	out, err := a.Send(ctx, session.Text("go"))
	if err != nil {
		panic(err)
	}
	fmt.Println(session.TextOf(out.Message.Content))
	// Output: heard only the tests, please
}

// eager is a counter that is asked while a turn begins.
type eager func()

func (c eager) Name() string { return "eager" }

func (c eager) CountText(text string) int {
	c()
	return len(text)
}

// TestSteerBeforeThePromptIsWritten: a message steered right after a prompt
// follows that prompt in the log. Messages left over from an earlier turn come before it.
func TestSteerBeforeThePromptIsWritten(t *testing.T) {
	t.Parallel()
	var a *agent.Agent
	left := 0
	counter := eager(func() {
		for ; left > 0; left-- {
			if _, err := a.Steer(t.Context(), session.Text(fmt.Sprint("say after ", left))); err != nil {
				t.Error(err)
			}
		}
	})
	s := newSession(t)
	early, err := agent.QueuedEntry(s, session.Text("say before"))
	if err != nil {
		t.Fatal(err)
	}
	a = startIn(t, s, agent.Options{Counter: counter})
	if _, err := s.AppendEntry(early); err != nil {
		t.Fatal(err)
	}
	left = 2
	send(t, a, "say now")
	if lines := said(t, s); !slices.Equal(lines, []string{"user: say before", "user: say now", "user: say after 2", "user: say after 1", "assistant: after 1"}) {
		t.Errorf("the conversation is\n%s", strings.Join(lines, "\n"))
	}
}

// TestSteerAtABoundary: while a conversation is about to go on in another session, nothing is
// queued in the one before, where the agent that works there would not look.
func TestSteerAtABoundary(t *testing.T) {
	t.Parallel()
	s, st := shared(t)
	held, err := lease.At(st, "shared").Take(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := startIn(t, s, agent.Options{Boundary: 12})
	worker := open(t, st, "shared")
	if _, err := worker.AppendCustomEntry(session.CustomContinuedTo, map[string]any{"session": "next", "of": "shared"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if id, err := a.Steer(ctx, session.Text("early")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("queued %q, %v", id, err)
	}
	next, err := session.Create(t.Context(), st, session.Header{ID: "next", ParentSession: "shared", Relation: session.RelationContinuation, Continuation: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	id, err := a.Steer(t.Context(), session.Text("then"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.Refresh(); err != nil {
		t.Fatal(err)
	}
	if e, err := next.Entry(id); err != nil {
		t.Errorf("it is not in the session that goes on: %+v, %v", e, err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Steer(t.Context(), session.Text("late")); !errors.Is(err, agent.ErrIdle) {
		t.Errorf("steering an agent that is gone: %v", err)
	}
}

// TestSteerOutsideATurn: while the agent has the session for something else than a turn, nothing
// would take what is queued.
func TestSteerOutsideATurn(t *testing.T) {
	t.Parallel()
	var a *agent.Agent
	tried := false
	writer := answers(func(*provider.Request) (*session.MessageEntry, error) {
		tried = true
		if id, err := a.Steer(t.Context(), session.Text("faster")); !errors.Is(err, agent.ErrIdle) {
			t.Errorf("queued %q, %v", id, err)
		}
		return &session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{session.Text("## Goal\n\nwords")}}, nil
	})
	a = start(t, agent.Options{Compaction: agent.Compaction{Model: writer, Keep: 1}})
	for range 4 {
		send(t, a, "repeat 100 words to be summarised")
	}
	if _, err := a.Compact(t.Context(), ""); err != nil || !tried {
		t.Fatalf("compact: %v, with a summary: %v", err, tried)
	}
}
