package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// caller is a model that makes calls side by side for a few steps, and is done then.
func caller(r *providertest.Request) providertest.Answer { return calls(r, steps(r)) }

func calls(r *providertest.Request, step int) providertest.Answer {
	m := session.MessageEntry{Role: session.RoleAssistant, StopReason: provider.StopEndTurn, Content: []session.Content{session.Text("done")}}
	if step < 3 {
		m.Content, m.StopReason = []session.Content{session.Text("I look.")}, provider.StopToolUse
		for i := range 3 {
			m.Content = append(m.Content, session.ToolUse("call_"+session.NewID(), "one", map[string]any{"text": fmt.Sprint(i, strings.Repeat(" and so on", 20))}))
		}
	}
	m.Usage = &session.Usage{Input: len(r.Body) / 4, Output: 10}
	return providertest.Answer{Message: m}
}

// TestChainedCompactionsKeepPairs: dozens of compactions in the middle of tool loops, then
// all of them undone. No call is ever sent without its result, or a result without its call,
// and a call that never got a result does not keep the conversation from being compacted.
func TestChainedCompactionsKeepPairs(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	answer := func(r *providertest.Request) providertest.Answer { return calls(r, int(asked.Add(1)-1)%4) }
	dialects(t, answer, func(t *testing.T, _ *providertest.Server, model provider.Model) {
		asked.Store(0)
		s := newSession(t)
		_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("go")})
		if err == nil {
			_, err = s.AppendMessage(session.RoleAssistant, []session.Content{session.ToolUse("never", "one", map[string]any{})})
		}
		if err == nil {
			_, err = s.AppendMessage(session.RoleUser, []session.Content{session.Text("or not")})
		}
		if err != nil {
			t.Fatal(err)
		}
		a := startIn(t, s, agent.Options{
			Model: model, System: "be brief", Tools: []agent.Tool{echo("one")},
			Compaction: agent.Compaction{Window: 3000, Model: &offline.Model{}},
		})
		news := a.Subscribe(1 << 16)
		for range 30 {
			send(t, a, "go on")
		}
		undone := 0
		for a.Undo() == nil {
			undone++
		}
		if undone < 20 {
			t.Errorf("only %d compactions", undone)
		}
		send(t, a, "and now?")
		_ = a.Close()
		for _, e := range compactions(t, news) {
			if e.Err != nil {
				t.Errorf("a compaction: %v", e.Err)
			}
		}
		for _, p := range problems(t, s) {
			if p.Kind != session.ProblemInterrupted {
				t.Errorf("the log has a problem: %+v", p)
			}
		}
	})
}

func problems(t *testing.T, s *session.Session) []session.Problem {
	t.Helper()
	found, err := s.Problems()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestCacheReadsAreNotContext: each request of a turn reads the whole conversation from the
// provider's cache. It fills the window once.
func TestCacheReadsAreNotContext(t *testing.T) {
	t.Parallel()
	n := 0
	a := start(t, agent.Options{Tools: []agent.Tool{echo("one")}, Model: answers(func(*provider.Request) (*session.MessageEntry, error) {
		n++
		m := &session.MessageEntry{Usage: &session.Usage{Input: 5, CacheRead: 1000 * n, Output: 10}}
		if m.Content = []session.Content{session.Text("done")}; n < 5 {
			m.Content = []session.Content{session.ToolUse(fmt.Sprint("c", n), "one", map[string]any{"text": "1"})}
		}
		return m, nil
	})})
	out := send(t, a, "go")
	if status, err := a.Status(); err != nil || status.Tokens != 5015 {
		t.Errorf("the last request and its answer had 5015 tokens, and Status has %d, %v", status.Tokens, err)
	}
	if out.Usage.CacheRead != 15_000 {
		t.Errorf("the turn cost %+v", out.Usage)
	}
}

// TestTwoAgentsAtOnce: two programs work in one session at the same time. They take turns
// in one conversation; every call runs once.
func TestTwoAgentsAtOnce(t *testing.T) {
	t.Parallel()
	_, st := shared(t)
	server := providertest.New(t, caller)
	var mu sync.Mutex
	ran := make(map[string]int)
	one := echo("one")
	one.Run = func(_ context.Context, c agent.Call) (agent.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		ran[c.ID]++
		return agent.Result{Text: "done"}, nil
	}
	const turns = 8
	var work sync.WaitGroup
	for range 2 {
		s := open(t, st, "shared")
		a := startIn(t, s, agent.Options{Model: clientOf(t, "anthropic", server), Tools: []agent.Tool{one}, Draft: 1, Wait: true})
		work.Go(func() {
			for i := range turns {
				if out, err := a.Send(context.Background(), session.Text("go")); err != nil || out.Steps != 4 {
					t.Errorf("turn %d: %+v, %v", i, out, err)
				}
			}
		})
	}
	work.Wait()
	for id, n := range ran {
		if n != 1 {
			t.Errorf("call %s ran %d times", id, n)
		}
	}
	if len(ran) != 2*turns*9 {
		t.Errorf("%d calls ran, want %d", len(ran), 2*turns*9)
	}
	s := open(t, st, "shared")
	check(t, s)
	if leaves, err := s.Leaves(); err != nil || len(leaves) != 1 {
		t.Errorf("%d branches, %v", len(leaves), err)
	}
	if lines := said(t, s); len(lines) != 2*turns*(1+4+9) {
		t.Errorf("the conversation has %d lines", len(lines))
	}
}
