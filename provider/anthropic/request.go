package anthropic

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// budgets are the tokens that a model may think with, by level. Off and minimal ask for
// none: the smallest allowed budget is 1,024.
var budgets = map[string]int{
	provider.ThinkingLow: 2048, provider.ThinkingMedium: 8192, provider.ThinkingHigh: 16384, provider.ThinkingXHigh: 32768,
}

// EncodeRequest writes a request that streams its answer. maxTokens limits the answer
// if the request sets no limit: this provider requires one.
func EncodeRequest(r *provider.Request, model string, maxTokens int) (*provider.Encoded, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	budget, late := budgets[r.Thinking], false
	m, err := encodeRuns(r.Entries, false, func(runs *wire.Runs) {
		if late = budget > 0 && !mayThink(runs); late {
			budget = 0
		}
		if budget == 0 && !wire.Object(r.Fields).Has("thinking") {
			dropThoughts(runs)
		}
	})
	if err != nil {
		return nil, err
	}
	if r.MaxTokens > 0 {
		maxTokens = r.MaxTokens
	}
	var o wire.Object
	o.SetStr("model", model)
	if late {
		m.Notes = append(m.Notes, provider.Note{What: "thinking is off until the next prompt: the turn began without it"})
	}
	if budget > 0 {
		if r.MaxTokens > 0 { // what the caller wants to read comes on top
			maxTokens += budget
		} else if budget >= maxTokens {
			budget = max(1024, maxTokens/2)
		}
		o.SetObject("thinking", wire.Object{
			{Name: "type", Value: wire.Quote("enabled")}, {Name: "budget_tokens", Value: wire.Number(budget)},
		})
	} else if r.Temperature != nil { // not allowed with thinking
		o.Put("temperature", strconv.AppendFloat(nil, *r.Temperature, 'g', -1, 64))
	}
	o.Put("max_tokens", wire.Number(maxTokens))
	o.Put("stream", json.RawMessage("true"))
	if len(r.Tools) > 0 {
		o.Put("tools", tools(r.Tools))
	}
	if !r.NoCache {
		mark(&o, m.Fields)
	}
	return r.Finish(session.Fields(o), m), nil
}

func tools(list []provider.Tool) json.RawMessage {
	all := make([]json.RawMessage, len(list))
	for i := range list {
		var o wire.Object
		o.SetStr("name", list[i].Name)
		o.SetText("description", list[i].Description)
		o.Put("input_schema", list[i].Arguments())
		all[i] = o.JSON()
	}
	return wire.List(all)
}

// mayThink reports whether a request may ask for thinking. Within a turn of calls and
// results it may only if the turn began with thinking, and that thinking is still
// there.
func mayThink(runs *wire.Runs) bool {
	for i := len(runs.List) - 1; i >= 0; i-- {
		switch run := &runs.List[i]; {
		case run.Model:
			blocks := run.Elements("content")
			return len(blocks) == 0 || isThought(wire.Members(blocks[0]))
		case !run.Results:
			return true
		}
	}
	return true
}

// dropThoughts leaves out what the model thought in the present turn. A request that does
// not ask for thinking cannot have it there:
// https://github.com/tailcallhq/forgecode/issues/1853.
func dropThoughts(runs *wire.Runs) {
	for i := len(runs.List) - 1; i >= 0 && (runs.List[i].Model || runs.List[i].Results); i-- {
		run := &runs.List[i]
		had := run.Elements("content")
		kept := slices.DeleteFunc(slices.Clone(had), func(raw json.RawMessage) bool { return run.Model && isThought(wire.Members(raw)) })
		switch {
		case len(kept) == 0 && len(had) > 0:
			runs.List = slices.Delete(runs.List, i, i+1)
		case len(kept) < len(had):
			run.SetElements("content", kept)
		}
	}
}

// cacheMark asks the provider to remember everything up to a block.
var cacheMark = json.RawMessage(`{"type":"ephemeral"}`)

// mark sets the marks at which the provider caches the prompt. It allows four, and
// three are used: one after the tools and the system prompt, which stay the same, and
// one after each of the user's last two messages. At the later one, the next request
// will find this one. At the earlier one, this request finds the last: without it the
// provider would look back over 20 blocks only.
func mark(o *wire.Object, fields session.Fields) {
	m := wire.Object(fields)
	if system := m.Get("system"); system != nil {
		blocks := wire.Blocks(system)
		setMark(blocks)
		m.Put("system", wire.List(blocks))
	} else if list, ok := wire.Elements(o.Get("tools")); ok {
		setMark(list)
		o.Put("tools", wire.List(list))
	}
	list, _ := wire.Elements(m.Get("messages"))
	left := 2
	for i := len(list) - 1; i >= 0 && left > 0; i-- {
		message := wire.Members(list[i])
		if message.Str("role") != session.RoleUser {
			continue
		}
		blocks := wire.Blocks(message.Get("content"))
		if setMark(blocks) {
			message.Put("content", wire.List(blocks))
			list[i] = message.JSON()
			left--
		}
	}
	m.Put("messages", wire.List(list))
}

// setMark marks the last block.
func setMark(blocks []json.RawMessage) bool {
	if len(blocks) == 0 {
		return false
	}
	last := wire.Members(blocks[len(blocks)-1])
	if last == nil || rawjson.Kind(last.Get("cache_control")) == 'o' {
		return last != nil // it has one of its own
	}
	last.Put("cache_control", cacheMark)
	blocks[len(blocks)-1] = last.JSON()
	return true
}
