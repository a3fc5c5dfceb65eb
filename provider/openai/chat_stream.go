package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// FoldChat reads a stream of Chat Completions and returns the response that would have come
// without streaming. If the stream breaks off, it returns the part that arrived.
func FoldChat(r io.Reader) ([]byte, error) {
	return wire.Fold(r, NewChatStream(), "openai chat", "no chunk has choices")
}

// ChatStream is a response that grows by chunks: see provider.Stream. The events
// are those of the first choice.
type ChatStream struct {
	response wire.Object // without its choices
	choices  []*choiceFold
	at       map[int]*choiceFold // the choices by their index
	begun    map[int]bool        // the calls that have begun, by their number
	pairs    wire.Pairs          // gives a call without an id the one that it will have in the message
	ended    bool                // the ends of the calls were reported
}

type choiceFold struct {
	calls    callNumbers
	choice   wire.Object // without what grows
	message  wire.Merged
	logprobs wire.Merged
}

// NewChatStream returns a stream that has not begun.
func NewChatStream() *ChatStream {
	return &ChatStream{at: make(map[int]*choiceFold), begun: make(map[int]bool)}
}

// Add takes the next chunk.
func (s *ChatStream) Add(data []byte) ([]provider.Event, error) {
	if string(data) == wire.End {
		return s.end(), nil
	}
	o, err := wire.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("a chunk must be an object, not %.40s", data)
	}
	if e := o.Get("error"); e != nil && !rawjson.IsNull(e) {
		return nil, provider.ReadError(providerName, 0, data)
	}
	choices, ok := o.TakeElements("choices")
	if !ok {
		return nil, nil // a ping of some sort
	}
	o.Take("obfuscation") // meaningless padding
	o.SetStr("object", "chat.completion")
	update(&s.response, o)
	var events []provider.Event
	for _, raw := range choices {
		choice := wire.Members(raw)
		c := s.choice(choice.Int("index"))
		c.calls.number(&choice)
		events = append(events, s.choiceEvents(choice)...)
		c.add(choice)
	}
	events = append(events, s.endCalls()...)
	return append(events, wire.Spent(provider.OpenAIChatUsage(o.Get("usage")))...), nil
}

// Numbers for the blocks of a chat message, which does not number them.
const (
	blockThinking = iota
	blockText
	blockCalls // and those after it
)

// choiceEvents returns the events of a piece of the first choice.
func (s *ChatStream) choiceEvents(choice wire.Object) []provider.Event {
	if choice.Int("index") != 0 {
		return nil
	}
	var events []provider.Event
	piece := func(kind provider.EventType, block int, text string) {
		events = append(events, wire.Piece(kind, block, text)...)
	}
	delta := wire.Members(choice.Get("delta"))
	if thought := delta.Str(reasoningContent); thought != "" {
		piece(provider.EventThinking, blockThinking, thought)
	} else {
		piece(provider.EventThinking, blockThinking, delta.Str(formReasoning))
	}
	piece(provider.EventText, blockText, delta.Str("content"))
	piece(provider.EventText, blockText, delta.Str("refusal"))
	calls, _ := wire.Elements(delta.Get("tool_calls"))
	for _, raw := range calls {
		call := wire.Members(raw)
		function := wire.Members(call.Get("function"))
		index := call.Int("index")
		if !s.begun[index] {
			s.begun[index] = true
			name := function.Str("name")
			start := &session.ToolUseContent{ID: s.pairs.Call(call.Str("id"), name), Name: name}
			events = append(events, provider.Event{Type: provider.EventCallStart, Block: blockCalls + index, Call: start})
		}
		piece(provider.EventCallDelta, blockCalls+index, function.Str("arguments"))
	}
	if call := wire.Members(delta.Get("function_call")); call != nil { // the old form: one call, without an id
		if !s.begun[0] {
			s.begun[0] = true
			start := &session.ToolUseContent{ID: s.pairs.Call("", ""), Name: call.Str("name")}
			events = append(events, provider.Event{Type: provider.EventCallStart, Block: blockCalls, Call: start})
		}
		piece(provider.EventCallDelta, blockCalls, call.Str("arguments"))
	}
	return events
}

// endCalls returns the ends of the calls once the first choice is complete: only then are
// they certainly complete.
func (s *ChatStream) endCalls() []provider.Event {
	if s.ended || len(s.begun) == 0 || !s.Done() {
		return nil
	}
	s.ended = true
	message := wire.Members(s.at[0].json().Get("message"))
	message.SetStr("role", session.RoleAssistant) // servers may leave it out
	e, err := (&ChatDecoder{}).Message(message.JSON())
	if err != nil {
		return nil // cannot happen: this package wrote the message
	}
	var events []provider.Event
	for i := range e.Message.Content {
		if call := e.Message.Content[i].ToolUse; call != nil {
			events = append(events, provider.Event{Type: provider.EventCallEnd, Block: blockCalls + len(events), Call: call})
		}
	}
	return events
}

// end handles the mark at the end of a stream. Some servers do not say why they ended, but an
// answer that they mark as ended is complete.
func (s *ChatStream) end() []provider.Event {
	if c := s.at[0]; c != nil && !s.Done() {
		reason := "stop"
		if len(s.begun) > 0 {
			reason = "tool_calls"
		}
		c.choice.SetStr("finish_reason", reason)
	}
	return s.endCalls()
}

// Done reports whether the first choice says why it ended.
func (s *ChatStream) Done() bool {
	return s.at[0] != nil && s.at[0].choice.Str("finish_reason") != ""
}

// choice returns the choice with an index.
func (s *ChatStream) choice(index int) *choiceFold {
	c := s.at[index]
	if c == nil {
		c = &choiceFold{}
		s.choices, s.at[index] = append(s.choices, c), c
	}
	return c
}

// add adds a piece.
func (c *choiceFold) add(o wire.Object) {
	if delta := o.Take("delta"); rawjson.Kind(delta) == 'o' {
		c.message.Add(delta)
	}
	if logprobs := o.Take("logprobs"); logprobs != nil {
		c.logprobs.Add(logprobs)
	}
	update(&c.choice, o)
}

// callNumbers numbers the calls of a choice in the order in which they begin. Servers that give
// all calls one index, or none, tell them apart by their ids.
type callNumbers struct {
	ids     []string
	byIndex map[int64]int // the newest call of each index
}

// number gives the calls in a piece their numbers in place of the server's indexes.
func (n *callNumbers) number(choice *wire.Object) {
	delta := wire.Members(choice.Get("delta"))
	list, _ := wire.Elements(delta.Get("tool_calls"))
	if len(list) == 0 {
		return
	}
	for i, raw := range list {
		if call := wire.Members(raw); call != nil {
			at := n.of(call)
			call.Put("index", wire.Number(at))
			if call.Str("id") != "" {
				call.SetStr("id", n.ids[at])
			}
			list[i] = call.JSON()
		}
	}
	delta.Put("tool_calls", wire.List(list))
	choice.SetObject("delta", delta)
}

func (n *callNumbers) of(call wire.Object) int {
	index, indexed := rawjson.Int(call.Get("index"))
	id := call.Str("id")
	named := wire.Members(call.Get("function")).Str("name") != ""
	at, known := n.byIndex[index]
	if !indexed {
		at, known = len(n.ids)-1, len(n.ids) > 0 && (id != "" || !named)
	}
	// Some servers give every piece of a call another id, but only its first a name.
	if !known || named && id != "" && n.ids[at] != "" && n.ids[at] != id {
		at = len(n.ids)
		n.ids = append(n.ids, id)
	}
	if n.ids[at] == "" {
		n.ids[at] = id
	}
	if indexed {
		if n.byIndex == nil {
			n.byIndex = make(map[int64]int)
		}
		n.byIndex[index] = at
	}
	return at
}

// update sets the members that the newer object has and that are not null.
func update(o *wire.Object, newer wire.Object) {
	for _, f := range newer {
		if !o.Has(f.Name) || !rawjson.IsNull(f.Value) {
			o.Put(f.Name, f.Value)
		}
	}
}

// Body returns the response as far as it has arrived.
func (s *ChatStream) Body() []byte {
	if s.response == nil {
		return nil
	}
	choices := []json.RawMessage{}
	for _, c := range s.choices {
		choices = append(choices, c.json().JSON())
	}
	response := slices.Clone(s.response)
	response.Put("choices", wire.List(choices))
	return response.JSON()
}

func (c *choiceFold) json() wire.Object {
	choice := slices.Clone(c.choice)
	message := wire.Members(c.message.JSON())
	if calls, ok := wire.Elements(message.Get("tool_calls")); ok {
		for i := range calls {
			calls[i] = withoutIndex(calls[i])
		}
		message.Put("tool_calls", wire.List(calls))
	}
	choice.SetObject("message", message)
	if logprobs := c.logprobs.JSON(); !rawjson.IsNull(logprobs) {
		choice.Put("logprobs", logprobs)
	}
	return choice
}

// withoutIndex removes what only streams need.
func withoutIndex(call json.RawMessage) json.RawMessage {
	o := wire.Members(call)
	if o == nil {
		return call
	}
	o.Take("index")
	return o.JSON()
}

// Message returns the first choice as far as it has arrived.
func (s *ChatStream) Message() (*session.MessageEntry, error) {
	if s.at[0] == nil {
		return nil, nil
	}
	return wire.MessageSoFar(s.Body(), DecodeChat)
}
