package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	"github.com/coppice-dev/coppice/session/clean"
)

// modelAt returns a client for a model of a server.
func modelAt(t *testing.T, server *providertest.Server, api, model string, change ...func(*client.Options)) provider.Model {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	o := client.Options{
		Provider: api, Model: model, BaseURL: server.URL, HTTP: &http.Client{Transport: transport},
		Timeouts: client.Timeouts{Retry: time.Millisecond},
	}
	for _, f := range change {
		f(&o)
	}
	m, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// thinker answers every prompt with a thought and two calls, then a thought and another call,
// then words.
func thinker(r *providertest.Request) providertest.Answer {
	n := steps(r)
	said := []session.Content{session.Thinking(fmt.Sprint("hm ", len(r.Entries)), fmt.Sprint("c2lnbmVk", len(r.Entries)))}
	for i := range 2 - n {
		said = append(said, session.ToolUse(fmt.Sprintf("call_%d_%d", len(r.Entries), i), "look", map[string]any{"at": i}))
	}
	if n >= 2 {
		said = append(said, session.Text("done"))
	}
	return providertest.Answer{Message: session.MessageEntry{Role: session.RoleAssistant, Content: said}}
}

// strictModels are models of each family, by the API that they are asked with.
var strictModels = map[string][]string{
	"anthropic": {
		"claude-3-5-sonnet-20241022", "claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-4-8", "claude-sonnet-5", "claude-opus-5-5", "claude-opus-9",
	},
	"openai":      {"gpt-4o", "o3", "gpt-5", "gpt-5-chat-latest", "gpt-5-pro", "gpt-5.1", "gpt-5.6-terra", "gpt-9"},
	"openai-chat": {"gpt-4o", "gpt-5", "gpt-5.4", "gpt-5.6-sol", "llama3.2"},
	"google":      {"gemini-2.5-pro", "gemini-2.5-flash-lite", "gemini-3-pro-preview", "gemini-3.8-flash", "gemini-4-argon"},
}

// TestEveryFamilyTakesWhatItIsSent: a chat of five turns with tools, with the default settings
// and with each thinking level, a temperature, and a long name, ends without a refusal.
func TestEveryFamilyTakesWhatItIsSent(t *testing.T) {
	t.Parallel()
	warm := 0.7
	for api, models := range strictModels {
		for _, model := range models {
			t.Run(api+"/"+model, func(t *testing.T) {
				t.Parallel()
				for _, level := range append([]string{""}, provider.ThinkingLevels...) {
					server := providertest.New(t, thinker)
					o := agent.Options{Model: modelAt(t, server, api, model), System: "be brief", Tools: []agent.Tool{looking()}, Thinking: level}
					if level != "" {
						o.Temperature = &warm
					}
					a := startIn(t, longNamed(t), o)
					for turn := range 5 {
						if out, err := a.Send(t.Context(), session.Text(fmt.Sprint("go ", turn))); err != nil || out.Stop != provider.StopEndTurn || out.Steps != 3 {
							t.Errorf("level %q, turn %d: %+v, %v", level, turn, out, err)
						}
					}
					if refused := server.Refusals(); len(refused) > 0 {
						t.Errorf("level %q: %d refusals: %q", level, len(refused), refused[0])
					}
				}
			})
		}
	}
}

// looking is a tool whose schema has alternatives at its top, as some servers write them.
func looking() agent.Tool {
	return agent.Tool{
		Tool: provider.Tool{Name: "look", Schema: []byte(`{"anyOf":[{"properties":{"at":{"type":"integer"}},"required":["at"]},{"properties":{"url":{"type":"string"}},"required":["url"]}]}`)},
		Run:  func(context.Context, agent.Call) (agent.Result, error) { return agent.Result{Text: "seen"}, nil },
	}
}

// longNamed returns a session with a name that is longer than a key for a cache may be.
func longNamed(t *testing.T) *session.Session {
	t.Helper()
	s, err := session.Create(t.Context(), newStore(t), session.Header{ID: strings.Repeat("s", 80)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestFallbackInMidTurn: a model that signs its calls takes over a turn that another one began.
func TestFallbackInMidTurn(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"gemini-3-pro-preview", "gemini-2.5-pro"} {
		server := providertest.New(t, thinker)
		calls := 0
		first := provider.Func{About: provider.Info{Provider: "anthropic", Model: "claude-x", Retries: provider.Retries{Most: -1}}}
		first.Answer = func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
			if calls++; calls > 1 {
				return nil, provider.ErrUnavailable
			}
			return &session.MessageEntry{Content: []session.Content{
				session.ToolUse("toolu_1", "look", map[string]any{"at": 1}), session.ToolUse("toolu_2", "look", map[string]any{"at": 2}),
			}}, nil
		}
		a := start(t, agent.Options{Model: first, Fallback: []provider.Model{modelAt(t, server, "google", model)}, Tools: []agent.Tool{looking()}})
		if out := send(t, a, "go"); out.Stop != provider.StopEndTurn || len(server.Refusals()) > 0 {
			t.Errorf("%s: %+v, refused %q", model, out, server.Refusals())
		}
	}
}

// TestRefusedParameter: a parameter that a model turns out not to take is left out from then on,
// by all clients that share what they know, the turn goes on, and an event says so. What was
// sent can still be built again from the log.
func TestRefusedParameter(t *testing.T) {
	t.Parallel()
	warm := 0.5
	for api, model := range map[string]string{"anthropic": "claude-opus-4-7", "openai": "gpt-5", "openai-chat": "o3", "google": "gemini-3-pro"} {
		server := providertest.New(t, thinker)
		shared := &client.Refusals{}
		wrong, err := provider.ParseFamilies([]string{
			model + " window=200000 output=30000 temperature=yes marks=4 " + map[string]string{
				"anthropic": "thinking=budget least=1024", "openai": "thinking=effort levels=max encrypted=yes", "openai-chat": "thinking=effort levels=minimal",
				"google": "thinking=level levels=medium signature=skip_thought_signature_validator",
			}[api],
		})
		if err != nil {
			t.Fatal(err)
		}
		for chat := range 2 {
			m := modelAt(t, server, api, model, func(o *client.Options) { o.Families, o.Refusals = wrong, shared })
			a := start(t, agent.Options{Model: m, Tools: []agent.Tool{looking()}, Thinking: provider.ThinkingHigh, Temperature: &warm})
			news := a.Subscribe(1000)
			before := len(server.Refusals())
			if out := send(t, a, "go"); out.Stop != provider.StopEndTurn {
				t.Errorf("%s: %+v", api, out)
			}
			refused := server.Refusals()[before:]
			if chat == 0 && (len(refused) == 0 || len(refused) > 2) || chat > 0 && len(refused) > 0 {
				t.Errorf("%s, chat %d: refused %q", api, chat, refused)
			}
			told := 0
			for e := range news.Events(t.Context()) {
				if e.Type == agent.Error && strings.Contains(e.Error, "does not take") {
					told++
				}
				if e.Type == agent.TurnEnd {
					break
				}
			}
			if told != len(refused) {
				t.Errorf("%s, chat %d: told %d times", api, chat, told)
			}
			if got := aside(t, a.Session()); len(got) > 0 {
				t.Errorf("%s: %v is set aside", api, got)
			}
			afresh := modelAt(t, server, api, model, func(o *client.Options) { o.Families = wrong })
			all := records(t, a.Session())
			for i, r := range all {
				if _, same, err := r.Rebuild(a.Session(), afresh); !same || err != nil {
					t.Errorf("%s: request %d cannot be built again: %v", api, i, err)
				}
			}
			if last := all[len(all)-1]; !slices.ContainsFunc(last.Without, func(p string) bool { return p == "thinking" || p == "temperature" }) {
				t.Errorf("%s: the last record has %v", api, last.Without)
			}
		}
	}
}

// TestRedactedThought: a signed thought from which a secret was taken is not sent back as if it
// were whole, whether the log was cleaned as it was written or later.
func TestRedactedThought(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 7))
	secret := "ghp_"
	for range 36 {
		secret += string("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[random.IntN(62)])
	}
	for api, model := range map[string]string{"anthropic": "claude-sonnet-4-5", "openai": "gpt-5", "google": "gemini-3-pro"} {
		server := providertest.New(t, func(r *providertest.Request) providertest.Answer {
			a := thinker(r)
			if t := a.Message.Content[0].Thinking; t != nil && len(r.Entries) == 1 {
				t.Content = "the key is " + secret
			}
			return a
		})
		s, err := session.Create(t.Context(), newStore(t), session.Header{}, &session.Options{Clean: clean.Append})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		a := startIn(t, s, agent.Options{Model: modelAt(t, server, api, model), Tools: []agent.Tool{looking()}, Thinking: provider.ThinkingLow})
		for range 2 {
			send(t, a, "go")
		}
		if refused := server.Refusals(); len(refused) > 0 {
			t.Errorf("%s: refused %q", api, refused)
		}
		for _, r := range server.Requests() {
			if strings.Contains(string(r.Body), secret) {
				t.Errorf("%s is sent the secret", api)
			}
		}
	}
}
