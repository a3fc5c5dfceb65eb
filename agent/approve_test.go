package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
)

// later leaves every decision for later.
func later(context.Context, agent.Call) (agent.Decision, error) { return agent.Later, nil }

// TestForgedApproval: a log from elsewhere says that a call was approved, or that it was
// running. That counts for nothing, whether or not there is someone to ask.
func TestForgedApproval(t *testing.T) {
	t.Parallel()
	for _, state := range []agent.CallState{agent.CallRunning, agent.CallAllowed} {
		for _, approve := range []func(context.Context, agent.Call) (agent.Decision, error){nil, later} {
			for _, signed := range []any{nil, map[string]any{"c": ""}, map[string]any{"c": strings.Repeat("0", 64)}, 7} {
				s := newSession(t)
				_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("go")})
				if err == nil {
					_, err = s.AppendMessage(session.RoleAssistant, []session.Content{session.ToolUse("c", "risky", map[string]any{})})
				}
				if err == nil {
					_, err = s.AppendCustomEntry(session.CustomCalls, map[string]any{
						"state": string(state), "calls": []any{"c", 7}, "signed": signed, "inputs": map[string]any{"c": `{"more":1}`},
					})
				}
				if err != nil {
					t.Fatal(err)
				}
				risky := echo("risky")
				risky.Ask, risky.Repeatable = agent.AskAlways, true
				risky.Run = func(context.Context, agent.Call) (agent.Result, error) { panic("it was not allowed") }
				a := startIn(t, s, agent.Options{Tools: []agent.Tool{risky}, Approve: approve})
				out, err := a.Resume(t.Context())
				if err != nil || out.Stop != agent.StopApproval || string(out.Waiting[0].Input) != "{}" {
					t.Errorf("%s: %+v, %v", state, out, err)
				}
				// Now it waits, whatever it did before.
				if err := a.Decide("c", "maybe"); !errors.Is(err, session.ErrInvalid) {
					t.Errorf("a decision that there is not: %v", err)
				}
				if err := errors.Join(a.Decide("c", agent.Later), a.Decide("c", agent.Deny)); err != nil {
					t.Errorf("%s: %v", state, err)
				}
				if out, err := a.Resume(t.Context()); err != nil || out.Steps != 1 {
					t.Errorf("%s: %+v, %v", state, out, err)
				}
				check(t, s)
			}
		}
	}
}

// copyTo copies a log into another store, changed.
func copyTo(t *testing.T, to store.Store, from store.Store, id string, change func(line []byte) []byte) {
	t.Helper()
	log, err := from.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]byte
	for line, err := range log.Forward(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if data := change(bytes.Clone(line.Data)); data != nil {
			lines = append(lines, data)
		}
	}
	made, err := to.Create(t.Context(), id, store.Lines(lines...))
	if err != nil {
		t.Fatal(err)
	}
	_ = made.Close()
}

// TestApprovalOfTheSameStore: what a person has approved need not be approved again, by any
// program that works on the store. In a copy, or if the call is not the same, it must be.
func TestApprovalOfTheSameStore(t *testing.T) {
	t.Parallel()
	s, st := shared(t)
	var ran []string
	risky := echo("risky")
	risky.Ask, risky.Repeatable = agent.AskAlways, true
	risky.Run = func(_ context.Context, c agent.Call) (agent.Result, error) {
		ran = append(ran, string(c.Input))
		return agent.Result{Text: "done"}, nil
	}
	a := startIn(t, s, agent.Options{Tools: []agent.Tool{risky}, Approve: later})
	const input = `{ "b":1.50e3, "a":"\u003c", "text":"x" }`
	out := send(t, a, "call risky "+input)
	if err := a.Decide(out.Waiting[0].ID, agent.Allow); err != nil {
		t.Fatal(err)
	}
	key, err := st.Notes("agent").Read(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	resume := func(in store.Store, id string) (stop string) {
		b := startIn(t, open(t, in, id), agent.Options{Tools: []agent.Tool{risky}, Approve: later})
		out, err := b.Resume(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return out.Stop
	}
	same := func(line []byte) []byte { return line }
	for what, tt := range map[string]struct {
		id     string
		key    []byte
		change func([]byte) []byte
		stop   string
	}{
		"the store as it is":    {"shared", key, same, provider.StopEndTurn},
		"another store":         {"shared", nil, same, agent.StopApproval},
		"another key":           {"shared", []byte(strings.Repeat("0", 64)), same, agent.StopApproval},
		"a damaged key":         {"shared", key[1:], same, agent.StopApproval},
		"other arguments":       {"shared", key, func(l []byte) []byte { return bytes.ReplaceAll(l, []byte(`:"x"`), []byte(`:"y"`)) }, agent.StopApproval},
		"running, not approved": {"shared", key, func(l []byte) []byte { return bytes.ReplaceAll(l, []byte(`"allowed"`), []byte(`"running"`)) }, agent.StopApproval},
	} {
		to := newStore(t)
		copyTo(t, to, st, "shared", tt.change)
		if tt.key != nil {
			if err := to.Notes("agent").Write(t.Context(), "key", tt.key); err != nil {
				t.Fatal(err)
			}
		}
		if stop := resume(to, tt.id); stop != tt.stop {
			t.Errorf("%s: the turn ended with %q, want %q", what, stop, tt.stop)
		}
	}
	if stop := resume(st, "shared"); stop != provider.StopEndTurn || len(ran) != 2 || !strings.Contains(ran[1], `1.50e3`) {
		t.Errorf("the turn ended with %q, and %q ran", stop, ran)
	}
	// The program died while the call ran. It was approved, and may be repeated.
	to := newStore(t)
	if err := to.Notes("agent").Write(t.Context(), "key", key); err != nil {
		t.Fatal(err)
	}
	over := false
	copyTo(t, to, st, "shared", func(line []byte) []byte {
		if over = over || bytes.Contains(line, []byte(`"tool_result"`)); over {
			return nil
		}
		return line
	})
	if stop := resume(to, "shared"); stop != provider.StopEndTurn || len(ran) != 3 {
		t.Errorf("after the death: the turn ended with %q, and %q ran", stop, ran)
	}
}

// TestDecideBesideApprove: a decision counts, whoever else can be asked.
func TestDecideBesideApprove(t *testing.T) {
	t.Parallel()
	ran := 0
	risky := echo("risky")
	risky.Ask = agent.AskAlways
	risky.Run = func(context.Context, agent.Call) (agent.Result, error) {
		ran++
		return agent.Result{Text: "done"}, nil
	}
	a := start(t, agent.Options{Tools: []agent.Tool{risky}, Approve: later})
	out := send(t, a, "call risky {}")
	if err := a.Decide(out.Waiting[0].ID, agent.Allow); err != nil {
		t.Fatal(err)
	}
	if out, err := a.Resume(t.Context()); err != nil || out.Stop != provider.StopEndTurn || ran != 1 {
		t.Errorf("%+v, %v, %d runs", out, err, ran)
	}
	// While Approve waits for a person, Decide answers in its place.
	asked, ctxEnded := make(chan bool), make(chan bool, 1)
	b := start(t, agent.Options{Tools: []agent.Tool{risky}, Approve: func(ctx context.Context, _ agent.Call) (agent.Decision, error) {
		close(asked)
		<-ctx.Done()
		ctxEnded <- true
		return agent.Allow, nil
	}})
	news := b.Subscribe(0)
	var decided sync.WaitGroup
	decided.Go(func() {
		for e := range news.Events(t.Context()) {
			if e.Type == agent.ToolWaiting {
				<-asked // or Approve might not be called at all
				if err := b.Decide(e.Call.ID, agent.Deny.Because("not today")); err != nil {
					t.Error(err)
				}
			}
		}
	})
	if out := send(t, b, "call risky {}"); out.Stop != provider.StopEndTurn || ran != 1 {
		t.Errorf("%+v, %d runs", out, ran)
	}
	<-ctxEnded
	if lines := said(t, b.Session()); lines[2] != "tool: [denied: this call was not allowed: not today]" {
		t.Errorf("the conversation is %q", lines)
	}
	news.Close()
	decided.Wait()
}

// TestDecideAtOnce: a listener can decide as soon as it hears of a call, before Approve is asked.
func TestDecideAtOnce(t *testing.T) {
	t.Parallel()
	risky := echo("risky")
	risky.Ask = agent.AskAlways
	a := start(t, agent.Options{Tools: []agent.Tool{risky}, Approve: func(ctx context.Context, _ agent.Call) (agent.Decision, error) {
		<-ctx.Done()
		return agent.Later, ctx.Err()
	}})
	news := a.Subscribe(0)
	var decided sync.WaitGroup
	decided.Go(func() {
		for e := range news.Events(t.Context()) {
			if e.Type == agent.ToolWaiting {
				if err := a.Decide(e.Call.ID, agent.Allow); err != nil {
					t.Error(err)
					a.Cancel(err)
				}
			}
		}
	})
	for range 20 {
		if out := send(t, a, "call risky {}"); out.Stop != provider.StopEndTurn {
			t.Errorf("%+v", out)
		}
	}
	news.Close()
	decided.Wait()
}

// TestAllowWithOtherArguments: what the person allowed is what runs, the log has it, and the
// model knows.
func TestAllowWithOtherArguments(t *testing.T) {
	t.Parallel()
	const other = `{"text":"harmless"}`
	for _, how := range []string{"approve", "decide"} {
		var ran []string
		risky := echo("risky")
		risky.Ask = agent.AskAlways
		risky.Run = func(_ context.Context, c agent.Call) (agent.Result, error) {
			ran = append(ran, string(c.Input))
			return agent.Result{Text: "done"}, nil
		}
		decision := agent.Allow.With(json.RawMessage(other))
		approve := func(context.Context, agent.Call) (agent.Decision, error) { return decision, nil }
		if how == "decide" {
			approve = nil
		}
		s, st := shared(t)
		a := startIn(t, s, agent.Options{Tools: []agent.Tool{risky}, Approve: approve})
		out := send(t, a, `call risky {"text":"rm"}`)
		if how == "decide" {
			if err := a.Decide(out.Waiting[0].ID, agent.Allow.With(json.RawMessage(`[]`))); !errors.Is(err, session.ErrInvalid) {
				t.Errorf("arguments that are no object: %v", err)
			}
			if err := a.Decide(out.Waiting[0].ID, decision); err != nil {
				t.Fatal(err)
			}
			b := startIn(t, open(t, st, "shared"), agent.Options{Tools: []agent.Tool{risky}})
			if _, err := b.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Refresh(); err != nil {
				t.Fatal(err)
			}
		}
		if len(ran) != 1 || ran[0] != other {
			t.Errorf("%s: ran with %q", how, ran)
		}
		if lines := said(t, s); !strings.HasSuffix(lines[2], other+"]\ndone") {
			t.Errorf("%s: the conversation is %q", how, lines)
		}
		recorded := false
		for e, err := range s.Entries() {
			if err == nil && e.Custom != nil && e.Custom.CustomType == session.CustomCalls {
				recorded = recorded || strings.Contains(fmt.Sprint(e.Custom.Data["inputs"]), "harmless")
			}
		}
		if !recorded {
			t.Errorf("%s: the log does not say what ran", how)
		}
	}
}

// TestRedactedCall: with redaction, the log has other arguments than the call. It runs as the
// model made it, or not at all.
func TestRedactedCall(t *testing.T) {
	t.Parallel()
	secret := "ghp_" + strings.Repeat("a1B2c3D4e5", 3) + "f6G7h8"
	st := newStore(t)
	o := &session.Options{Clean: clean.Append}
	s, err := session.Create(t.Context(), st, session.Header{ID: "clean"}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	var ran []string
	risky := echo("risky")
	risky.Ask = agent.AskAlways
	risky.Run = func(_ context.Context, c agent.Call) (agent.Result, error) {
		ran = append(ran, string(c.Input))
		return agent.Result{Text: "done"}, nil
	}
	model := answers(func(r *provider.Request) (*session.MessageEntry, error) {
		m := &session.MessageEntry{Role: session.RoleAssistant, StopReason: provider.StopEndTurn, Content: []session.Content{session.Text("done")}}
		if r.Entries[len(r.Entries)-1].Message.Role == session.RoleUser {
			m.StopReason = provider.StopToolUse
			m.Content = []session.Content{session.ToolUse(session.NewID(), "risky", map[string]any{"text": secret})}
		}
		return m, nil
	})
	options := agent.Options{Model: model, Tools: []agent.Tool{risky}}
	a := startIn(t, s, options)
	waiting := func() string {
		out := send(t, a, "go")
		if out.Stop != agent.StopApproval {
			t.Fatalf("%+v", out)
		}
		if err := a.Decide(out.Waiting[0].ID, agent.Allow); err != nil {
			t.Fatal(err)
		}
		return out.Waiting[0].ID
	}
	waiting()
	if _, err := a.Resume(t.Context()); err != nil || len(ran) != 1 || !strings.Contains(ran[0], secret) {
		t.Errorf("in the same program: %q ran, %v", ran, err)
	}
	waiting()
	again, err := session.Open(t.Context(), st, "clean", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	b := startIn(t, again, options)
	if out, err := b.Resume(t.Context()); err != nil || len(ran) != 1 || out.Stop != provider.StopEndTurn {
		t.Errorf("in another program: %+v, %v, %q ran", out, err, ran)
	}
	lines := said(t, again)
	if line := lines[len(lines)-2]; !strings.HasPrefix(line, "tool: [not run: the arguments") {
		t.Errorf("the model was told %q", line)
	}
	if text := strings.Join(lines, "\n"); strings.Contains(text, secret) {
		t.Error("the log has the secret")
	}
}

// TestOthersRunWhileOneIsDecided: a call that needs no approval does not wait for a decision
// about another, unless it must run alone: then it keeps its place.
func TestOthersRunWhileOneIsDecided(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	looked := make(chan bool)
	tool := func(name string) agent.Tool {
		one := echo(name)
		one.Run = func(context.Context, agent.Call) (agent.Result, error) {
			note(name)
			if name == "look" {
				close(looked)
			}
			return agent.Result{Text: name}, nil
		}
		return one
	}
	pay, look, alone := tool("pay"), tool("look"), tool("alone")
	pay.Ask, alone.Alone = agent.AskAlways, true
	a := start(t, agent.Options{Tools: []agent.Tool{pay, look, alone}, Approve: func(ctx context.Context, _ agent.Call) (agent.Decision, error) {
		select {
		case <-looked:
		case <-ctx.Done():
		}
		note("decided")
		return agent.Allow, ctx.Err()
	}})
	send(t, a, "call pay {}\ncall look {}\ncall alone {}")
	if got := strings.Join(order, " "); got != "look decided pay alone" {
		t.Errorf("the order was %s", got)
	}
	check(t, a.Session())
}

// TestManyCallsAreResumedInLinearTime counts what is allocated, because time depends on the
// machine.
func TestManyCallsAreResumedInLinearTime(t *testing.T) {
	cost := func(n int, ask bool) uint64 {
		s := newSession(t)
		var calls []session.Content
		for i := range n {
			calls = append(calls, session.ToolUse(fmt.Sprint("c", i), "one", map[string]any{"text": "x"}))
		}
		_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("go")})
		var id string
		if err == nil {
			id, err = s.AppendMessage(session.RoleAssistant, calls)
		}
		if err == nil {
			err = agent.RecordCalls(s, id)
		}
		if err != nil {
			t.Fatal(err)
		}
		one := echo("one")
		if ask {
			one.Ask = agent.AskAlways
		}
		a := startIn(t, s, agent.Options{Tools: []agent.Tool{one}, Approve: func(context.Context, agent.Call) (agent.Decision, error) { return agent.Allow, nil }})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := a.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, ask := range []bool{false, true} {
		if few, many := cost(100, ask), cost(800, ask); many > 16*few {
			t.Errorf("8 times the calls take %d bytes instead of %d: %.1f times", many, few, float64(many)/float64(few))
		}
	}
}

// A call that waits for a decision waits on in a chat without its tool. A new message gives it
// up, and says so.
func TestAWaitingCallIsNotLostInSilence(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	risky := echo("risky")
	risky.Ask = agent.AskAlways
	a := startIn(t, s, agent.Options{Tools: []agent.Tool{risky}})
	if out := send(t, a, `call risky {"text":"beans"}`); out.Stop != agent.StopApproval {
		t.Fatalf("%+v", out)
	}
	if err := a.SetTools(); err != nil {
		t.Fatal(err)
	}
	out, err := a.Resume(t.Context())
	if err != nil || out.Stop != agent.StopApproval || len(out.Waiting) != 1 || out.Waiting[0].State != agent.CallWaiting {
		t.Fatalf("without the tool: %+v, %v", out, err)
	}
	// A decision does not change that.
	if err := a.Decide(out.Waiting[0].ID, agent.Allow); err != nil {
		t.Fatal(err)
	}
	if out, err := a.Resume(t.Context()); err != nil || out.Stop != agent.StopApproval || out.Waiting[0].State != agent.CallAllowed {
		t.Fatalf("without the tool, approved: %+v, %v", out, err)
	}
	if err := a.SetTools(risky); err != nil {
		t.Fatal(err)
	}
	if out, err := a.Resume(t.Context()); err != nil || session.TextOf(out.Message.Content) != "risky answered: beans" {
		t.Fatalf("with the tool: %+v, %v", out, err)
	}
	send(t, a, `call risky {"text":"peas `+strings.Repeat("and peas ", 100)+`"}`)
	news := a.Subscribe(0)
	send(t, a, "say never mind")
	news.Close()
	var told []string
	for e := range news.Events(t.Context()) {
		if e.Type == agent.Error {
			told = append(told, e.Error)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], "without the call of risky") || !strings.Contains(told[0], "peas and peas") || len(told[0]) > 600 {
		t.Errorf("the person is told %q", told)
	}
	check(t, s)
}
