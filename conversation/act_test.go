package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// looking is a model that looks at as many places as the user names, one after the other,
// and then says how many results it got.
var looking = provider.Func{
	About: provider.Info{Provider: "p", Model: "looking"},
	Answer: func(_ context.Context, r *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
		places, results := []string(nil), 0
		for _, e := range r.Entries {
			switch {
			case e.BeginsTurn():
				places, results = strings.Fields(session.TextOf(e.Message.Content)), 0
			case e.Message != nil && e.Message.Role == session.RoleTool:
				results++
			}
		}
		if results == len(places) {
			text := fmt.Sprintf("%d results", results)
			return messageOf(conversation.Reply{Content: []session.Content{session.Text(text)}, StopReason: provider.StopEndTurn}), tell(text)
		}
		at := places[results]
		return messageOf(conversation.Reply{
			Content: []session.Content{session.Text("I look. "), session.ToolUse("at_"+at, "look", map[string]any{"at": at})}, StopReason: provider.StopToolUse,
		}), tell("I look. ")
	},
}

// looks returns options with a tool that looks and writes down where.
func looks(seen *[]string) agent.Options {
	return agent.Options{Tools: []agent.Tool{{
		Tool: provider.Tool{Name: "look"},
		Run: func(_ context.Context, c agent.Call) (agent.Result, error) {
			*seen = append(*seen, c.ID)
			return agent.Result{Text: "a tree"}, nil
		},
	}}}
}

func newActing(t *testing.T, st store.Store, limit int, o agent.Options) *conversation.Manager {
	t.Helper()
	m := must(conversation.NewManager(st, &conversation.ManagerOptions{
		Sessions: *quiet(limit), Model: looking, SystemPrompt: "Look around.", Agent: o,
	}))(t)
	t.Cleanup(func() { do(t, m.Close()) })
	return m
}

func memoryStore(t *testing.T) store.Store {
	t.Helper()
	st := memory.New(nil)
	t.Cleanup(func() { do(t, st.Close()) })
	return st
}

// saidIn returns what a conversation has, as another program finds it.
func saidIn(t *testing.T, st store.Store, id string) []string {
	t.Helper()
	c := must(newManagerOn(t, st, 0).Conversation(id))(t)
	return texts(c.Messages)
}

func TestToolsAreRun(t *testing.T) {
	t.Parallel()
	st := memoryStore(t)
	var seen []string
	m := newActing(t, st, 0, looks(&seen))
	var streamed strings.Builder
	text := must(m.Process(t.Context(), conversation.Turn{Message: "here there", Stream: func(s string) { streamed.WriteString(s) }}))(t)
	if text != "2 results" || streamed.String() != "I look. I look. 2 results" {
		t.Errorf("the answer is %q, and %q was streamed", text, &streamed)
	}
	if text := must(m.ProcessMessage(t.Context(), "up", ""))(t); text != "1 results" {
		t.Errorf("the second answer is %q", text)
	}
	if !slices.Equal(seen, []string{"at_here", "at_there", "at_up"}) {
		t.Errorf("it looked at %q", seen)
	}
	want := []string{
		"system: Look around.", "user: here there", "assistant: I look. call at_here", "tool: result at_here",
		"assistant: I look. call at_there", "tool: result at_there", "assistant: 2 results",
		"user: up", "assistant: I look. call at_up", "tool: result at_up", "assistant: 1 results",
	}
	if got := saidIn(t, st, m.Current().ID()); !slices.Equal(got, want) {
		t.Errorf("the conversation is %q", got)
	}
	if got := entryTexts(must(m.Current().Request())(t).Entries); !slices.Equal(got, want) {
		t.Errorf("the next request is %q", got)
	}
	_, err := m.Retry(t.Context(), "", nil)
	wantError(t, err, conversation.ErrAnswered)
	wantError(t, func() error { m.Reset(); _, err := m.GetResponse(t.Context(), "", nil); return err }(), conversation.ErrAnswered)
}

// A turn that stops in the middle goes on with Retry, in another program as well, and no call
// runs twice.
func TestTurnWithToolsGoesOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("no power")
	for name, c := range map[string]struct {
		stop func(o *agent.Options)
		why  string
	}{
		"a limit":     {func(o *agent.Options) { o.MaxSteps = 1 }, "asked 1 times"},
		"an approval": {func(o *agent.Options) { o.Tools[0].Ask = agent.AskAlways }, "wait for approval"},
		"an error": {func(o *agent.Options) {
			o.Tools[0].Ask = agent.AskAlways
			o.Approve = func(context.Context, agent.Call) (agent.Decision, error) { return "", broken }
		}, broken.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := memoryStore(t)
			var seen []string
			o := looks(&seen)
			c.stop(&o)
			m := newActing(t, st, 0, o)
			text, err := m.ProcessMessage(t.Context(), "here there", "")
			if err == nil || !strings.Contains(err.Error(), c.why) || text != "I look. " {
				t.Fatalf("%q, %v", text, err)
			}
			other := newActing(t, st, 0, looks(&seen))
			if text := must(other.Retry(t.Context(), m.Current().ID(), nil))(t); text != "2 results" {
				t.Errorf("the answer is %q", text)
			}
			if !slices.Equal(seen, []string{"at_here", "at_there"}) {
				t.Errorf("it looked at %q", seen)
			}
			if got := saidIn(t, st, m.Current().ID()); len(got) != 7 {
				t.Errorf("the conversation is %q", got)
			}
		})
	}
}

// Sessions of a conversation with tools are continued like those of any other, and the model
// sees all of them.
func TestToolsAcrossABoundary(t *testing.T) {
	t.Parallel()
	st := memoryStore(t)
	var seen []string
	options, told := quiet(4), 0
	options.OnTransition = func(c conversation.Transition) { told = max(told, c.Index) }
	m := must(conversation.NewManager(st, &conversation.ManagerOptions{Sessions: *options, Model: looking, SystemPrompt: "Look around.", Agent: looks(&seen)}))(t)
	defer m.Close()
	var sent []string
	do(t, m.SetModel(provider.Func{About: looking.About, Answer: func(ctx context.Context, r *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
		sent = entryTexts(r.Entries)
		return looking.Answer(ctx, r, tell)
	}}))
	for n := 1; n <= 3; n++ {
		must(m.ProcessMessage(t.Context(), fmt.Sprintf("place%d", n), ""))(t)
	}
	id := m.Current().ID()
	if n := len(must(m.Sessions.Conversation(id))(t).Links); n < 2 || told != n-1 {
		t.Errorf("it has %d sessions, and the last of which we were told has the number %d", n, told)
	}
	var said []string
	for _, line := range saidIn(t, st, id) {
		if !strings.HasPrefix(line, "system: ") {
			said = append(said, line)
		}
	}
	var want []string
	for n := 1; n <= 3; n++ {
		want = append(want, fmt.Sprintf("user: place%d", n), fmt.Sprintf("assistant: I look. call at_place%d", n), fmt.Sprintf("tool: result at_place%d", n), "assistant: 1 results")
	}
	if !slices.Equal(said, want) {
		t.Errorf("the conversation is %q", said)
	}
	if want := append([]string{"system: Look around."}, want[:len(want)-1]...); !slices.Equal(sent, want) {
		t.Errorf("the last request is %q", sent)
	}
}

// What is added while tools run comes after the turn.
func TestAddingWhileToolsRun(t *testing.T) {
	t.Parallel()
	st := memoryStore(t)
	var seen []string
	var m *conversation.Manager
	added := make(chan error)
	o := looks(&seen)
	o.Tools[0].Run = func(context.Context, agent.Call) (agent.Result, error) {
		go func() {
			_, err := m.AddUserMessage("and here")
			added <- err
		}()
		select {
		case err := <-added:
			t.Errorf("it was added at once: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		return agent.Result{Text: "a tree"}, nil
	}
	m = newActing(t, st, 0, o)
	must(m.ProcessMessage(t.Context(), "there", ""))(t)
	do(t, <-added)
	got := saidIn(t, st, m.Current().ID())
	if !slices.Equal(got[len(got)-2:], []string{"assistant: 1 results", "user: and here"}) {
		t.Errorf("the conversation is %q", got)
	}
}

func TestCallWithoutTools(t *testing.T) {
	t.Parallel()
	st := memoryStore(t)
	m := newActing(t, st, 0, agent.Options{})
	text, err := m.ProcessMessage(t.Context(), "here", "")
	wantError(t, err, session.ErrInvalid)
	if text != "I look. " || !strings.Contains(fmt.Sprint(err), `"look"`) {
		t.Errorf("%q, %v", text, err)
	}
	if got := saidIn(t, st, m.Current().ID()); got[len(got)-1] != "assistant: I look. call at_here" {
		t.Errorf("the conversation is %q", got)
	}
}

func TestModelOfToolsThatFails(t *testing.T) {
	t.Parallel()
	st := memoryStore(t)
	var seen []string
	m := newActing(t, st, 0, looks(&seen))
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	do(t, m.SetModel(provider.Func{Answer: func(ctx context.Context, _ *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
		if err := tell("half"); err != nil {
			return nil, err
		}
		cancel(enough)
		return nil, ctx.Err()
	}}))
	text, err := m.ProcessMessage(ctx, "here", "")
	if !errors.Is(err, enough) || text != "half" {
		t.Errorf("%q, %v", text, err)
	}
	do(t, m.SetModel(provider.Func{Answer: func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
		return &session.MessageEntry{StopReason: provider.StopEndTurn}, nil
	}}))
	_, err = m.Retry(t.Context(), "", nil)
	wantError(t, err, conversation.ErrEmptyReply)
	do(t, m.SetModel(looking))
	if text := must(m.ProcessMessage(t.Context(), "there", ""))(t); text != "1 results" {
		t.Errorf("the answer is %q", text)
	}
}

// Several managers work on one conversation at once. Every message gets an answer, no call runs
// twice, and all of it is one conversation.
func TestManagersWithToolsTakeTurns(t *testing.T) {
	t.Parallel()
	st := memoryStore(t)
	var mu sync.Mutex
	seen := make(map[string]int)
	o := agent.Options{Tools: []agent.Tool{{Tool: provider.Tool{Name: "look"}, Run: func(_ context.Context, c agent.Call) (agent.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		seen[c.ID]++
		return agent.Result{Text: "a tree"}, nil
	}}}}
	managers := []*conversation.Manager{newActing(t, st, 4, o), newActing(t, st, 4, o)}
	must(managers[0].ProcessMessage(t.Context(), "first", ""))(t)
	id := managers[0].Current().ID()
	var turns sync.WaitGroup
	for n := range 12 {
		turns.Go(func() {
			text, err := managers[n%2].ProcessMessage(t.Context(), fmt.Sprint("place", n), id)
			if err != nil || text != "1 results" {
				t.Errorf("turn %d: %q, %v", n, text, err)
			}
		})
	}
	turns.Wait()
	for call, times := range seen {
		if times != 1 {
			t.Errorf("%s ran %d times", call, times)
		}
	}
	got := saidIn(t, st, id)
	for n := range 12 {
		if !slices.Contains(got, fmt.Sprint("user: place", n)) {
			t.Errorf("message %d is missing", n)
		}
	}
}
