package providertest

import (
	"encoding/json"
	"slices"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// event returns an event of a stream: its name, if it has one, and its data.
func event(name string, data rawjson.Members) string {
	if name == "" {
		return "data: " + string(data.JSON()) + "\n\n"
	}
	return "event: " + name + "\ndata: " + string(data.JSON()) + "\n\n"
}

func members(pairs ...any) rawjson.Members {
	var o rawjson.Members
	for i := 0; i < len(pairs); i += 2 {
		value := pairs[i+1]
		if inner, ok := value.(rawjson.Members); ok {
			value = inner.JSON()
		}
		o.Set(pairs[i].(string), value)
	}
	return o
}

// defaults gives a message what every answer of a provider has.
func defaults(m *session.MessageEntry, format string) session.Entry {
	whole := *m
	whole.Content = slices.Clone(m.Content)
	for i := range whole.Content { // or what it thinks would be left out as another's
		if c := &whole.Content[i]; c.Thinking != nil {
			c.Extra = nil
			(&wire.Residue{}).Mark(&c.Extra, format)
		}
	}
	if whole.ResponseID == "" {
		whole.ResponseID = "resp_1"
	}
	if whole.Model == "" {
		whole.Model = "test-model"
	}
	if whole.StopReason == "" {
		whole.StopReason = provider.StopEndTurn
		if slices.ContainsFunc(m.Content, func(c session.Content) bool { return c.ToolUse != nil }) {
			whole.StopReason = provider.StopToolUse
		}
	}
	if whole.Usage == nil {
		whole.Usage = &session.Usage{Input: 10, Output: 5}
	}
	return session.Entry{Type: session.TypeMessage, Message: &whole}
}

// anthropicEvents returns the stream of a response of Anthropic's.
func anthropicEvents(whole rawjson.Members) []string {
	blocks, _ := rawjson.Elements(whole.Get("content"))
	usage := whole.Get("usage")
	start := slices.Clone(whole)
	start.Put("content", json.RawMessage("[]"))
	start.Put("stop_reason", json.RawMessage("null"))
	name := func(kind string, pairs ...any) string {
		return event(kind, members(append([]any{"type", kind}, pairs...)...))
	}
	events := []string{name("message_start", "message", start), name("ping")}
	for i, raw := range blocks {
		events = append(events, anthropicBlock(i, rawjson.MembersOf(raw), name)...)
	}
	return append(events,
		name("message_delta", "delta", members("stop_reason", whole.Str("stop_reason"), "stop_sequence", nil), "usage", usage),
		name("message_stop"))
}

func anthropicBlock(i int, block rawjson.Members, name func(string, ...any) string) []string {
	var deltas []rawjson.Members
	begin := slices.Clone(block)
	grow := func(kind, member, text string) {
		for _, piece := range pieces(text) {
			deltas = append(deltas, members("type", kind, member, piece))
		}
	}
	switch block.Str("type") {
	case "text":
		begin.SetStr("text", "")
		grow("text_delta", "text", block.Str("text"))
	case "thinking":
		begin.SetStr("thinking", "")
		begin.SetStr("signature", "")
		grow("thinking_delta", "thinking", block.Str("thinking"))
		grow("signature_delta", "signature", block.Str("signature"))
	case "tool_use":
		begin.Put("input", json.RawMessage("{}"))
		grow("input_json_delta", "partial_json", string(block.Get("input")))
	}
	events := []string{name("content_block_start", "index", i, "content_block", begin)}
	for _, delta := range deltas {
		events = append(events, name("content_block_delta", "index", i, "delta", delta))
	}
	return append(events, name("content_block_stop", "index", i))
}

// chatEvents returns the stream of a response of Chat Completions.
func chatEvents(whole rawjson.Members) []string {
	choices, _ := rawjson.Elements(whole.Get("choices"))
	choice := rawjson.MembersOf(choices[0])
	message := rawjson.MembersOf(choice.Get("message"))
	chunk := func(delta rawjson.Members, finish any) string {
		one := members("index", 0, "delta", delta, "finish_reason", finish)
		return event("", members("id", whole.Str("id"), "object", "chat.completion.chunk", "model", whole.Str("model"),
			"choices", rawjson.List([]json.RawMessage{one.JSON()}), "usage", nil))
	}
	events := []string{chunk(members("role", "assistant", "content", ""), nil)}
	for _, member := range []string{reasoning, "content"} {
		for _, piece := range pieces(message.Str(member)) {
			events = append(events, chunk(members(member, piece), nil))
		}
	}
	calls, _ := rawjson.Elements(message.Get("tool_calls"))
	for i, raw := range calls {
		call := rawjson.MembersOf(raw)
		function := rawjson.MembersOf(call.Get("function"))
		begin := members("index", i, "id", call.Str("id"), "type", "function",
			"function", members("name", function.Str("name"), "arguments", ""))
		events = append(events, chunk(members("tool_calls", rawjson.List([]json.RawMessage{begin.JSON()})), nil))
		for _, piece := range pieces(function.Str("arguments")) {
			delta := members("index", i, "function", members("arguments", piece))
			events = append(events, chunk(members("tool_calls", rawjson.List([]json.RawMessage{delta.JSON()})), nil))
		}
	}
	return append(events, chunk(nil, choice.Str("finish_reason")),
		event("", members("id", whole.Str("id"), "object", "chat.completion.chunk", "model", whole.Str("model"),
			"choices", json.RawMessage("[]"), "usage", whole.Get("usage"))),
		"data: [DONE]\n\n")
}

// responsesEvents returns the stream of a response of Responses.
func responsesEvents(whole rawjson.Members) []string {
	whole.SetStr("object", "response")
	if whole.Str("status") == "" {
		whole.SetStr("status", "completed")
	}
	items, _ := rawjson.Elements(whole.Get("output"))
	name := func(kind string, pairs ...any) string {
		return event(kind, members(append([]any{"type", kind}, pairs...)...))
	}
	begun := slices.Clone(whole)
	begun.Put("output", json.RawMessage("[]"))
	begun.SetStr("status", "in_progress")
	begun.Take("usage")
	events := []string{name("response.created", "response", begun), name("response.in_progress", "response", begun)}
	for i, raw := range items {
		item := rawjson.MembersOf(raw)
		if item.Str("id") == "" {
			item.SetStr("id", number("item_", i))
		}
		events = append(events, responsesItem(i, item, name)...)
		items[i] = item.JSON()
	}
	whole.Put("output", rawjson.List(items))
	return append(events, name("response."+whole.Str("status"), "response", whole))
}

func responsesItem(i int, item rawjson.Members, name func(string, ...any) string) []string {
	begin := slices.Clone(item)
	var events []string
	grow := func(kind, index string, j int, text string) {
		for _, piece := range pieces(text) {
			events = append(events, name(kind, "output_index", i, index, j, "delta", piece))
		}
	}
	list := func(member string) []json.RawMessage {
		parts, _ := rawjson.Elements(item.Get(member))
		begin.Put(member, json.RawMessage("[]"))
		return parts
	}
	switch item.Str("type") {
	case "message":
		for j, raw := range list("content") {
			grow("response.output_text.delta", "content_index", j, rawjson.MembersOf(raw).Str("text"))
		}
	case "reasoning":
		for j, raw := range list("summary") {
			grow("response.reasoning_summary_text.delta", "summary_index", j, rawjson.MembersOf(raw).Str("text"))
		}
		begin.Take("encrypted_content")
	case "function_call":
		begin.SetStr("arguments", "")
		grow("response.function_call_arguments.delta", "content_index", 0, item.Str("arguments"))
	}
	events = append([]string{name("response.output_item.added", "output_index", i, "item", begin)}, events...)
	return append(events, name("response.output_item.done", "output_index", i, "item", item))
}

// googleEvents returns the stream of a response of Gemini's.
func googleEvents(whole rawjson.Members) []string {
	candidates, _ := rawjson.Elements(whole.Get("candidates"))
	candidate := rawjson.MembersOf(candidates[0])
	parts, _ := rawjson.Elements(rawjson.MembersOf(candidate.Get("content")).Get("parts"))
	var events []string
	chunk := func(part rawjson.Members, finish string) {
		list := json.RawMessage("[]")
		if part != nil {
			list = rawjson.List([]json.RawMessage{part.JSON()})
		}
		one := members("content", members("parts", list, "role", "model"), "index", 0)
		o := members("responseId", whole.Str("responseId"), "modelVersion", whole.Str("modelVersion"))
		if finish != "" {
			one.SetStr("finishReason", finish)
			o.Put("usageMetadata", whole.Get("usageMetadata"))
		}
		o.Put("candidates", rawjson.List([]json.RawMessage{one.JSON()}))
		events = append(events, event("", o))
	}
	for _, raw := range parts {
		part := rawjson.MembersOf(raw)
		text := pieces(part.Str("text"))
		for i, piece := range text {
			one := slices.Clone(part)
			one.SetStr("text", piece)
			if i < len(text)-1 {
				one.Take("thoughtSignature")
			}
			chunk(one, "")
		}
		if len(text) == 0 {
			chunk(part, "")
		}
	}
	chunk(nil, candidate.Str("finishReason"))
	return events
}
