package agent_test

import (
	"fmt"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// TestRequestsAreWhatTheLogSays: in a long conversation, in which the agent writes only what
// a request adds, with models of two providers in turn, the log still gives the bytes of
// each request.
func TestRequestsAreWhatTheLogSays(t *testing.T) {
	t.Parallel()
	n := 0
	server := providertest.New(t, func(*providertest.Request) providertest.Answer {
		n++
		m := session.MessageEntry{Role: session.RoleAssistant, StopReason: provider.StopEndTurn, Content: []session.Content{session.Text(fmt.Sprint("answer ", n))}}
		if n%3 != 0 {
			m.StopReason = provider.StopToolUse
			m.Content = append(m.Content, session.ToolUse(fmt.Sprint("call", n), "one", map[string]any{"text": "x"}))
		}
		return providertest.Answer{Message: m}
	})
	models := map[string]provider.Model{"anthropic": clientOf(t, "anthropic", server), "openai-chat": clientOf(t, "openai-chat", server)}
	s := newSession(t)
	a := startIn(t, s, agent.Options{Model: models["anthropic"], System: "be brief", Tools: []agent.Tool{echo("one")}})
	for i := range 24 {
		if i%8 == 0 {
			if err := a.SetModel(models[[]string{"anthropic", "openai-chat"}[i/8%2]]); err != nil {
				t.Fatal(err)
			}
		}
		send(t, a, fmt.Sprint("prompt ", i))
	}
	records := 0
	for r, err := range agent.Records(s) {
		if err != nil {
			t.Fatal(err)
		}
		if _, same, err := r.Rebuild(s, models[r.API]); !same || err != nil {
			t.Errorf("request %d is another one: %v", records, err)
		}
		records++
	}
	if records != 72 {
		t.Errorf("%d requests are on record", records)
	}
}
