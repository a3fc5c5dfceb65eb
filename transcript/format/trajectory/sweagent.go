package trajectory

import (
	"context"
	"errors"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

const sweAgent = "swe-agent"

// SWEAgent returns the format of SWE-agent (.traj) and of mini-swe-agent
// (.traj.json).
func SWEAgent() *transcript.Format {
	return &transcript.Format{
		Name: sweAgent, Title: "SWE-agent",
		Detect: func(f *transcript.File) bool {
			s := shape.OfFile(f)
			return has(s, "trajectory[].action", "trajectory[].observation", "trajectory[].response", "trajectory_format") ||
				has(s, "history[].message_type", "history[].agent") ||
				has(s, "info.model_stats") && has(s, "messages[].role", "history[].role")
		},
		Read: func(ctx context.Context, f *transcript.File, to transcript.Sink) error {
			return records.Each(ctx, f, to, func(rec records.Record) error { return readSWEAgent(f, to, rec) })
		},
	}
}

// readSWEAgent reads a run: what the model was sent and said, if that was kept,
// or else the steps.
func readSWEAgent(f *transcript.File, to transcript.Sink, rec records.Record) error {
	history := rec.Get("history")
	if !history.IsArray() {
		history = rec.Get("messages")
	}
	steps := rec.Get("trajectory")
	if !history.IsArray() && !steps.IsArray() {
		return records.Bad(errors.New("it has neither history, nor messages, nor a trajectory"))
	}
	native := rec.Get("instance_id").Text()
	if native == "" && rec.Only {
		native = stem(f)
	}
	r, err := begin(to, sweAgent, f, rec, native, "history", "messages", "trajectory")
	if err != nil {
		return err
	}
	if !history.IsArray() {
		return r.steps(steps)
	}
	n := 0
	for range steps.Items() {
		n++
	}
	if n > 0 { // they say again what the history says
		to.Count("step", transcript.OnlyKept, n)
	}
	for m := range history.Items() {
		if err := r.openai(named(m), "agent", "message_type", "thought", "action", "is_demo", "tool_call_ids", "extra", "tags"); err != nil {
			return err
		}
	}
	return nil
}

// named gives a tool's answer the id of the call that it answers: SWE-agent has
// a list of one.
func named(m loose.Value) loose.Value {
	id := m.Get("tool_call_ids").First()
	if m.Get("role").Text() != session.RoleTool || m.Has("tool_call_id") || id == nil {
		return m
	}
	o := residue.Object(m.Except())
	o.Set("tool_call_id", id.Raw())
	return loose.Value(o.JSON())
}

// steps adds what the model answered and what it was told then.
func (r *run) steps(steps loose.Value) error {
	for step := range steps.Items() {
		said := step.Get("response").Text()
		if said == "" {
			said = step.Get("thought").Text() + "\n" + step.Get("action").Text()
		}
		rest := residue.Object(step.Except("response", "observation"))
		m := &session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{session.Text(said)}}
		if len(rest) > 0 {
			m.Extra = residue.Keep(nil, sweAgent, rest.JSON())
		}
		if err := r.add(m, time.Time{}); err != nil {
			return err
		}
		told := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(step.Get("observation").Text())}}
		if err := r.add(told, time.Time{}); err != nil {
			return err
		}
	}
	return nil
}
