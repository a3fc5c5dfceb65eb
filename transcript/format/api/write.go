package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// write turns a conversation into a request: what the model would be sent now, with the other
// members that the request had when it was read.
func (w *wire) write(_ context.Context, s *transcript.Script, _ transcript.Env) (*transcript.Output, error) {
	messages, err := w.encode(s.Context.Entries)
	if err != nil {
		return nil, err
	}
	fields, err := requestFields(s)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(messages.Fields, func(f session.Field) bool { return f.Name == w.list && string(f.Value) == "[]" }) {
		return &transcript.Output{}, nil // a request without a message is refused
	}
	out := &transcript.Output{Losses: s.OtherBranches()}
	if s.Context.Compaction != "" {
		out.Losses = append(out.Losses, transcript.Loss{
			EntryID: s.Context.Compaction, What: "compacted history", Why: "a request has what the model is sent: the summary",
		})
	}
	for _, p := range s.Context.Problems {
		out.Losses = append(out.Losses, transcript.Loss{EntryID: p.EntryID, What: string(p.Kind), Why: p.Detail})
	}
	for _, n := range messages.Notes {
		out.Losses = append(out.Losses, transcript.Loss{EntryID: n.Entry, What: n.What, Why: w.title + " has no place for it"})
	}
	request := messages.Request(fields)
	for _, fault := range w.check(request) {
		out.Losses = append(out.Losses, transcript.Loss{What: fault.String(), Why: w.title + " would refuse it"})
	}
	out.Files = []transcript.OutputFile{{Path: s.Header.ID + "." + w.name + ".json", Data: append(request, '\n')}}
	return out, nil
}

// requestFields returns the members of the request besides the messages, in a
// fixed order. A conversation from elsewhere has its model there.
func requestFields(s *transcript.Script) (session.Fields, error) {
	facts, ok := s.Facts[factRequest].(map[string]any)
	if !ok && s.Context.Model != "" {
		facts = map[string]any{"model": s.Context.Model}
	}
	var fields session.Fields
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		value, err := marshal(facts[name])
		if err != nil {
			return nil, fmt.Errorf("member %s of the request: %w", name, err)
		}
		fields = append(fields, session.Field{Name: name, Value: value})
	}
	return fields, nil
}

func marshal(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(buf.Bytes()), err
}
