package anthropic

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// thought is how much of an answer is set aside, in tokens, for a model that decides itself how
// long it thinks, by level.
var thought = map[string]int{
	"": 8192, provider.ThinkingMinimal: 2048, provider.ThinkingLow: 2048, provider.ThinkingMedium: 8192,
	provider.ThinkingHigh: 16384, provider.ThinkingXHigh: 32768,
}

// EncodeRequest writes a request that streams its answer, for a model that takes what its family
// does. maxTokens limits the answer if the request sets no limit: this provider requires one.
func EncodeRequest(r *provider.Request, model string, f provider.Family, maxTokens int) (*provider.Encoded, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	f = f.Without(r.Without)
	ask := asking{Family: f, level: r.Thinking}
	m, err := encodeRuns(&encoder{unmarked: true}, r.Entries, func(runs *wire.Runs) {
		ask.decide(runs)
		if ask.isOff() && !wire.Object(r.Fields).Has("thinking") {
			dropThoughts(runs)
		}
	})
	if err != nil {
		return nil, err
	}
	var o wire.Object
	o.SetStr("model", model)
	if r.MaxTokens > 0 {
		maxTokens = r.MaxTokens
	}
	maxTokens = ask.write(&o, maxTokens, r.MaxTokens > 0)
	if ask.late {
		m.Notes = append(m.Notes, provider.Note{What: "thinking is off until the next prompt: the turn began without it"})
	}
	if r.Temperature != nil && f.Temperature && !o.Has("thinking") { // not allowed with thinking
		o.Put("temperature", strconv.AppendFloat(nil, *r.Temperature, 'g', -1, 64))
	}
	o.Put("max_tokens", wire.Number(maxTokens))
	o.Put("stream", json.RawMessage("true"))
	if len(r.Tools) > 0 {
		o.Put("tools", wire.EncodeTools(r.Tools, "input_schema", func(tool wire.Object) wire.Object { return tool }))
	}
	if !r.NoCache && f.CacheMarks >= marks {
		mark(&o, m.Fields)
	}
	m.Notes = append(m.Notes, r.Unsupported(f, o.Has("thinking"), o.Has("temperature"))...)
	return r.Finish(session.Fields(o), m), nil
}

// asking is how a request asks for thinking.
type asking struct {
	provider.Family
	level  string
	budget int
	late   bool // the turn began without thinking, so it cannot be asked for now
}

// decide looks at the messages of a request: a model with a budget may think only in a turn that
// began so.
func (a *asking) decide(runs *wire.Runs) {
	if a.Thinking != provider.ThinkingBudget {
		return
	}
	if a.budget = a.Budget(a.level); a.budget > 0 && !mayThink(runs) {
		a.budget, a.late = 0, true
	}
}

// isOff reports whether the model does not think, so that the present turn cannot have thoughts.
func (a *asking) isOff() bool {
	switch a.Thinking {
	case provider.ThinkingBudget:
		return a.budget == 0
	case provider.ThinkingAdaptive:
		word := a.Level(a.level)
		return word == a.Off && (word != "" || !a.Unasked)
	case provider.ThinkingNone:
		return true
	}
	return false // what it does is not known: nothing tells it not to think
}

// write adds the members that ask for thinking, and returns the limit of the answer, of which
// thinking is a part. What a caller wants to read comes on top.
func (a *asking) write(o *wire.Object, maxTokens int, limited bool) int {
	word := a.Level(a.level)
	switch {
	case a.budget > 0:
		if limited {
			maxTokens += a.budget
		} else if a.budget >= maxTokens {
			a.budget = max(1024, maxTokens/2)
		}
		o.SetObject("thinking", wire.Object{
			{Name: "type", Value: wire.Quote("enabled")}, {Name: "budget_tokens", Value: wire.Number(a.budget)},
		})
		return maxTokens
	case a.Thinking != provider.ThinkingAdaptive:
		return maxTokens
	case word != "" && word == a.Off:
		o.SetObject("thinking", wire.Object{{Name: "type", Value: wire.Quote(word)}})
		return maxTokens
	case word != "":
		thinking := wire.Object{{Name: "type", Value: wire.Quote("adaptive")}}
		thinking.SetText("display", a.Summary)
		o.SetObject("thinking", thinking)
		o.SetObject("output_config", wire.Object{{Name: "effort", Value: wire.Quote(word)}})
	case !a.Unasked:
		return maxTokens
	}
	return min(maxTokens+thought[a.level], max(a.MaxOutput, maxTokens))
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

// marks is how many marks a request gets at most.
const marks = 3

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
	if last == nil {
		return false
	}
	last.Put(cacheControl, cacheMark)
	blocks[len(blocks)-1] = last.JSON()
	return true
}
