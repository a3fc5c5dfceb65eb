package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// dialects runs a test against a server in every dialect. The server refuses what the
// real ones refuse.
func dialects(t *testing.T, answer func(*providertest.Request) providertest.Answer, test func(*testing.T, *providertest.Server, provider.Model)) {
	t.Helper()
	for _, name := range client.Providers() {
		t.Run(name, func(t *testing.T) {
			server := providertest.New(t, answer)
			test(t, server, clientOf(t, name, server))
		})
	}
}

// clientOf returns a client that speaks a dialect to a server.
func clientOf(t *testing.T, dialect string, server *providertest.Server) provider.Model {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	model, err := client.New(client.Options{
		Provider: dialect, Model: "m", BaseURL: server.URL, HTTP: &http.Client{Transport: transport},
		Timeouts: client.Timeouts{Retry: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// steps returns how often the model has spoken since the user did.
func steps(r *providertest.Request) int {
	n := 0
	for i := range r.Entries {
		switch {
		case r.Entries[i].BeginsTurn():
			n = 0
		case r.Entries[i].Message != nil && r.Entries[i].Message.Role == session.RoleAssistant:
			n++
		}
	}
	return n
}

func TestToolLoopInEveryDialect(t *testing.T) {
	t.Parallel()
	answer := func(r *providertest.Request) providertest.Answer {
		m := session.MessageEntry{Role: session.RoleAssistant, StopReason: provider.StopEndTurn}
		n := steps(r)
		if n >= 5 {
			m.Content = []session.Content{session.Text("done")}
			return providertest.Answer{Message: m}
		}
		m.StopReason = provider.StopToolUse
		for i := range 1 + n {
			id := fmt.Sprintf("call_%d_%d", n, i)
			m.Content = append(m.Content, session.ToolUse(id, "one", map[string]any{"text": id}))
		}
		return providertest.Answer{Message: m}
	}
	dialects(t, answer, func(t *testing.T, server *providertest.Server, model provider.Model) {
		// Results come in another order than the calls.
		one := echo("one")
		run := one.Run
		one.Run = func(ctx context.Context, c agent.Call) (agent.Result, error) {
			if strings.Contains(string(c.Input), `_0"`) {
				time.Sleep(time.Millisecond)
			}
			return run(ctx, c)
		}
		a := start(t, agent.Options{Model: model, System: "go on", Tools: []agent.Tool{one}, Parallel: 3})
		for range 2 {
			if out := send(t, a, "go"); out.Steps != 6 {
				t.Errorf("%d steps, want 6", out.Steps)
			}
		}
		check(t, a.Session())
		for r, err := range agent.Records(a.Session()) {
			if err != nil {
				t.Fatal(err)
			}
			if _, same, err := r.Rebuild(a.Session(), model); err != nil || !same {
				t.Errorf("a request cannot be rebuilt: %v", err)
			}
		}
		sent := server.Requests()
		last := 0
		for r, err := range agent.Records(a.Session()) {
			if err != nil {
				t.Fatal(err)
			}
			if body, _, _ := r.Rebuild(a.Session(), model); !slices.Equal(body, sent[last].Body) {
				t.Errorf("request %d was sent in other bytes", last)
			}
			last++
		}
	})
}

// TestCutInTheMiddleOfCalls breaks the answer off after every event, with a tool call in
// it. The agent asks again, and the call runs once.
func TestCutInTheMiddleOfCalls(t *testing.T) {
	t.Parallel()
	for cut := 1; cut < 12; cut++ {
		requests := 0
		answer := func(r *providertest.Request) providertest.Answer {
			requests++
			a := providertest.Answer{Message: session.MessageEntry{
				Role: session.RoleAssistant, StopReason: provider.StopToolUse,
				Content: []session.Content{session.Text("I look."), session.ToolUse("call_1", "one", map[string]any{"text": "1"})},
			}}
			switch {
			case steps(r) > 0:
				a.Message.Content, a.Message.StopReason = a.Message.Content[:1], provider.StopEndTurn
			case requests == 1:
				a.Cut = cut
			}
			return a
		}
		dialects(t, answer, func(t *testing.T, _ *providertest.Server, model provider.Model) {
			requests = 0
			ran := 0
			one := echo("one")
			one.Run = func(context.Context, agent.Call) (agent.Result, error) {
				ran++
				return agent.Result{Text: "1"}, nil
			}
			a := start(t, agent.Options{Model: model, Tools: []agent.Tool{one}, RetryWait: 1})
			out := send(t, a, "go")
			if ran != 1 || out.Stop != provider.StopEndTurn {
				t.Errorf("cut after %d events: the call ran %d times, stop %q", cut, ran, out.Stop)
			}
			check(t, a.Session())
		})
	}
}

func TestOverflowInEveryDialect(t *testing.T) {
	t.Parallel()
	words := map[string]string{
		"anthropic":   `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`,
		"openai":      `{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","code":"context_length_exceeded"}}`,
		"openai-chat": `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`,
		"google":      `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`,
	}
	answer := func(r *providertest.Request) providertest.Answer {
		if len(r.Body) > 6000 {
			return providertest.Answer{Status: http.StatusBadRequest, Body: words[r.Dialect]}
		}
		return providertest.Answer{Message: session.MessageEntry{
			Role: session.RoleAssistant, StopReason: provider.StopEndTurn,
			Content: []session.Content{session.Text("## Goal\nto go on")},
		}}
	}
	dialects(t, answer, func(t *testing.T, _ *providertest.Server, model provider.Model) {
		a := start(t, agent.Options{Model: model, Compaction: agent.Compaction{Keep: 200, MaxSummary: 200}})
		for i := range 12 {
			_, err := a.Send(t.Context(), session.Text(fmt.Sprint(i, strings.Repeat(" words and words", 40))))
			if err != nil {
				t.Fatalf("turn %d: %v", i, err)
			}
		}
		if all := strings.Join(said(t, a.Session()), "\n"); !strings.Contains(all, "summary: ") {
			t.Errorf("nothing was compacted:\n%s", all)
		}
		check(t, a.Session())
	})
}

func TestLimitsAndFailures(t *testing.T) {
	t.Parallel()
	requests := 0
	answer := func(*providertest.Request) providertest.Answer {
		requests++
		switch requests {
		case 1:
			return providertest.Answer{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"0"}}, Body: `{"error":{"message":"slow down"}}`}
		case 2:
			return providertest.Answer{Status: http.StatusInternalServerError, Body: "oh"}
		case 3:
			return providertest.Answer{Status: 529, Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}
		}
		return providertest.Answer{Message: session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{session.Text("at last")}, StopReason: provider.StopEndTurn}}
	}
	dialects(t, answer, func(t *testing.T, _ *providertest.Server, model provider.Model) {
		requests = 0
		a := start(t, agent.Options{Model: model})
		news := a.Subscribe(0)
		send(t, a, "hello")
		_ = a.Close()
		retries := 0
		for e := range news.Events(t.Context()) {
			if e.Type == agent.Retry {
				retries++
			}
		}
		if retries != 3 {
			t.Errorf("%d retries were told of, want 3", retries)
		}
		if lines := said(t, a.Session()); len(lines) != 2 {
			t.Errorf("the conversation is %q", lines)
		}
	})
}

// TestResumeByState resumes a call from every state that a log can have it in.
func TestResumeByState(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state      agent.CallState
		repeatable bool
		runs       int
	}{
		{agent.CallNew, false, 1},
		{agent.CallNew, true, 1},
		{agent.CallRunning, false, 0},
		{agent.CallRunning, true, 1},
		{agent.CallWaiting, false, 1},
	} {
		t.Run(fmt.Sprint(tt.state, tt.repeatable), func(t *testing.T) {
			s := newSession(t)
			_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("go")})
			if err == nil {
				var id string
				if id, err = s.AppendMessage(session.RoleAssistant, []session.Content{session.ToolUse("c", "one", map[string]any{"text": "1"})}); err == nil {
					err = agent.RecordCalls(s, id)
				}
			}
			if err == nil && tt.state != agent.CallNew {
				_, err = s.AppendCustomEntry(session.CustomCalls, map[string]any{"state": string(tt.state), "calls": []any{"c"}})
			}
			if err != nil {
				t.Fatal(err)
			}
			ran := 0
			one := echo("one")
			one.Repeatable = tt.repeatable
			one.Run = func(context.Context, agent.Call) (agent.Result, error) {
				ran++
				return agent.Result{Text: "1"}, nil
			}
			a := startIn(t, s, agent.Options{Tools: []agent.Tool{one}})
			pending, err := a.Pending()
			if err != nil || len(pending) != 1 || pending[0].State != tt.state {
				t.Fatalf("pending: %+v, %v", pending, err)
			}
			if out, err := a.Resume(t.Context()); err != nil || out.Steps != 1 {
				t.Fatalf("%+v, %v", out, err)
			}
			if ran != tt.runs {
				t.Errorf("the call ran %d times, want %d", ran, tt.runs)
			}
			if tt.runs == 0 && !strings.Contains(strings.Join(said(t, s), "\n"), "interrupted") {
				t.Errorf("the model must know: %q", said(t, s))
			}
			check(t, s)
		})
	}
}

func TestSpeakingInsteadOfResuming(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("go")})
	if err == nil {
		_, err = s.AppendMessage(session.RoleAssistant, []session.Content{session.ToolUse("c", "one", map[string]any{"text": "1"})})
	}
	if err != nil {
		t.Fatal(err)
	}
	one := echo("one")
	one.Run = func(context.Context, agent.Call) (agent.Result, error) { panic("nobody wants it any more") }
	a := startIn(t, s, agent.Options{Tools: []agent.Tool{one}})
	send(t, a, "never mind")
	if lines := said(t, s); len(lines) != 5 || !strings.Contains(lines[2], "interrupted") {
		t.Errorf("the conversation is\n%s", strings.Join(lines, "\n"))
	}
	check(t, s)
}

// TestAnotherWriter: somebody else writes into the session while the model answers. What
// the model said is kept, on a branch of its own.
func TestAnotherWriter(t *testing.T) {
	t.Parallel()
	st := newStore(t)
	s, err := session.Create(t.Context(), st, session.Header{ID: "shared"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other, err := session.Open(t.Context(), st, "shared", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
		_, err := other.Refresh()
		if err == nil {
			_, err = other.AppendMessage(session.RoleUser, []session.Content{session.Text("me too")})
		}
		return &session.MessageEntry{Content: []session.Content{session.Text("paid for")}}, err
	}}
	a := startIn(t, s, agent.Options{Model: model})
	news := a.Subscribe(0)
	out := send(t, a, "hello")
	if lines := said(t, s); !slices.Equal(lines, []string{"user: hello", "assistant: paid for"}) || out.Message == nil {
		t.Errorf("the conversation is %q", lines)
	}
	leaves, err := s.Leaves()
	if err != nil || len(leaves) != 2 {
		t.Errorf("branches: %v, %v", leaves, err)
	}
	_ = a.Close()
	told := false
	for e := range news.Events(t.Context()) {
		told = told || e.Type == agent.Error && errors.Is(e.Err, session.ErrConflict)
	}
	if !told {
		t.Error("nobody was told of the other writer")
	}
}

// TestDraftSurvives: the program dies while an answer arrives. What people have read is
// there when the next one opens the session.
func TestDraftSurvives(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"send", "resume"} {
		t.Run(next, func(t *testing.T) {
			st := newStore(t)
			s, err := session.Create(t.Context(), st, session.Header{ID: "s"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var after []string
			reader := func() { // another program, at the moment of the death
				dead, err := session.Open(t.Context(), st, "s", nil)
				if err != nil {
					t.Fatal(err)
				}
				copied, err := dead.Fork(t.Context(), st, &session.ForkOptions{Header: &session.Header{ID: "copy"}})
				if err != nil {
					t.Fatal(err)
				}
				defer copied.Close()
				defer dead.Close()
				b := startIn(t, copied, agent.Options{})
				if next == "send" {
					send(t, b, "go on")
				} else if out, err := b.Resume(t.Context()); err != nil || out.Steps != 1 {
					t.Errorf("resume: %+v, %v", out, err)
				}
				after = said(t, copied)
				leaves, err := copied.Leaves()
				if err != nil || len(leaves) != map[string]int{"send": 1, "resume": 2}[next] {
					t.Errorf("branches: %v, %v", leaves, err)
				}
				var all []string
				for e, err := range copied.Entries() {
					if err == nil && e.Message != nil {
						all = append(all, session.TextOf(e.Message.Content))
					}
				}
				if !slices.Contains(all, "What you have read.") {
					t.Errorf("the draft is lost: %q", all)
				}
				check(t, copied)
			}
			model := provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(_ context.Context, _ *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
				err := errors.Join(tell("What you "), tell("have read."))
				reader()
				return nil, err
			}}
			a := startIn(t, s, agent.Options{Model: model, Draft: 1})
			send(t, a, "speak")
			if want := map[string]int{"send": 4, "resume": 2}[next]; len(after) != want {
				t.Errorf("the conversation is %q", after)
			}
			if lines := said(t, s); len(lines) != 2 || lines[1] != "assistant: What you have read." {
				t.Errorf("where nobody died, the conversation is %q", lines)
			}
		})
	}
}
