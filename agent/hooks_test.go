package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// TestHooks: hooks are called in the order that is documented, and change what they may.
func TestHooks(t *testing.T) {
	t.Parallel()
	var order []string
	note := func(format string, args ...any) { order = append(order, fmt.Sprintf(format, args...)) }
	one := echo("one")
	one.Ask = agent.AskAlways
	a := start(t, agent.Options{
		Tools: []agent.Tool{one, echo("two")}, Parallel: 1,
		Approve: func(_ context.Context, c agent.Call) (agent.Decision, error) {
			note("approve %s", c.Name)
			return agent.Allow, nil
		},
		Hooks: agent.Hooks{
			BeforeModel: func(_ context.Context, r *provider.Request) error {
				note("before model %d", len(r.Entries))
				return nil
			},
			AfterModel: func(_ context.Context, m *session.MessageEntry) error {
				note("after model %d", len(m.Content))
				return nil
			},
			BeforeTool: func(_ context.Context, c agent.Call) (agent.Decision, error) {
				note("before %s", c.Name)
				if c.Name == "two" {
					return agent.Deny.Because("not today"), nil
				}
				return agent.Allow.With(json.RawMessage(`{"text":"other"}`)), nil
			},
			AfterTool: func(_ context.Context, c agent.Call, r agent.Result) (agent.Result, error) {
				note("after %s %s", c.Name, r.Text)
				r.Text = strings.ToUpper(r.Text)
				return r, nil
			},
		},
	})
	send(t, a, "call one {\"text\":\"x\"}")
	want := []string{"before model 1", "after model 1", "approve one", "before one", "after one other", "before model 3", "after model 1"}
	if !slices.Equal(order, want) {
		t.Errorf("the order is %q", order)
	}
	if lines := said(t, a.Session()); lines[2] != `tool: [the program changed the arguments of this call to {"text":"other"}]`+"\nOTHER" {
		t.Errorf("the conversation is %q", lines)
	}
	send(t, a, "call two {\"text\":\"x\"}")
	if lines := said(t, a.Session()); !strings.Contains(lines[6], "[denied: this call was not allowed: not today]") {
		t.Errorf("the conversation is %q", lines)
	}
	check(t, a.Session())
}

// TestHooksThatFail: an error or a panic in a hook ends the turn, and what has happened is in
// the log.
func TestHooksThatFail(t *testing.T) {
	t.Parallel()
	errHook := errors.New("no")
	for name, test := range map[string]struct {
		hooks agent.Hooks
		lines int // of the conversation
		again int // after Resume without hooks
	}{
		"BeforeModel": {agent.Hooks{BeforeModel: func(context.Context, *provider.Request) error { return errHook }}, 1, 4},
		"AfterModel":  {agent.Hooks{AfterModel: func(context.Context, *session.MessageEntry) error { panic("no") }}, 2, 4},
		"BeforeTool":  {agent.Hooks{BeforeTool: func(context.Context, agent.Call) (agent.Decision, error) { return agent.Allow, errHook }}, 3, 4},
		"AfterTool":   {agent.Hooks{AfterTool: func(context.Context, agent.Call, agent.Result) (agent.Result, error) { panic("no") }}, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := start(t, agent.Options{Tools: []agent.Tool{echo("one")}, Hooks: test.hooks})
			_, err := a.Send(t.Context(), session.Text("call one {\"text\":\"1\"}"))
			if err == nil || !strings.Contains(err.Error(), "the hook "+name) {
				t.Errorf("the turn ended with %v", err)
			}
			lines := said(t, a.Session())
			if lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "interrupted") }); len(lines) != test.lines {
				t.Errorf("the conversation is %q", lines)
			}
			b := startIn(t, a.Session(), agent.Options{Tools: []agent.Tool{echo("one")}})
			if _, err := b.Resume(t.Context()); err != nil || len(said(t, a.Session())) != test.again {
				t.Errorf("after that it is %q, %v", said(t, a.Session()), err)
			}
			check(t, a.Session())
		})
	}
	a := start(t, agent.Options{Tools: []agent.Tool{echo("one")}, Hooks: agent.Hooks{BeforeTool: func(context.Context, agent.Call) (agent.Decision, error) { return agent.Later, nil }}})
	if _, err := a.Send(t.Context(), session.Text("call one {\"text\":\"1\"}")); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("later: %v", err)
	}
}

type verdict struct {
	Good  bool   `json:"good"`
	Notes string `json:"notes,omitempty"`
}

// answering is a model that gives each of some answers when it is asked, and ends its turn after
// a result that says that the answer was taken.
func answering(inputs ...string) provider.Model {
	n := 0
	return answers(func(r *provider.Request) (*session.MessageEntry, error) {
		m := &session.MessageEntry{StopReason: provider.StopEndTurn, Content: []session.Content{session.Text("so be it")}}
		last := r.Entries[len(r.Entries)-1].Message
		if last.Role == session.RoleTool && last.Content[0].ToolResult.Content == "[taken]" || n == len(inputs) {
			return m, nil
		}
		if n++; inputs[n-1] != "" {
			m.StopReason, m.Content = provider.StopToolUse, []session.Content{session.ToolUseJSON("a"+fmt.Sprint(n), "answer", json.RawMessage(inputs[n-1]))}
		}
		return m, nil
	})
}

// TestAnswer: an answer is a struct that fits. What does not fit is told to the model, and a
// model that forgets it is reminded.
func TestAnswer(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{Model: answering(`{"good":"yes"}`, "", `{"good":true,"notes":"fine"}`)})
	got, out, err := agent.Answer[verdict](t.Context(), a, session.Text("is it good?"))
	if err != nil || got != (verdict{true, "fine"}) || out.Steps != 3 {
		t.Errorf("%+v, %+v, %v", got, out, err)
	}
	if lines := said(t, a.Session()); !strings.Contains(lines[2], "the arguments do not fit: good") || !strings.HasPrefix(lines[4], "user: The answer is missing") {
		t.Errorf("the conversation is %q", lines)
	}
	if unfinished, err := a.Unfinished(); err != nil || unfinished {
		t.Errorf("unfinished: %v, %v", unfinished, err)
	}
	a = start(t, agent.Options{Model: answering()})
	if _, out, err := agent.Answer[verdict](t.Context(), a, session.Text("is it good?")); err == nil || out.Steps != 3 {
		t.Errorf("without an answer: %+v, %v", out, err)
	}
	if _, _, err := agent.Answer[int](t.Context(), a, session.Text("how many?")); err == nil {
		t.Error("a number is not a struct")
	}
	if _, _, err := agent.Answer[verdict](t.Context(), a); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("nothing was asked, but: %v", err)
	}
	a = start(t, agent.Options{Tools: []agent.Tool{echo("answer")}})
	if _, _, err := agent.Answer[verdict](t.Context(), a, session.Text("x")); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("two tools have the name, but: %v", err)
	}
}

// TestAnswerIsResumed: a turn that broke off before its answer is finished with the tool for it,
// whatever it was doing: Resume alone has none.
func TestAnswerIsResumed(t *testing.T) {
	t.Parallel()
	good := answering(`{"good":true}`).(provider.Func)
	asked := 0
	a := start(t, agent.Options{Model: answers(func(r *provider.Request) (*session.MessageEntry, error) {
		if asked++; asked == 1 {
			return nil, errors.New("the line is dead")
		}
		return good.Answer(t.Context(), r, nil)
	})})
	if _, _, err := agent.Answer[verdict](t.Context(), a, session.Text("is it good?")); err == nil {
		t.Fatal("there is an answer of a model that gave none")
	}
	got, out, err := agent.ResumeAnswer[verdict](t.Context(), a)
	if err != nil || !got.Good || out.Steps != 1 {
		t.Errorf("%+v, %+v, %v", got, out, err)
	}
	if lines := said(t, a.Session()); lines[0] != "user: is it good?" || strings.Contains(strings.Join(lines, "\n"), "missing") {
		t.Errorf("the conversation is %q", lines)
	}
	if _, out, err := agent.ResumeAnswer[verdict](t.Context(), a); err == nil || out.Steps != 0 {
		t.Errorf("with nothing to finish: %+v, %v", out, err)
	}
}

// A model whose answers never fit is not asked for ever, and the error says what was wrong.
func TestAnswerThatNeverFits(t *testing.T) {
	t.Parallel()
	for name, input := range map[string]string{"wrong type": `{"good":"yes"}`, "another member": `{"good":true,"evil":1}`, "a list": `[]`, "nothing": `null`} {
		asked := 0
		a := start(t, agent.Options{Model: answers(func(*provider.Request) (*session.MessageEntry, error) {
			asked++
			return &session.MessageEntry{StopReason: provider.StopToolUse, Content: []session.Content{session.ToolUseJSON(fmt.Sprint("a", asked), "answer", json.RawMessage(input))}}, nil
		})})
		_, out, err := agent.Answer[verdict](t.Context(), a, session.Text("is it good?"))
		if err == nil || !strings.Contains(err.Error(), "the arguments") || asked != 3 {
			t.Errorf("%s: asked %d times, %+v, %v", name, asked, out, err)
		}
		check(t, a.Session())
	}
}

// A fitting answer ends the turn, whatever else the model called with it, and the next turn goes
// on from there.
func TestAnswerEndsItsTurn(t *testing.T) {
	t.Parallel()
	asked, ran := 0, 0
	a := start(t, agent.Options{
		Tools: []agent.Tool{during(func(context.Context) error { ran++; return nil })},
		Model: answers(func(*provider.Request) (*session.MessageEntry, error) {
			if asked++; asked > 1 {
				return &session.MessageEntry{Content: []session.Content{session.Text("hello")}}, nil
			}
			return &session.MessageEntry{StopReason: provider.StopToolUse, Content: []session.Content{
				session.ToolUseJSON("a", "answer", json.RawMessage(`{"good":true}`)), session.ToolUseJSON("b", "work", json.RawMessage(`{}`)),
			}}, nil
		}),
	})
	got, out, err := agent.Answer[verdict](t.Context(), a, session.Text("is it good?"))
	if err != nil || !got.Good || asked != 1 || ran != 1 || out.Stop != provider.StopEndTurn {
		t.Errorf("asked %d times, %d calls ran, %+v, %v", asked, ran, out, err)
	}
	if unfinished, err := a.Unfinished(); err != nil || unfinished {
		t.Errorf("unfinished: %v, %v", unfinished, err)
	}
	if out, err := a.Resume(t.Context()); err != nil || out.Steps != 0 {
		t.Errorf("resumed: %+v, %v", out, err)
	}
	if out := send(t, a, "and you?"); out.Steps != 1 || asked != 2 {
		t.Errorf("asked %d times, %+v", asked, out)
	}
	check(t, a.Session())
}

// A hook that hangs does not keep a turn whose context has ended.
func TestHooksThatHang(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	for name, hooks := range map[string]func(hang func()) agent.Hooks{
		"BeforeModel": func(hang func()) agent.Hooks {
			return agent.Hooks{BeforeModel: func(context.Context, *provider.Request) error { hang(); return nil }}
		},
		"AfterModel": func(hang func()) agent.Hooks {
			return agent.Hooks{AfterModel: func(context.Context, *session.MessageEntry) error { hang(); return nil }}
		},
		"BeforeTool": func(hang func()) agent.Hooks {
			return agent.Hooks{BeforeTool: func(context.Context, agent.Call) (agent.Decision, error) { hang(); return agent.Allow, nil }}
		},
		"AfterTool": func(hang func()) agent.Hooks {
			return agent.Hooks{AfterTool: func(_ context.Context, _ agent.Call, r agent.Result) (agent.Result, error) { hang(); return r, nil }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errStop := errors.New("that is enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			a := start(t, agent.Options{Tools: []agent.Tool{echo("one")}, Hooks: hooks(func() {
				cancel(errStop)
				<-release
			})})
			if _, err := a.Send(ctx, session.Text("call one {\"text\":\"1\"}")); !errors.Is(err, errStop) {
				t.Errorf("the turn ended with %v", err)
			}
			if _, err := startIn(t, a.Session(), agent.Options{Tools: []agent.Tool{echo("one")}}).Resume(t.Context()); err != nil {
				t.Error(err)
			}
			check(t, a.Session())
		})
	}
}

// Whatever a hook does to a request that it sees, the log says what was sent.
func TestHookCannotChangeTheRequest(t *testing.T) {
	t.Parallel()
	var sent []string
	heat := 0.5
	model := answers(func(r *provider.Request) (*session.MessageEntry, error) {
		sent = append(sent, fmt.Sprint(session.TextOf(r.Entries[0].Message.Content), len(r.Entries), len(r.Tools), string(r.Tools[0].Schema), r.MaxTokens, *r.Temperature, r.Encoded.Sum()))
		return &session.MessageEntry{Content: []session.Content{session.Text("hello")}}, nil
	})
	o := agent.Options{Model: model, Tools: []agent.Tool{echo("one")}, MaxTokens: 100, Temperature: &heat}
	plain := start(t, o)
	o.Hooks.BeforeModel = func(_ context.Context, r *provider.Request) error {
		for i := range r.Entries {
			r.Entries[i].Message.Content[0] = session.Text("injected")
		}
		clear(r.Encoded.Body)
		copy(r.Tools[0].Schema, "[1]")
		*r.Temperature = 9
		r.Entries, r.Tools, r.MaxTokens = append(r.Entries, r.Entries...), nil, 7
		return nil
	}
	o.Hooks.AfterModel = func(_ context.Context, m *session.MessageEntry) error {
		m.Content[0].Text.Content = "injected"
		return nil
	}
	changing := start(t, o)
	for _, a := range []*agent.Agent{plain, changing} {
		if out := send(t, a, "go"); session.TextOf(out.Message.Content) != "hello" {
			t.Errorf("the answer is %q", session.TextOf(out.Message.Content))
		}
	}
	// The encoded requests differ in what the log gave each entry, such as its id.
	cut := func(s string) string { return s[:len(s)-64] }
	if len(sent) != 2 || cut(sent[0]) != cut(sent[1]) {
		t.Errorf("sent was %q", sent)
	}
	for r, err := range agent.Records(changing.Session()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, same, err := r.Rebuild(changing.Session(), model); !same || err != nil {
			t.Errorf("the request is another one: %v", err)
		}
	}
}

// An answer as a struct.
func ExampleAnswer() {
	ctx := context.Background()
	s, err := session.Create(ctx, memory.New(nil), session.Header{}, nil)
	if err != nil {
		panic(err)
	}
	defer s.Close()
	a, err := agent.New(s, agent.Options{Model: &offline.Model{}})
	if err != nil {
		panic(err)
	}
	defer a.Close()
	type city struct {
		Name   string `json:"name"`
		People int    `json:"people" jsonschema:"how many live there"`
	}
	// The built-in model does what it is told.
	got, _, err := agent.Answer[city](ctx, a, session.Text(`call answer {"name": "Bern", "people": 134000}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(got.Name, got.People)
	// Output: Bern 134000
}
