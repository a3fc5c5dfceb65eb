package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// TestOnlyWholeCallsRun: a call in an answer that the token limit or a filter cut off never
// runs, however whole it looks. Its result says why. After the token limit the model goes on;
// after a filter the turn ends.
func TestOnlyWholeCallsRun(t *testing.T) {
	t.Parallel()
	for _, stop := range []string{provider.StopMaxTokens, provider.StopRefusal} {
		answer := func(r *providertest.Request) providertest.Answer {
			if steps(r) > 0 {
				return providertest.Answer{}
			}
			return providertest.Answer{Message: session.MessageEntry{
				Role: session.RoleAssistant, StopReason: stop,
				Content: []session.Content{session.Text("I tidy up."), session.ToolUse("call_1", "delete", map[string]any{"path": "/"})},
			}}
		}
		dialects(t, answer, func(t *testing.T, server *providertest.Server, model provider.Model) {
			a := start(t, agent.Options{Model: model, Tools: []agent.Tool{mustNotRun(t)}})
			want := []string{"user: go", "assistant: I tidy up.→delete", "tool: [not run: the answer was cut off"}
			out := send(t, a, "go")
			if stop == provider.StopMaxTokens {
				want = append(want, "assistant: ok")
			} else if out.Stop != stop {
				t.Errorf("stop %q, want %q", out.Stop, stop)
			}
			got := said(t, a.Session())
			if !slices.EqualFunc(got, want, strings.HasPrefix) {
				t.Errorf("after %s the conversation is %q, want %q", stop, got, want)
			}
			check(t, a.Session())
		})
	}
}

func mustNotRun(t *testing.T) agent.Tool {
	return agent.Tool{Tool: provider.Tool{Name: "delete"}, Run: func(_ context.Context, c agent.Call) (agent.Result, error) {
		t.Errorf("the call ran with %s", c.Input)
		return agent.Result{Text: "deleted"}, nil
	}}
}

// cutOff is a model whose every answer ends like this.
func cutOff(asked *int, stop string, content ...session.Content) provider.Model {
	return answers(func(*provider.Request) (*session.MessageEntry, error) {
		*asked++
		return &session.MessageEntry{Content: content, StopReason: stop}, nil
	})
}

// TestCallThatIsAlwaysCutOff: a model that makes a call too long for its limit again and
// again is asked three times, and one whose provider drops a call that it cannot read is
// asked again too.
func TestCallThatIsAlwaysCutOff(t *testing.T) {
	t.Parallel()
	call := session.ToolUse("call_1", "delete", nil)
	for _, c := range []struct {
		stop    string
		content []session.Content
		want    int
	}{
		{provider.StopMaxTokens, []session.Content{call}, 3},
		{provider.StopMaxTokens, nil, 1},
		{provider.StopRefusal, []session.Content{call}, 1},
		{"model_context_window_exceeded", []session.Content{call}, 3},
		{"MALFORMED_FUNCTION_CALL", nil, 3},
		{"MALFORMED_FUNCTION_CALL", []session.Content{session.Text("I look.")}, 1},
	} {
		asked := 0
		a := start(t, agent.Options{Model: cutOff(&asked, c.stop, c.content...), Tools: []agent.Tool{mustNotRun(t)}})
		out := send(t, a, "go")
		if asked != c.want || out.Stop != c.stop {
			t.Errorf("%s with %d blocks: asked %d times, want %d; stop %q", c.stop, len(c.content), asked, c.want, out.Stop)
		}
		check(t, a.Session())
	}
}

// TestCutOffCallIsNotResumed: if the program dies before such a call has its result, Resume
// does not run it either.
func TestCutOffCallIsNotResumed(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	for _, m := range []*session.MessageEntry{
		{Role: session.RoleUser, Content: []session.Content{session.Text("go")}},
		{Role: session.RoleAssistant, StopReason: provider.StopMaxTokens, Content: []session.Content{session.ToolUse("call_1", "delete", nil)}},
	} {
		if err := s.Append(session.Entry{Type: session.TypeMessage, Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	a := startIn(t, s, agent.Options{Tools: []agent.Tool{mustNotRun(t)}})
	if _, err := a.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := said(t, s); len(got) != 4 || !strings.HasPrefix(got[2], "tool: [not run: the answer was cut off") {
		t.Errorf("the conversation is %q", got)
	}
}
