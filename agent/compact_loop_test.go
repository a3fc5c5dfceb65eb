package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
)

// TestCompactionDoesNotLoop: long instructions in a small window leave little room, and each
// step adds to it. A compaction comes only after the conversation has grown.
func TestCompactionDoesNotLoop(t *testing.T) {
	t.Parallel()
	const size, steps = 32_768, 60
	for name, c := range map[string]struct {
		instructions, result int // bytes
		most                 int // compactions
	}{
		"short instructions": {1000, 4000, 8},
		"long instructions":  {60_000, 4000, 16},
		"hardly any room":    {85_000, 4000, 20},
		"large results":      {60_000, 16_000, 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			model := provider.Func{About: provider.Info{Provider: "p", Model: "m", Window: size}, Answer: func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
				n++
				return &session.MessageEntry{
					Content: []session.Content{session.ToolUse(fmt.Sprint("c", n), "effect", map[string]any{})}, StopReason: provider.StopToolUse,
					Usage: &session.Usage{Input: r.Encoded.Size() / 4, Output: 10}, // far more than is estimated
				}, nil
			}}
			effect := agent.Tool{Tool: provider.Tool{Name: "effect"}, Run: func(context.Context, agent.Call) (agent.Result, error) {
				return agent.Result{Text: strings.Repeat("abc def ", c.result/8)}, nil
			}}
			a := start(t, agent.Options{
				Model: model, MaxSteps: steps, System: strings.Repeat("instruction ", c.instructions/12), Tools: []agent.Tool{effect},
				Compaction: agent.Compaction{Model: &offline.Model{Window: size}},
			})
			news := a.Subscribe(1 << 16)
			send(t, a, "go")
			_ = a.Close()
			tried := compactions(t, news)
			if len(tried) == 0 || len(tried) > c.most {
				t.Errorf("%d compactions in %d steps", len(tried), steps)
			}
			grown := 0
			for _, e := range tried {
				if e.Err == nil && e.Compacted.TokensBefore < grown {
					t.Errorf("a compaction at %d tokens, where %d were to be awaited", e.Compacted.TokensBefore, grown)
				}
				if e.Err == nil {
					grown = e.Compacted.TokensAfter + size/8
				}
			}
		})
	}
}

// TestInstructionsThatLeaveNoRoom: no compaction can help, so the error says what to do.
func TestInstructionsThatLeaveNoRoom(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{Model: &offline.Model{Window: 4000}, System: strings.Repeat("instruction ", 2000)})
	news := a.Subscribe(0)
	_, err := a.Send(t.Context(), session.Text("say one"))
	if !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "the instructions and tools have about") || !strings.Contains(err.Error(), "the window has 4000") {
		t.Errorf("the error is %v", err)
	}
	if err := a.SetSystem("be brief"); err != nil {
		t.Fatal(err)
	}
	send(t, a, "say two")
	_ = a.Close()
	if tried := compactions(t, news); len(tried) > 0 {
		t.Errorf("%d compactions were tried", len(tried))
	}
}
