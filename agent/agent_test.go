package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/internal/leak"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

func TestMain(m *testing.M) {
	for variable, child := range map[string]func() error{killDir: killChild, draftDir: draftChild} {
		if os.Getenv(variable) == "" {
			continue
		}
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	leak.Main(m)
}

// start returns an agent in a new session in memory.
func start(t *testing.T, o agent.Options) *agent.Agent {
	t.Helper()
	return startIn(t, newSession(t), o)
}

func newSession(t *testing.T) *session.Session {
	t.Helper()
	s, err := session.Create(t.Context(), newStore(t), session.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newStore(t *testing.T) store.Store {
	t.Helper()
	st := memory.New(nil)
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func startIn(t *testing.T, s *session.Session, o agent.Options) *agent.Agent {
	t.Helper()
	if o.Model == nil {
		o.Model = &offline.Model{}
	}
	a, err := agent.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func send(t *testing.T, a *agent.Agent, text string) *agent.Outcome {
	t.Helper()
	out, err := a.Send(t.Context(), session.Text(text))
	if err != nil {
		t.Fatalf("send %q: %v", text, err)
	}
	return out
}

// said returns the conversation as lines of "role: text".
func said(t *testing.T, s *session.Session) []string {
	t.Helper()
	entries, err := s.GetContext()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := range entries {
		m := entries[i].Message
		if m == nil {
			lines = append(lines, "summary: "+entries[i].Summary())
			continue
		}
		text := session.TextOf(m.Content)
		for _, c := range m.Content {
			switch {
			case c.ToolUse != nil:
				text += "→" + c.ToolUse.Name
			case c.ToolResult != nil:
				text += c.ToolResult.Content
			}
		}
		lines = append(lines, m.Role+": "+text)
	}
	return lines
}

func check(t *testing.T, s *session.Session) {
	t.Helper()
	problems, err := s.Problems()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("the log has a problem: %+v", p)
	}
}

// echo is a tool that answers with its argument.
func echo(name string) agent.Tool {
	return agent.Tool{
		Tool: provider.Tool{Name: name, Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)},
		Run: func(_ context.Context, c agent.Call) (agent.Result, error) {
			var in struct{ Text string }
			err := json.Unmarshal(c.Input, &in)
			return agent.Result{Text: in.Text}, err
		},
	}
}

func TestTurnWithTools(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{System: "be brief", Tools: []agent.Tool{echo("one"), echo("two")}})
	out := send(t, a, "call one {\"text\":\"1\"}\ncall two {\"text\":\"2\"}")
	if out.Steps != 2 || out.Stop != provider.StopEndTurn || out.Message == nil || out.Usage.Output == 0 {
		t.Errorf("the outcome is %+v", out)
	}
	lines := said(t, a.Session())
	if len(lines) != 6 || lines[0] != "system: be brief" || !strings.Contains(lines[2], "→one→two") ||
		lines[3] != "tool: 1" && lines[3] != "tool: 2" || !strings.Contains(lines[5], "one answered: 1") {
		t.Errorf("the conversation is\n%s", strings.Join(lines, "\n"))
	}
	check(t, a.Session())
	if pending, err := a.Pending(); err != nil || len(pending) != 0 {
		t.Errorf("pending: %v, %v", pending, err)
	}
}

func TestPromptIsDurableBeforeTheModelIsAsked(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	var before []string
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
		before = said(t, s)
		return nil, errors.New("nobody is there")
	}}
	a := startIn(t, s, agent.Options{Model: model})
	if _, err := a.Send(t.Context(), session.Text("hello")); err == nil {
		t.Error("a model that fails must fail the turn")
	}
	if !slices.Equal(before, []string{"user: hello"}) {
		t.Errorf("when the model was asked, the log had %q", before)
	}
	if err := a.SetModel(&offline.Model{}); err != nil {
		t.Fatal(err)
	}
	if unfinished, err := a.Unfinished(); err != nil || !unfinished {
		t.Errorf("the prompt has no answer, but: %v, %v", unfinished, err)
	}
	out, err := a.Resume(t.Context())
	if err != nil || out.Steps != 1 {
		t.Errorf("resume: %+v, %v", out, err)
	}
	if lines := said(t, s); len(lines) != 2 {
		t.Errorf("after resume the conversation is %q", lines)
	}
	if unfinished, err := a.Unfinished(); err != nil || unfinished {
		t.Errorf("everything is answered, but: %v, %v", unfinished, err)
	}
	if out, err := a.Resume(t.Context()); err != nil || out.Steps != 0 {
		t.Errorf("there is nothing more to resume, but: %+v, %v", out, err)
	}
}

func TestRecordsRebuildTheRequests(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	model := &offline.Model{}
	temperature := 0.5
	a := startIn(t, s, agent.Options{
		Model: model, System: "be brief", Tools: []agent.Tool{echo("one")}, Temperature: &temperature,
		Fields: session.Fields{{Name: "zeta", Value: json.RawMessage(`{"b":1,"a":2}`)}},
	})
	send(t, a, `call one {"text":"1"}`)
	again := startIn(t, s, agent.Options{Model: model, Tools: []agent.Tool{echo("one")}, Temperature: &temperature})
	send(t, again, "hello")
	n, tools := 0, ""
	for r, err := range agent.Records(s) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if _, same, err := r.Rebuild(s, model); err != nil || !same {
			t.Errorf("request %d cannot be rebuilt: %v", n, err)
		}
		if r.Response == "" || r.Provider != offline.Name || r.Bytes == 0 {
			t.Errorf("the record is %+v", r)
		}
		if n > 1 && r.Tools != tools {
			t.Errorf("the same tools were recorded twice")
		}
		tools = r.Tools
	}
	if n != 3 {
		t.Errorf("%d requests were recorded, want 3", n)
	}
}

func TestFailingTools(t *testing.T) {
	t.Parallel()
	bad := echo("bad")
	bad.Run = func(context.Context, agent.Call) (agent.Result, error) { return agent.Result{}, errors.New("no luck") }
	panics := echo("panics")
	panics.Run = func(context.Context, agent.Call) (agent.Result, error) { panic("oh") }
	long := echo("long")
	long.Run = func(context.Context, agent.Call) (agent.Result, error) {
		return agent.Result{Text: "begin" + strings.Repeat("é", 1000) + "end"}, nil
	}
	slow := echo("slow")
	slow.Timeout = 1
	slow.Run = func(ctx context.Context, _ agent.Call) (agent.Result, error) {
		<-ctx.Done()
		return agent.Result{Text: "so far"}, ctx.Err()
	}
	a := start(t, agent.Options{Tools: []agent.Tool{bad, panics, long, slow}, MaxOutput: 100})
	send(t, a, "call bad {}\ncall panics {}\ncall long {}\ncall slow {}")
	all := strings.Join(said(t, a.Session()), "\n")
	for _, want := range []string{"no luck", "panicked", "begin", "end", "left out", "so far", "took longer"} {
		if !strings.Contains(all, want) {
			t.Errorf("the conversation lacks %q:\n%s", want, all)
		}
	}
	check(t, a.Session())
}

func TestApproval(t *testing.T) {
	t.Parallel()
	ran := 0
	risky := echo("risky")
	risky.Ask = agent.AskAlways
	risky.Run = func(context.Context, agent.Call) (agent.Result, error) {
		ran++
		return agent.Result{Text: "done"}, nil
	}
	s := newSession(t)
	a := startIn(t, s, agent.Options{Tools: []agent.Tool{risky, echo("one")}})
	out := send(t, a, "call risky {}\ncall one {\"text\":\"1\"}")
	if out.Stop != agent.StopApproval || len(out.Waiting) != 1 || ran != 0 {
		t.Fatalf("the outcome is %+v after %d runs", out, ran)
	}
	// Another program finds it waiting.
	b := startIn(t, s, agent.Options{Tools: []agent.Tool{risky, echo("one")}})
	pending, err := b.Pending()
	if err != nil || len(pending) != 1 || pending[0].State != agent.CallWaiting || pending[0].Name != "risky" {
		t.Fatalf("pending: %+v, %v", pending, err)
	}
	if err := b.Decide("nothing", agent.Allow); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("deciding about a call that does not wait: %v", err)
	}
	if err := b.Decide(pending[0].ID, agent.Allow); err != nil {
		t.Fatal(err)
	}
	if out, err := b.Resume(t.Context()); err != nil || out.Stop != provider.StopEndTurn || ran != 1 {
		t.Errorf("after the approval: %+v, %v, %d runs", out, err, ran)
	}
	check(t, s)
}

func TestDenial(t *testing.T) {
	t.Parallel()
	risky := echo("risky")
	risky.Ask = func(agent.Call) (bool, string) { return true, "it is risky" }
	risky.Run = func(context.Context, agent.Call) (agent.Result, error) { panic("denied calls must not run") }
	var reason string
	a := start(t, agent.Options{Tools: []agent.Tool{risky}, Approve: func(_ context.Context, c agent.Call) (agent.Decision, error) {
		reason = c.Reason
		return agent.Deny, nil
	}})
	out := send(t, a, "call risky {}")
	if out.Steps != 2 || reason != "it is risky" || !strings.Contains(strings.Join(said(t, a.Session()), "\n"), "denied") {
		t.Errorf("%+v, asked because %q, %q", out, reason, said(t, a.Session()))
	}
}

func TestCancelKeepsWhatArrived(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(ctx context.Context, _ *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
		_ = tell("the first ")
		_ = tell("words")
		cancel(enough)
		return nil, ctx.Err()
	}}
	a := start(t, agent.Options{Model: model})
	out, err := a.Send(ctx, session.Text("speak"))
	if !errors.Is(err, enough) || out.Stop != provider.StopCancelled {
		t.Errorf("%+v, %v", out, err)
	}
	if lines := said(t, a.Session()); !slices.Equal(lines, []string{"user: speak", "assistant: the first words"}) {
		t.Errorf("the conversation is %q", lines)
	}
}

func TestCancelAnswersEveryCall(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	slow := echo("slow")
	slow.Alone = true
	slow.Run = func(ctx context.Context, _ agent.Call) (agent.Result, error) {
		cancel()
		<-ctx.Done()
		return agent.Result{}, ctx.Err()
	}
	a := start(t, agent.Options{Tools: []agent.Tool{slow}})
	if _, err := a.Send(ctx, session.Text("call slow {}\ncall slow {}")); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if pending, err := a.Pending(); err != nil || len(pending) != 0 {
		t.Errorf("pending: %v, %v", pending, err)
	}
	all := strings.Join(said(t, a.Session()), "\n")
	if !strings.Contains(all, "cancelled by the user") || !strings.Contains(all, "not run") {
		t.Errorf("the conversation is\n%s", all)
	}
	check(t, a.Session())
}

// broken answers with a piece and then breaks off, the first n times.
func broken(n int) provider.Model {
	return provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(_ context.Context, _ *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
		n--
		if n >= 0 {
			_ = tell("half")
			return nil, &provider.Error{Kind: provider.ErrBroken, Provider: "p"}
		}
		return &session.MessageEntry{Content: []session.Content{session.Text("whole")}}, nil
	}}
}

func TestRetryGrowsABranch(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{Model: broken(1), RetryWait: 1})
	send(t, a, "hello")
	if lines := said(t, a.Session()); !slices.Equal(lines, []string{"user: hello", "assistant: whole"}) {
		t.Errorf("the conversation is %q", lines)
	}
	leaves, err := a.Session().Leaves()
	if err != nil || len(leaves) != 2 {
		t.Errorf("the half answer must stay, on a branch: %v, %v", leaves, err)
	}
	if _, err := a.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	if leaves, _ := a.Session().Leaves(); len(leaves) != 3 {
		t.Errorf("after Retry there are %d branches, want 3", len(leaves))
	}
	if lines := said(t, a.Session()); len(lines) != 2 {
		t.Errorf("after Retry the conversation is %q", lines)
	}
	check(t, a.Session())
}

func TestSubscriberThatIsSlow(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{})
	slow, quick := a.Subscribe(2), a.Subscribe(0)
	send(t, a, "repeat 300 word")
	_ = a.Close()
	var text strings.Builder
	last := int64(0)
	for e := range quick.Events(t.Context()) {
		if e.Number <= last {
			t.Fatalf("event %d comes after event %d", e.Number, last)
		}
		last = e.Number
		if e.Type == agent.MessageUpdate && e.Update.Type == provider.EventText {
			text.WriteString(e.Update.Text)
		}
	}
	if n := strings.Count(text.String(), "word"); n != 300 {
		t.Errorf("a subscriber with room got %d words of 300", n)
	}
	var types []string
	missed := int64(0)
	for e := range slow.Events(t.Context()) {
		types = append(types, string(e.Type))
		missed += e.Missed
	}
	if len(types) != 3 || types[2] != string(agent.Missed) || missed == 0 {
		t.Errorf("a slow subscriber got %v and missed %d", types, missed)
	}
}

func TestBusy(t *testing.T) {
	t.Parallel()
	begun, finish := make(chan bool), make(chan bool)
	wait := echo("wait")
	wait.Run = func(context.Context, agent.Call) (agent.Result, error) {
		close(begun)
		<-finish
		return agent.Result{Text: "done"}, nil
	}
	a := start(t, agent.Options{Tools: []agent.Tool{wait}})
	done := make(chan error, 1)
	go func() {
		_, err := a.Send(context.Background(), session.Text("call wait {}"))
		done <- err
	}()
	<-begun
	if _, err := a.Send(t.Context(), session.Text("hello")); !errors.Is(err, agent.ErrBusy) {
		t.Errorf("a second turn: %v", err)
	}
	if err := a.SetThinking("low"); !errors.Is(err, agent.ErrBusy) {
		t.Errorf("a change during a turn: %v", err)
	}
	if status, err := a.Status(); err != nil || !status.Busy {
		t.Errorf("status: %+v, %v", status, err)
	}
	close(finish)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestChangesAreRecorded(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{System: "one", Thinking: "low"})
	send(t, a, "hello")
	if err := errors.Join(a.SetSystem("two"), a.SetThinking("high")); err != nil {
		t.Fatal(err)
	}
	send(t, a, "again")
	send(t, a, "and again")
	c, err := a.Session().Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c.ThinkingLevel != "high" || c.Provider != offline.Name || c.Model != offline.ModelName {
		t.Errorf("in force: %s/%s %s", c.Provider, c.Model, c.ThinkingLevel)
	}
	all := strings.Join(said(t, a.Session()), "\n")
	if strings.Contains(all, "system: one") || strings.Count(all, "system: two") != 1 {
		t.Errorf("the conversation is\n%s", all)
	}
	changes := 0
	for e, err := range a.Session().Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if e.ModelChange != nil || e.ThinkingLevel != nil {
			changes++
		}
	}
	if changes != 3 {
		t.Errorf("%d changes were recorded, want the model and two levels", changes)
	}
}

func TestLevelOfAnotherProgram(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]string{"none": "off", "max": "xhigh", "[left out]": "", "high": "high"} {
		a := start(t, agent.Options{})
		if _, err := a.Session().AppendThinkingLevelChange(level); err != nil {
			t.Fatal(err)
		}
		send(t, a, "hello")
		for r, err := range agent.Records(a.Session()) {
			if err != nil || r.Thinking != want {
				t.Errorf("%q: the model was asked to think %q, %v", level, r.Thinking, err)
			}
		}
		if status, err := a.Status(); err != nil || status.Thinking != want {
			t.Errorf("%q: the status says %q, %v", level, status.Thinking, err)
		}
	}
}

func TestModelThatRepeatsItsIDs(t *testing.T) {
	t.Parallel()
	steps := 0
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
		steps++
		if steps > 2 {
			return &session.MessageEntry{Content: []session.Content{session.Text("done")}}, nil
		}
		input := map[string]any{"text": fmt.Sprint(steps)}
		return &session.MessageEntry{Content: []session.Content{session.ToolUse("same", "one", input), session.ToolUse("same", "one", input)}}, nil
	}}
	a := start(t, agent.Options{Model: model, Tools: []agent.Tool{echo("one")}})
	send(t, a, "go")
	check(t, a.Session())
	if lines := said(t, a.Session()); len(lines) != 8 {
		t.Errorf("the conversation is\n%s", strings.Join(lines, "\n"))
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]agent.Options{
		"no model":       {},
		"thinking":       {Model: &offline.Model{}, Thinking: "hard"},
		"tool's name":    {Model: &offline.Model{}, Tools: []agent.Tool{echo("a b")}},
		"same name":      {Model: &offline.Model{}, Tools: []agent.Tool{echo("a"), echo("a")}},
		"tool, no Run":   {Model: &offline.Model{}, Tools: []agent.Tool{{Tool: provider.Tool{Name: "a"}}}},
		"negative steps": {Model: &offline.Model{}, MaxSteps: -1},
	} {
		if _, err := agent.New(newSession(t), o); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMaxSteps(t *testing.T) {
	t.Parallel()
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
		return &session.MessageEntry{Content: []session.Content{session.ToolUse(fmt.Sprint("c", len(r.Entries)), "one", map[string]any{})}}, nil
	}}
	a := start(t, agent.Options{Model: model, Tools: []agent.Tool{echo("one")}, MaxSteps: 3})
	out := send(t, a, "go")
	if out.Stop != agent.StopMaxSteps || out.Steps != 3 {
		t.Errorf("%+v", out)
	}
	if out, err := a.Resume(t.Context()); err != nil || out.Steps != 3 {
		t.Errorf("resume: %+v, %v", out, err)
	}
}
