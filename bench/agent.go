package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// How many requests the turns have that are measured.
const (
	slowSteps  = 10  // of a model that answers in 200 ms, which is sooner than real ones do
	agentSteps = 100 // of one that answers at once
)

// agentLoop measures what the agent adds to a model and its tools: a log on the disk,
// synced before everything that depends on it, events, records. The raw column is a loop
// that only calls the model and the tool.
func agentLoop(b *bench) []row {
	st, err := file.Open(b.newDir(), nil)
	check(err)
	defer func() { check(st.Close()) }()
	var rows []row
	measure := func(steps int, delay time.Duration, rounds int) (bare, ours time.Duration) {
		model := toolCaller(steps, delay)
		t := inTurns(rounds, once(func() { bareTurn(model) }), once(func() { agentTurn(st, model, steps) }))
		return t[0], t[1]
	}
	bare, ours := measure(slowSteps, 200*time.Millisecond, b.rounds(3))
	rows = append(rows, atMost("agent loop, the model answers in 200 ms", bare, ours, 1.05))
	bare, ours = measure(agentSteps, 0, b.rounds(15))
	return append(rows, beside("– a step, the model answers at once", bare/agentSteps, ours/agentSteps, time.Millisecond))
}

func agentTurn(st *file.Store, model provider.Model, steps int) {
	s, err := session.Create(context.Background(), st, session.Header{}, nil)
	check(err)
	a, err := agent.New(s, agent.Options{Model: model, Tools: []agent.Tool{{Tool: benchTool, Run: runBenchTool}}})
	check(err)
	out, err := a.Send(context.Background(), session.Text("go"))
	check(err)
	if out.Steps != steps {
		check(fmt.Errorf("%d steps, want %d", out.Steps, steps))
	}
	check(a.Close())
	check(s.Close())
}

func bareTurn(model provider.Model) {
	ctx := context.Background()
	entries := []session.Entry{session.Message(session.RoleUser, session.Text("go"))}
	for {
		response, err := provider.Respond(ctx, model, &provider.Request{Entries: entries, Tools: []provider.Tool{benchTool}}, nil)
		check(err)
		entries = append(entries, session.Entry{Type: session.TypeMessage, Message: response.Message})
		calls := response.Calls()
		if len(calls) == 0 {
			return
		}
		for _, c := range calls {
			input, err := c.InputJSON()
			check(err)
			result, err := runBenchTool(ctx, agent.Call{ID: c.ID, Input: input})
			check(err)
			entries = append(entries, session.Message(session.RoleTool, session.ToolResult(c.ID, result.Text, false)))
		}
	}
}

var benchTool = provider.Tool{Name: "echo", Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)}

func runBenchTool(_ context.Context, c agent.Call) (agent.Result, error) {
	var input struct{ Text string }
	err := json.Unmarshal(c.Input, &input)
	return agent.Result{Text: input.Text}, err
}

// toolCaller is a model that calls a tool in every step but the last of a turn.
func toolCaller(steps int, delay time.Duration) provider.Model {
	return provider.Func{
		About: provider.Info{Provider: "bench", Model: "caller", Window: 1 << 20},
		Answer: func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
			if delay > 0 {
				time.Sleep(delay)
			}
			if len(r.Entries) >= 2*steps-1 { // the prompt, and a call and its result for each step before
				return &session.MessageEntry{Content: []session.Content{session.Text("done")}}, nil
			}
			call := session.ToolUse(fmt.Sprint("call", len(r.Entries)), benchTool.Name, map[string]any{"text": "a few words of a file"})
			return &session.MessageEntry{Content: []session.Content{call}}, nil
		},
	}
}
