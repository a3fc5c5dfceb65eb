package agent_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// An agent with one tool. The model is built in, so that this runs anywhere; a client of
// package provider/client takes its place.
func Example() {
	ctx := context.Background()
	s, err := session.Create(ctx, memory.New(nil), session.Header{}, nil)
	if err != nil {
		panic(err)
	}
	defer s.Close()

	add := agent.Tool{
		Tool: provider.Tool{
			Name: "add", Description: "Adds two numbers.",
			Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}}}`),
		},
		Repeatable: true,
		Run: func(_ context.Context, call agent.Call) (agent.Result, error) {
			var in struct{ A, B float64 }
			if err := json.Unmarshal(call.Input, &in); err != nil {
				return agent.Result{}, err
			}
			return agent.Result{Text: fmt.Sprint(in.A + in.B)}, nil
		},
	}
	a, err := agent.New(s, agent.Options{Model: &offline.Model{}, Tools: []agent.Tool{add}})
	if err != nil {
		panic(err)
	}
	defer a.Close()

	out, err := a.Send(ctx, session.Text(`call add {"a": 2, "b": 3}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(out.Steps, "requests:", session.TextOf(out.Message.Content))
	// Output: 2 requests: add answered: 5
}
