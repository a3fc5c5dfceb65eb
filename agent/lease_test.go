package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/lease"
)

// TestOneAgentAtATime: while an agent works on a session, whatever another one tries there fails
// with the name of the first, and work in progress is not called interrupted.
func TestOneAgentAtATime(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"the same handle", "another handle"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			s, st := shared(t)
			var other *agent.Agent
			one := echo("one")
			one.Run = func(ctx context.Context, c agent.Call) (agent.Result, error) {
				if h, err := other.Holder(ctx); err != nil || h == nil || h.Program != "agent.test" {
					t.Errorf("works there: %v, %v", h, err)
				}
				for what, err := range map[string]error{
					"send": second(other.Send(ctx, session.Text("me too"))), "resume": second(other.Resume(ctx)), "retry": second(other.Retry(ctx)),
					"decide": other.Decide(c.ID, agent.Deny), "undo": other.Undo(),
				} {
					if held, ok := errors.AsType[*lease.HeldError](err); !ok || held.Name != "shared" || !errors.Is(err, session.ErrLocked) {
						t.Errorf("%s: %v", what, err)
					}
				}
				return agent.Result{Text: "precious"}, nil
			}
			o := agent.Options{Tools: []agent.Tool{one}}
			a := startIn(t, s, o)
			if where == "another handle" {
				s = open(t, st, "shared")
			}
			other = startIn(t, s, o)
			send(t, a, `call one {"text":"1"}`)
			if h, err := other.Holder(t.Context()); err != nil || h != nil {
				t.Errorf("works there: %v, %v", h, err)
			}
			send(t, other, "and now?")
			want := []string{`user: call one {"text":"1"}`, "tool: precious", "user: and now?"}
			if lines := said(t, s); len(lines) != 6 || lines[0] != want[0] || lines[2] != want[1] || lines[4] != want[2] {
				t.Errorf("the conversation is %q", lines)
			}
			check(t, s)
		})
	}
}

func second(_ *agent.Outcome, err error) error { return err }

// TestTwoResume: two programs resume the same session. The work is done once, wherever it
// had stopped, and both have one conversation.
func TestTwoResume(t *testing.T) {
	t.Parallel()
	for _, stopped := range []string{"prompt", "draft", "broken", "new", "waiting"} {
		t.Run(stopped, func(t *testing.T) {
			t.Parallel()
			s, st := shared(t)
			called := stopped == "new" || stopped == "waiting"
			add := func(role session.MessageRole, c ...session.Content) {
				if _, err := s.AppendMessage(role, c); err != nil {
					t.Fatal(err)
				}
			}
			add(session.RoleUser, session.Text("send the mail"))
			var unfinished *session.Entry
			switch stopped {
			case "draft":
				unfinished = new(session.NewDraft("I will "))
			case "broken":
				unfinished = new(session.Message(session.RoleAssistant, session.Text("I will ")))
				unfinished.Message.StopReason, unfinished.Message.Metadata = provider.StopFailed, map[string]any{provider.MetaIncomplete: true}
			}
			if unfinished != nil {
				if _, err := s.AppendEntry(*unfinished); err != nil {
					t.Fatal(err)
				}
			}
			if called {
				add(session.RoleAssistant, session.ToolUse("c1", "mail", map[string]any{}), session.ToolUse("c2", "mail", map[string]any{}))
			}
			if stopped == "waiting" {
				if _, err := s.AppendCustomEntry(session.CustomCalls, map[string]any{"state": "waiting", "calls": []any{"c1", "c2"}}); err != nil {
					t.Fatal(err)
				}
			}
			var ran, asked atomic.Int32
			mail := echo("mail")
			mail.Ask = agent.AskAlways
			mail.Run = func(context.Context, agent.Call) (agent.Result, error) {
				ran.Add(1)
				return agent.Result{Text: "sent"}, nil
			}
			model := answers(func(r *provider.Request) (*session.MessageEntry, error) {
				m := &session.MessageEntry{Role: session.RoleAssistant, StopReason: provider.StopEndTurn, Content: []session.Content{session.Text("done")}}
				if asked.Add(1) == 1 && !called {
					m.StopReason = provider.StopToolUse
					m.Content = []session.Content{session.ToolUse("c1", "mail", map[string]any{}), session.ToolUse("c2", "mail", map[string]any{})}
				}
				return m, nil
			})
			late := startIn(t, open(t, st, "shared"), agent.Options{Model: model, Tools: []agent.Tool{mail}})
			var both sync.WaitGroup
			for n := range 2 {
				a := startIn(t, open(t, st, "shared"), agent.Options{
					Model: model, Tools: []agent.Tool{mail}, Wait: n == 1,
					Approve: func(_ context.Context, c agent.Call) (agent.Decision, error) {
						if c.ID == "c2" { // what one program denies, the other does not run
							return agent.Deny, nil
						}
						return agent.Allow, nil
					},
				})
				both.Go(func() {
					_, err := a.Resume(t.Context())
					if held := (*lease.HeldError)(nil); err != nil && (n == 1 || !errors.As(err, &held)) {
						t.Errorf("resume: %v", err)
					}
				})
			}
			both.Wait()
			if out, err := late.Resume(t.Context()); err != nil || out.Steps != 0 {
				t.Errorf("one who was late asked the model %d times, %v", out.Steps, err)
			}
			if ran.Load() != 1 {
				t.Errorf("%d mails were sent", ran.Load())
			}
			if _, err := s.Refresh(); err != nil {
				t.Fatal(err)
			}
			lines := said(t, s)
			if len(lines) != 5 || lines[4] != "assistant: done" || !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "tool: [denied") }) {
				t.Errorf("the conversation is %q", lines)
			}
			check(t, s)
		})
	}
}

// TestLostLease: an agent that was stopped for so long that another took over its session
// starts no call after it has woken up.
func TestLostLease(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{false, true} {
		s, st := shared(t)
		one := echo("one")
		one.Run = func(context.Context, agent.Call) (agent.Result, error) { panic("another works here") }
		takeOver := func() {
			if err := st.Notes("leases").Write(t.Context(), "shared", []byte(`{"program":"next","nonce":"n"}`)); err != nil {
				t.Error(err)
			}
		}
		o := agent.Options{Tools: []agent.Tool{one}}
		if o.Model = callOnce("one", takeOver); asks {
			o.Model = callOnce("one", func() {})
			o.Tools[0].Ask = agent.AskAlways
			o.Approve = func(context.Context, agent.Call) (agent.Decision, error) { takeOver(); return agent.Allow, nil }
		}
		a := startIn(t, s, o)
		_, err := a.Send(t.Context(), session.Text("go"))
		if held, ok := errors.AsType[*lease.HeldError](err); !ok || held.Program != "next" {
			t.Errorf("asks %v: %v", asks, err)
		}
		if h, err := a.Holder(t.Context()); err != nil || h == nil || h.Program != "next" {
			t.Errorf("asks %v: the other lost its lease: %v, %v", asks, h, err)
		}
	}
}

// callOnce returns a model that calls a tool once, after f.
func callOnce(tool string, f func()) provider.Model {
	asked := 0
	return answers(func(*provider.Request) (*session.MessageEntry, error) {
		if asked++; asked > 1 {
			return &session.MessageEntry{Role: session.RoleAssistant, StopReason: provider.StopEndTurn, Content: []session.Content{session.Text("done")}}, nil
		}
		f()
		return &session.MessageEntry{
			Role: session.RoleAssistant, StopReason: provider.StopToolUse,
			Content: []session.Content{session.ToolUse(fmt.Sprint(tool, "-1"), tool, map[string]any{"text": "hello"})},
		}, nil
	})
}

// TestLeaseOfATurnCostsTwoNotes: a lease is a note that is written and removed, and that is
// all that it costs a turn.
func TestLeaseOfATurnCostsTwoNotes(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	counted := &countedNotes{Store: st}
	s, err := session.Create(t.Context(), counted, session.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := startIn(t, s, agent.Options{Tools: []agent.Tool{echo("one")}})
	send(t, a, `call one {"text":"0"}`) // the first with tools makes the key of the store
	counted.written.Store(0)
	send(t, a, `call one {"text":"1"}`)
	if n := counted.written.Load(); n != 2 {
		t.Errorf("a turn wrote %d notes, want 2", n)
	}
}

// countedNotes is a store that counts how often its notes are written.
type countedNotes struct {
	store.Store
	written atomic.Int32
}

func (c *countedNotes) Unwrap() store.Store { return c.Store }

func (c *countedNotes) Notes(room string) store.Notes { return &noteCounter{c.Store.Notes(room), c} }

type noteCounter struct {
	store.Notes
	of *countedNotes
}

func (n *noteCounter) Write(ctx context.Context, name string, data []byte) error {
	n.of.written.Add(1)
	return n.Notes.Write(ctx, name, data)
}

func (n *noteCounter) WriteHint(ctx context.Context, name string, data []byte) error {
	n.of.written.Add(1)
	return n.Notes.WriteHint(ctx, name, data)
}

func (n *noteCounter) Change(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	n.of.written.Add(1)
	return n.Notes.Change(ctx, name, change)
}

func (n *noteCounter) Remove(ctx context.Context, name string) error {
	n.of.written.Add(1)
	return n.Notes.Remove(ctx, name)
}

// TestWhatOthersDidSince: an agent goes on after what others have said. If they have gone
// elsewhere, it stays, because its person has not seen that, and says so.
func TestWhatOthersDidSince(t *testing.T) {
	t.Parallel()
	s, st := shared(t)
	one := startIn(t, s, agent.Options{})
	send(t, one, "peas")
	two := startIn(t, open(t, st, "shared"), agent.Options{})
	news := two.Subscribe(0)
	hear := func() (added int64, conflict bool) {
		for e := range news.Events(t.Context()) {
			switch e.Type {
			case agent.CaughtUp:
				added = e.Missed
			case agent.Error:
				conflict = errors.Is(e.Err, session.ErrConflict)
			case agent.TurnEnd:
				return added, conflict
			}
		}
		return added, conflict
	}
	send(t, one, "carrots")
	send(t, two, "beans")
	if added, conflict := hear(); added != 2 || conflict {
		t.Errorf("%d messages were added, a conflict: %v", added, conflict)
	}
	send(t, one, "leek")
	if _, err := one.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	send(t, two, "kale")
	if added, conflict := hear(); added != 2 || conflict {
		t.Errorf("after a retry of what it had not seen, %d messages were added, a conflict: %v", added, conflict)
	}
	if _, err := one.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Retry(t.Context()); err != nil { // two's last answer
		t.Fatal(err)
	}
	send(t, two, "chard")
	if added, conflict := hear(); added != 0 || !conflict {
		t.Errorf("after a retry of what it had seen, %d messages were added, a conflict: %v", added, conflict)
	}
}
