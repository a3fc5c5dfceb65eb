package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

const poison = "POISON"

// picky answers like a provider that refuses whatever has a word in it, for a reason that no
// rule knows.
func picky(answer func(*providertest.Request) providertest.Answer) func(*providertest.Request) providertest.Answer {
	return func(r *providertest.Request) providertest.Answer {
		if strings.Contains(string(r.Body), poison) {
			return providertest.Answer{Status: http.StatusBadRequest, Body: `{"error":{"type":"invalid_request_error","message":"` + poison + ` is refused"}}`}
		}
		return answer(r)
	}
}

// aside returns the entries that are replaced in the context.
func aside(t *testing.T, s *session.Session) []string {
	t.Helper()
	c, err := s.Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for id := range c.Edited {
		ids = append(ids, id)
	}
	return ids
}

// TestPoisonedEntryIsSetAside: if the provider refuses the conversation because of one
// entry, the agent finds it, sets it aside, says so, and goes on, in every dialect.
func TestPoisonedEntryIsSetAside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ prompt, thought, result string }{
		"answer": {thought: poison}, "result": {result: poison},
		"two": {prompt: "PROMPT", thought: poison, result: poison},
	} {
		answer := picky(func(r *providertest.Request) providertest.Answer {
			if steps(r) > 0 || len(r.Entries) != 3 {
				return providertest.Answer{}
			}
			return providertest.Answer{Message: session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{
				session.Text("I look. " + c.thought), session.ToolUse("call_1", "look", map[string]any{"at": c.thought}),
			}}}
		})
		dialects(t, answer, func(t *testing.T, server *providertest.Server, model provider.Model) {
			look := agent.Tool{Tool: provider.Tool{Name: "look"}, Run: func(context.Context, agent.Call) (agent.Result, error) {
				return agent.Result{Text: "seen " + c.result}, nil
			}}
			a := start(t, agent.Options{Model: model, Tools: []agent.Tool{look}})
			send(t, a, "hello")
			news := a.Subscribe(1000)
			before := len(server.Requests())
			if out := send(t, a, "go on "+c.prompt); out.Stop != provider.StopEndTurn {
				t.Errorf("%s: stop %q", name, out.Stop)
			}
			want := 1
			if name == "two" {
				want = 2
			}
			if got := aside(t, a.Session()); len(got) != want {
				t.Errorf("%s: %d entries are set aside, want %d: %q", name, len(got), want, said(t, a.Session()))
			}
			told := 0
			for e := range news.Events(t.Context()) {
				if e.Type == agent.Error && strings.Contains(e.Error, "is set aside from now on") {
					told++
				}
				if e.Type == agent.TurnEnd {
					break
				}
			}
			if told == 0 {
				t.Errorf("%s: no event says so", name)
			}
			if sent := len(server.Requests()) - before; sent > 16 || len(records(t, a.Session())) != sent+before {
				t.Errorf("%s: %d requests were sent, and there are records %+v", name, sent, records(t, a.Session()))
			}
			check(t, a.Session())
			last := server.Requests()
			if strings.Contains(string(last[len(last)-1].Body), poison) {
				t.Errorf("%s: the last request still has it", name)
			}
			send(t, a, "and again") // the session lives
		})
	}
}

// TestPoisonedPromptIsRefused: if it is what the user just said, there is nothing to answer.
// The turn fails with the provider's words, and the session lives.
func TestPoisonedPromptIsRefused(t *testing.T) {
	t.Parallel()
	for _, content := range [][]session.Content{{session.Text("go on " + poison)}, {session.Text("look"), session.Image("image/png", pixel)}} {
		refuse := picky(func(r *providertest.Request) providertest.Answer {
			if strings.Contains(string(r.Body), pixel) {
				return providertest.Answer{Status: http.StatusBadRequest, Body: `{"error":{"message":"` + poison + ` is refused"}}`}
			}
			return providertest.Answer{}
		})
		dialects(t, refuse, func(t *testing.T, server *providertest.Server, model provider.Model) {
			a := start(t, agent.Options{Model: model})
			send(t, a, "hello")
			_, err := a.Send(t.Context(), content...)
			if !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "refused what was said last") || strings.Count(err.Error(), poison+" is refused") != 1 {
				t.Errorf("err %v", err)
			}
			if got := aside(t, a.Session()); len(got) != 1 {
				t.Errorf("%d entries are set aside: %q", len(got), said(t, a.Session()))
			}
			if out := send(t, a, "and again"); out.Stop != provider.StopEndTurn {
				t.Errorf("then: stop %q", out.Stop)
			}
			check(t, a.Session())
		})
	}
}

// TestRefusedWithAnyStatus: whatever status a provider gives a refusal, the entry that it is about
// is found, and the session lives.
func TestRefusedWithAnyStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 403, 404, 413, 415, 422, 500} {
		for _, off := range []bool{false, true} {
			server := providertest.New(t, func(r *providertest.Request) providertest.Answer {
				if strings.Contains(string(r.Body), poison) {
					return providertest.Answer{Status: status, Body: `{"error":{"type":"invalid_request_error","message":"messages.2: this content is not allowed"}}`}
				}
				return picky(func(r *providertest.Request) providertest.Answer {
					if steps(r) > 0 {
						return providertest.Answer{}
					}
					return providertest.Answer{Message: session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{session.ToolUse("c", "look", nil)}}}
				})(r)
			})
			look := agent.Tool{Tool: provider.Tool{Name: "look"}, Run: func(context.Context, agent.Call) (agent.Result, error) {
				return agent.Result{Text: poison}, nil
			}}
			a := start(t, agent.Options{
				Model: clientOf(t, "anthropic", server), Tools: []agent.Tool{look}, RetryWait: time.Millisecond, Compaction: agent.Compaction{Off: off},
			})
			for turn := range 2 {
				before := len(server.Requests())
				out, err := a.Send(t.Context(), session.Text("go"))
				if err != nil || out.Stop != provider.StopEndTurn {
					t.Errorf("status %d, turn %d: %+v, %v", status, turn, out, err)
				}
				if sent := len(server.Requests()) - before; sent > 16 {
					t.Errorf("status %d, turn %d: %d requests", status, turn, sent)
				}
			}
			check(t, a.Session())
		}
	}
}

// TestDownIsNotRefused: nothing is set aside because a server is broken, even if it works again
// while the agent looks, nor because the key is wrong or the model does not exist.
func TestDownIsNotRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status, from, until int
		body                string
		most                int
	}{
		"down": {500, 1, 1000, "boom", 9}, "down for a while": {500, 1, 7, "boom", 11}, "denied": {403, 1, 1000, "no", 2},
		"no such model": {404, 1, 1000, "model: m", 2}, "overloaded": {529, 1, 1000, "busy", 6},
	} {
		n := 0
		server := providertest.New(t, func(*providertest.Request) providertest.Answer {
			if n++; n > c.from && n < c.until {
				return providertest.Answer{Status: c.status, Body: `{"error":{"message":"` + c.body + `"}}`}
			}
			return providertest.Answer{}
		})
		a := start(t, agent.Options{Model: clientOf(t, "anthropic", server), RetryWait: time.Millisecond})
		send(t, a, "hello")
		if _, err := a.Send(t.Context(), session.Text("go on")); err == nil || strings.Contains(err.Error(), "whatever is left out") {
			t.Errorf("%s: %v", name, err)
		}
		if got := aside(t, a.Session()); len(got) > 0 || n > c.most {
			t.Errorf("%s: %d requests, and %v is set aside", name, n, got)
		}
	}
}

// TestRefusalOfEverything: if the provider refuses the request whatever is left out, the
// turn ends after three requests, and nothing is set aside.
func TestRefusalOfEverything(t *testing.T) {
	t.Parallel()
	answer := func(r *providertest.Request) providertest.Answer {
		if len(r.Entries) < 3 {
			return providertest.Answer{}
		}
		return providertest.Answer{Status: http.StatusBadRequest, Body: `{"error":{"type":"invalid_request_error","message":"no such model"}}`}
	}
	dialects(t, answer, func(t *testing.T, server *providertest.Server, model provider.Model) {
		a := start(t, agent.Options{Model: model})
		send(t, a, "hello")
		before := len(server.Requests())
		_, err := a.Send(t.Context(), session.Text("go on"), session.Image("image/png", pixel))
		if !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "no such model") || !strings.Contains(err.Error(), "whatever is left out") {
			t.Errorf("err %v", err)
		}
		if sent := len(server.Requests()) - before; sent != 3 {
			t.Errorf("%d requests were sent, want 3", sent)
		}
		if got := aside(t, a.Session()); len(got) != 0 {
			t.Errorf("entries %v are set aside", got)
		}
	})
}

// pixel is a PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// TestPoisonInALongConversation: an old entry is found with few requests, and of a message
// with a picture only the picture goes if that is enough.
func TestPoisonInALongConversation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at       int
		bad      session.Content
		requests int
		left     string
	}{
		{99, session.Image("image/png", pixel), 3, "look 99\n[something that is not text was here"},
		{0, session.Image("image/png", pixel), 3, "look 0\n[something that is not text was here"},
		{99, session.Text(poison), 6, "[this message is left out"},
		{40, session.Text(poison), 17, "[this message is left out"},
		{0, session.Text(poison), 17, "[this message is left out"},
	} {
		server := providertest.New(t, func(r *providertest.Request) providertest.Answer {
			if body := string(r.Body); strings.Contains(body, pixel) || strings.Contains(body, poison) {
				return providertest.Answer{Status: http.StatusBadRequest, Body: `{"error":{"message":"Could not process it"}}`}
			}
			return providertest.Answer{}
		})
		s := newSession(t)
		for i := range 100 {
			m := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(fmt.Sprint("look ", i))}}
			if i == c.at {
				m.Content = append(m.Content, c.bad)
			}
			if err := s.Append(session.Entry{Type: session.TypeMessage, Message: m}); err != nil {
				t.Fatal(err)
			}
		}
		a := startIn(t, s, agent.Options{Model: clientOf(t, "anthropic", server)})
		send(t, a, "go on")
		if got := aside(t, s); len(got) != 1 || !strings.HasPrefix(said(t, s)[c.at], "user: "+c.left) {
			t.Errorf("entry %d: %d entries are set aside, and it is %q", c.at, len(got), said(t, s)[c.at])
		}
		if sent := len(server.Requests()); sent > c.requests {
			t.Errorf("entry %d: %d requests, want %d", c.at, sent, c.requests)
		}
	}
}

// A picture that cannot be sent is named to the model, and the user is told, once.
func TestAPictureThatCannotBeSentIsReported(t *testing.T) {
	t.Parallel()
	answer := func(r *providertest.Request) providertest.Answer {
		if steps(r) > 0 {
			return providertest.Answer{}
		}
		return providertest.Answer{Message: session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{session.ToolUse("call_1", "one", map[string]any{})}}}
	}
	dialects(t, answer, func(t *testing.T, _ *providertest.Server, model provider.Model) {
		a := start(t, agent.Options{Model: model, Tools: []agent.Tool{echo("one")}})
		for i, want := range []int{1, 0} {
			news := a.Subscribe(1000)
			content := []session.Content{session.Text("look"), session.Image("image/png", "iVBORw0KGgoAAAA=")}
			if _, err := a.Send(t.Context(), content[:2-i]...); err != nil {
				t.Fatal(err)
			}
			news.Close()
			told := 0
			for e := range news.Events(t.Context()) {
				if e.Type == agent.Error && strings.Contains(e.Error, "image (image/png, 11 bytes) is not shown: ") {
					told++
				}
			}
			if told != want {
				t.Errorf("turn %d: it was told %d times", i+1, told)
			}
		}
	})
}
