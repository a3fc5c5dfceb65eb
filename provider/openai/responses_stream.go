package openai

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// FoldResponses reads a stream of Responses and returns the response that it ends with. If
// the stream breaks off, it returns the part that arrived.
func FoldResponses(r io.Reader) ([]byte, error) {
	return wire.Fold(r, NewResponsesStream(), "openai responses", "no event has a response")
}

// ResponsesStream is a response that grows by events: see provider.Stream.
type ResponsesStream struct {
	response wire.Object
	items    []*itemFold
	at       map[int]*itemFold // the newest item of each index
	done     bool
}

// itemFold is an item that grows. The pieces count only until the whole item arrives.
type itemFold struct {
	number int
	item   wire.Object
	whole  json.RawMessage // the item, once it is done
	parts  []*partFold
	input  strings.Builder // of a call
}

// partFold is a text of an item that grows.
type partFold struct {
	list  string // the member of the item that holds it
	kind  string
	index int
	text  strings.Builder
}

// NewResponsesStream returns a stream that has not begun.
func NewResponsesStream() *ResponsesStream {
	return &ResponsesStream{at: make(map[int]*itemFold)}
}

// Add takes the data of the next event.
func (s *ResponsesStream) Add(data []byte) ([]provider.Event, error) {
	o := wire.Members(data)
	kind := o.Str("type")
	switch kind {
	case "error":
		return nil, provider.ReadError(providerName, 0, data)
	case "response.output_item.added":
		return s.begin(o).start(), nil
	case "response.output_item.done":
		return s.end(o), nil
	case "response.output_text.delta":
		return s.extend(o, provider.EventText, "content", outputText), nil
	case "response.refusal.delta":
		return s.extend(o, provider.EventText, "content", "refusal"), nil
	case "response.reasoning_summary_text.delta":
		return s.extend(o, provider.EventThinking, "summary", "summary_text"), nil
	case "response.reasoning_text.delta":
		return s.extend(o, provider.EventThinking, "content", "reasoning_text"), nil
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		i := s.item(o)
		i.input.WriteString(o.Str("delta"))
		return i.piece(provider.EventCallDelta, o.Str("delta")), nil
	}
	response, ok := o.TakeObject("response")
	if !ok {
		return nil, nil
	}
	s.response = response
	s.done = kind == "response.completed" || kind == "response.incomplete"
	if kind == "response.failed" {
		return nil, provider.ReadError(providerName, 0, response.JSON())
	}
	return wire.Spent(provider.OpenAIResponsesUsage(response.Get("usage"))), nil
}

// begin adds an item.
func (s *ResponsesStream) begin(o wire.Object) *itemFold {
	item, _ := o.TakeObject("item")
	i := &itemFold{number: len(s.items), item: item}
	s.items, s.at[o.Int("output_index")] = append(s.items, i), i
	return i
}

// item returns the item that an event is about. Servers may leave out its
// beginning.
func (s *ResponsesStream) item(o wire.Object) *itemFold {
	if i := s.at[o.Int("output_index")]; i != nil {
		return i
	}
	return s.begin(o)
}

func (s *ResponsesStream) end(o wire.Object) []provider.Event {
	i := s.at[o.Int("output_index")]
	if i == nil || i.whole != nil {
		i = s.begin(o) // its beginning was left out
	}
	if raw := o.Get("item"); raw != nil {
		i.whole = raw
	} else {
		i.whole = i.item.JSON()
	}
	entries, err := DecodeItem(i.whole)
	if err != nil || len(entries) != 1 || entries[0].Message == nil {
		return nil
	}
	var events []provider.Event
	for _, c := range entries[0].Message.Content {
		if c.ToolUse != nil {
			events = append(events, provider.Event{Type: provider.EventCallEnd, Block: i.number, Call: c.ToolUse})
		}
	}
	return events
}

// extend lengthens a text of an item.
func (s *ResponsesStream) extend(o wire.Object, event provider.EventType, list, kind string) []provider.Event {
	i := s.item(o)
	index := o.Int("content_index")
	if list == "summary" {
		index = o.Int("summary_index")
	}
	at := slices.IndexFunc(i.parts, func(p *partFold) bool { return p.list == list && p.kind == kind && p.index == index })
	if at < 0 {
		at = len(i.parts)
		i.parts = append(i.parts, &partFold{list: list, kind: kind, index: index})
		if at > 0 && list == "summary" {
			event, text := provider.Event{Type: event, Block: i.number, Text: "\n\n"}, o.Str("delta")
			i.parts[at].text.WriteString(text)
			return append([]provider.Event{event}, i.piece(provider.EventThinking, text)...)
		}
	}
	i.parts[at].text.WriteString(o.Str("delta"))
	return i.piece(event, o.Str("delta"))
}

// start returns the event of a call that begins.
func (i *itemFold) start() []provider.Event {
	kind := i.item.Str("type")
	tool, own := toolItems[kind]
	if kind != "function_call" && !own || !i.item.Has("call_id") {
		return nil
	}
	call := &session.ToolUseContent{ID: i.item.Str("call_id"), Name: i.item.Str("name")}
	if call.Name == "" {
		call.Name = tool.name
	}
	return []provider.Event{{Type: provider.EventCallStart, Block: i.number, Call: call}}
}

func (i *itemFold) piece(kind provider.EventType, text string) []provider.Event {
	return wire.Piece(kind, i.number, text)
}

// Done reports whether the response is complete.
func (s *ResponsesStream) Done() bool { return s.done }

// Body returns the response as far as it has arrived.
func (s *ResponsesStream) Body() []byte {
	if s.response == nil {
		return nil
	}
	response := slices.Clone(s.response)
	if list, _ := wire.Elements(response.Get("output")); len(list) == 0 {
		items := []json.RawMessage{}
		for _, i := range s.items {
			if raw := i.json(); raw != nil {
				items = append(items, raw)
			}
		}
		response.Put("output", wire.List(items))
	}
	return response.JSON()
}

// json returns the part of the item that has arrived, or nil if there is none.
func (i *itemFold) json() json.RawMessage {
	if i.whole != nil {
		return i.whole
	}
	item := slices.Clone(i.item)
	switch kind := item.Str("type"); {
	case kind == itemMessage && len(i.parts) > 0:
		item.Put("content", i.texts("content"))
	case kind == "reasoning" && len(i.parts) > 0:
		item.Take("id") // the provider does not know it
		item.Put("summary", i.texts("summary"))
		if text := i.texts("content"); len(text) > len("[]") {
			item.Put("content", text)
		}
	case kind == "function_call":
		item.SetStr("arguments", i.input.String())
	case rawjson.Kind(item.Get("input")) == 's':
		item.SetStr("input", i.input.String())
	default:
		return nil
	}
	return item.JSON()
}

// texts returns the texts of a list of the item.
func (i *itemFold) texts(list string) json.RawMessage {
	parts := []json.RawMessage{}
	for _, p := range i.parts {
		if p.list != list {
			continue
		}
		member := "text"
		if p.kind == "refusal" {
			member = p.kind
		}
		parts = append(parts, wire.Object{{Name: "type", Value: wire.Quote(p.kind)}, {Name: member, Value: wire.Quote(p.text.String())}}.JSON())
	}
	return wire.List(parts)
}

// echoes are members of a response that repeat the request. They would be kept
// with every answer.
var echoes = []string{
	"instructions", "tools", "tool_choice", "text", "reasoning", "temperature", "top_p", "top_logprobs", "max_output_tokens",
	"max_tool_calls", "parallel_tool_calls", "previous_response_id", "prompt_cache_key", "prompt_cache_retention",
	"safety_identifier", "store", "truncation", "user", "metadata", "background", "moderation",
	"frequency_penalty", "presence_penalty",
}

// Message returns the part of the message that has arrived, without members that only repeat the
// request.
func (s *ResponsesStream) Message() (*session.MessageEntry, error) {
	body := wire.Members(s.Body())
	if body == nil {
		return nil, nil
	}
	body = slices.DeleteFunc(body, func(f session.Field) bool { return slices.Contains(echoes, f.Name) })
	return wire.MessageSoFar(body.JSON(), DecodeResponses)
}
