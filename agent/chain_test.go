package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/lease"
	"github.com/coppice-dev/coppice/store/memory"
)

// noted is a model that notes what it is sent. It calls a tool as often as the prompt says.
type noted struct {
	offline.Model
	bodies []string
}

func (m *noted) Stream(ctx context.Context, r *provider.Request) iter.Seq2[provider.Event, error] {
	encoded := r.Encoded
	if encoded == nil {
		encoded, _ = m.Encode(r)
	}
	m.bodies = append(m.bodies, string(encoded.Body))
	last := r.Entries[len(r.Entries)-1].Message
	if last == nil || last.Role != session.RoleTool || len(r.Tools) == 0 {
		return m.Model.Stream(ctx, r)
	}
	steps, wanted := 0, 0
	for _, e := range slices.Backward(r.Entries) {
		if e.BeginsTurn() {
			_, _ = fmt.Sscanf(session.TextOf(e.Message.Content), "call one {\"text\":\"%d", &wanted)
			break
		}
		if e.Message != nil && e.Message.Role == session.RoleTool {
			steps++
		}
	}
	if steps >= wanted {
		return m.Model.Stream(ctx, r)
	}
	r = &provider.Request{Tools: r.Tools, Entries: []session.Entry{{Type: session.TypeMessage, Message: &session.MessageEntry{
		Role: session.RoleUser, Content: []session.Content{session.Text(fmt.Sprintf("call one {\"text\":\"again %d\"}", steps))},
	}}}}
	return m.Model.Stream(ctx, r)
}

// side is one of two agents to which the same is done.
type side struct {
	st    store.Store
	s     *session.Session
	a     *agent.Agent
	model *noted
	o     agent.Options
}

func (s *side) open(t *rapid.T, name string) {
	var err error
	if s.a != nil {
		if err := errors.Join(s.a.Close(), s.s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if s.s, err = session.Open(t.Context(), s.st, name, nil); err != nil {
		t.Fatal(err)
	}
	if s.a, err = agent.New(s.s, s.o); err != nil {
		t.Fatal(err)
	}
}

// links returns the sessions of the conversation.
func (s *side) links(t *rapid.T) []string {
	links, err := session.Chain(t.Context(), s.st, "talk")
	if err != nil {
		t.Fatal(err)
	}
	return links
}

// Wherever a conversation goes on in another session, in the middle of a turn too, each
// request is the same, byte for byte, as if it had stayed in one.
func TestABoundaryChangesNoRequest(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 9).Draw(t, "limit")
		var sides [2]*side
		for i := range sides {
			s := &side{st: memory.New(nil), model: &noted{}}
			s.o = agent.Options{Model: s.model, System: "be brief", Tools: []agent.Tool{echo("one")}, Boundary: limit * i, Compaction: agent.Compaction{Window: 900, Reserve: 200, Keep: 120}}
			first, err := session.Create(t.Context(), s.st, session.Header{ID: "talk"}, nil)
			if err = errors.Join(err, first.Close()); err != nil {
				t.Fatal(err)
			}
			s.open(t, "talk")
			sides[i] = s
		}
		one, chain := sides[0], sides[1]
		both := func(what string, do func(*side) error) {
			err := do(chain)
			if err != nil && strings.Contains(err.Error(), "earlier session") {
				return // the only thing that a boundary changes
			}
			if alone := do(one); (err == nil) != (alone == nil) {
				t.Fatalf("%s: %v, and %v in one session", what, err, alone)
			}
			n := slices.IndexFunc(one.model.bodies, func(body string) bool { return !slices.Contains(chain.model.bodies, body) })
			if !slices.Equal(one.model.bodies, chain.model.bodies) {
				t.Fatalf("%s: the requests differ, from the %dth on:\n%s", what, n, cmp.Diff(one.model.bodies[max(n, 0):], chain.model.bodies[max(n, 0):]))
			}
		}
		for i := range rapid.IntRange(1, 15).Draw(t, "steps") {
			switch what := rapid.SampledFrom([]string{"say", "say", "work", "work", "work", "system", "retry", "branch", "compact", "undo", "reopen"}).Draw(t, "what"); what {
			case "say":
				both(what, func(s *side) error {
					_, err := s.a.Send(t.Context(), session.Text(fmt.Sprint("hello ", i)))
					return err
				})
			case "work":
				n := rapid.IntRange(1, 5).Draw(t, "calls")
				both(what, func(s *side) error {
					_, err := s.a.Send(t.Context(), session.Text(fmt.Sprintf("call one {\"text\":\"%d\"}", n)))
					return err
				})
			case "system":
				both(what, func(s *side) error { return s.a.SetSystem(fmt.Sprint("be ", i)) })
			case "retry":
				both(what, func(s *side) error { _, err := s.a.Retry(t.Context()); return err })
			case "branch":
				back := rapid.IntRange(0, 6).Draw(t, "back")
				both(what, func(s *side) error {
					c, err := s.a.Session().Context(session.ContextOptions{})
					if err != nil || len(c.Entries) <= back || c.Entries[len(c.Entries)-1-back].Message == nil {
						return err
					}
					return s.a.Branch(t.Context(), c.Entries[len(c.Entries)-1-back].ID, false)
				})
			case "compact":
				both(what, func(s *side) error { _, err := s.a.Compact(t.Context(), ""); return err })
			case "undo":
				both(what, func(s *side) error { return s.a.Undo() })
			case "reopen":
				chain.open(t, rapid.SampledFrom(chain.links(t)).Draw(t, "session"))
				one.open(t, "talk")
			}
		}
		for r, err := range agent.Records(chain.a.Session()) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Leaf == "" {
				continue
			}
			if _, same, err := r.Rebuild(chain.a.Session(), chain.model); !same || err != nil {
				t.Fatalf("request %s cannot be rebuilt: %v", r.ID, err)
			}
		}
		for _, s := range sides {
			if err := errors.Join(s.a.Close(), s.s.Close(), s.st.Close()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A program that dies between naming the next session and creating it loses nothing, and the
// one that goes on makes the session that was named. Other programs go on at the end.
func TestABoundaryThatWasCutShort(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	a := startIn(t, s, agent.Options{})
	send(t, a, "one")
	if _, err := open(t, s.Store(), s.ID()).AppendCustomEntry(session.CustomContinuedTo, map[string]any{"session": "next", "of": s.ID()}); err != nil {
		t.Fatal(err)
	}
	b := startIn(t, open(t, s.Store(), s.ID()), agent.Options{})
	send(t, b, "two")
	if last := b.Session().SessionOf(""); last != "next" {
		t.Errorf("it goes on in session %q", last)
	}
	if lines := said(t, b.Session()); len(lines) != 4 || lines[3] != "assistant: You said: two" {
		t.Errorf("the conversation is %q", lines)
	}
	links, err := session.Chain(t.Context(), s.Store(), s.ID())
	if err != nil || len(links) != 2 {
		t.Errorf("the sessions are %v, %v", links, err)
	}
	// The first agent does not know of the other session.
	if _, err := a.Send(t.Context(), session.Text("three")); !errors.Is(err, session.ErrConflict) || !strings.Contains(err.Error(), `"next"`) {
		t.Errorf("an agent in the first session: %v", err)
	}
}

// An agent that crosses a boundary keeps its lease, and another one that has the conversation
// open goes on where it is.
func TestTheLeaseCrossesABoundary(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	holders := make(map[string]bool)
	var a *agent.Agent
	watch := echo("one")
	run := watch.Run
	watch.Run = func(ctx context.Context, c agent.Call) (agent.Result, error) {
		last := a.Session().SessionOf("")
		if h, err := lease.At(s.Store(), s.ID()).Holder(ctx); h != nil && err == nil && c.Session == last {
			holders[last] = true
		}
		return run(ctx, c)
	}
	o := agent.Options{Tools: []agent.Tool{watch}, Boundary: 2, Model: &noted{}}
	a = startIn(t, s, o)
	other := startIn(t, open(t, s.Store(), s.ID()), agent.Options{Boundary: 100})
	events := a.Subscribe(0)
	send(t, a, `call one {"text":"4"}`)
	links, err := session.Chain(t.Context(), s.Store(), s.ID())
	if err != nil || len(links) < 3 || len(holders) != len(links)-1 {
		t.Errorf("it worked in %v of %v, %v", holders, links, err)
	}
	for _, name := range links {
		if h, err := lease.At(s.Store(), name).Holder(t.Context()); h != nil || err != nil {
			t.Errorf("after the turn, %v works in %s, %v", h, name, err)
		}
	}
	seen := make(map[string]bool)
	_ = a.Close()
	for e := range events.Events(t.Context()) {
		seen[e.Session] = true
	}
	if len(seen) != len(links) {
		t.Errorf("there are events of %v", seen)
	}
	send(t, other, "hello")
	if last := other.Session().SessionOf(""); last != links[len(links)-1] {
		t.Errorf("the other goes on in %s, want %s", last, links[len(links)-1])
	}
	if lines := said(t, other.Session()); len(lines) != 12 {
		t.Errorf("the conversation is %q", lines)
	}
}
