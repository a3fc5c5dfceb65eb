package anthropic

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

// Fold reads a stream of Messages and returns the response that would have come
// without streaming. A stream that breaks off gives the part that arrived.
func Fold(r io.Reader) ([]byte, error) {
	return wire.Fold(r, NewStream(), "anthropic", "it has no message_start")
}

// Stream is a response that grows by events: see provider.Stream.
type Stream struct {
	message wire.Object
	blocks  []*blockFold
	at      map[int]*blockFold // the newest block of each index
	done    bool
}

// NewStream returns a stream that has not begun.
func NewStream() *Stream { return &Stream{at: make(map[int]*blockFold)} }

type blockFold struct {
	number    int // among all blocks
	block     wire.Object
	text      map[string]*strings.Builder // members that grow
	input     strings.Builder             // the input of a call, as text
	citations []json.RawMessage
}

// Add takes the data of the next event.
func (s *Stream) Add(data []byte) ([]provider.Event, error) {
	o := wire.Members(data)
	switch o.Str("type") {
	case "error":
		return nil, provider.ReadError("anthropic", 0, data)
	case "message_start":
		s.message, _ = o.TakeObject("message")
		return s.usage(), nil
	case "content_block_start":
		block, _ := o.TakeObject("content_block")
		b := &blockFold{number: len(s.blocks), block: block, text: map[string]*strings.Builder{}}
		s.blocks, s.at[o.Int("index")] = append(s.blocks, b), b
		return b.start(), nil
	case "content_block_delta":
		if b := s.at[o.Int("index")]; b != nil {
			delta, _ := o.TakeObject("delta")
			return b.add(delta), nil
		}
	case "content_block_stop":
		if b := s.at[o.Int("index")]; b != nil {
			return b.stop(), nil
		}
	case "message_delta":
		delta, _ := o.TakeObject("delta")
		s.message.Merge(delta)
		s.addUsage(wire.Members(o.Get("usage")))
		return s.usage(), nil
	case "message_stop":
		s.done = true
	}
	return nil, nil
}

// Done reports whether the response is complete.
func (s *Stream) Done() bool { return s.done }

// addUsage takes over the newest counts.
func (s *Stream) addUsage(newer wire.Object) {
	usage := wire.Members(s.message.Get("usage"))
	usage.Merge(newer)
	if len(usage) > 0 {
		s.message.SetObject("usage", usage)
	}
}

func (s *Stream) usage() []provider.Event {
	return wire.Spent(provider.AnthropicUsage(s.message.Get("usage")))
}

// start returns the event of a block that begins with something.
func (b *blockFold) start() []provider.Event {
	switch b.block.Str("type") {
	case "text":
		return b.piece(provider.EventText, b.block.Str("text"))
	case "thinking":
		return b.piece(provider.EventThinking, b.block.Str("thinking"))
	case "tool_use":
		call := &session.ToolUseContent{ID: b.block.Str("id"), Name: b.block.Str("name")}
		return []provider.Event{{Type: provider.EventCallStart, Block: b.number, Call: call}}
	}
	return nil
}

// stop returns the event of a call that is complete.
func (b *blockFold) stop() []provider.Event {
	if b.block.Str("type") != "tool_use" {
		return nil
	}
	whole := blocks([]json.RawMessage{b.json()})
	return []provider.Event{{Type: provider.EventCallEnd, Block: b.number, Call: whole[0].ToolUse}}
}

func (b *blockFold) piece(kind provider.EventType, text string) []provider.Event {
	return wire.Piece(kind, b.number, text)
}

func (b *blockFold) add(delta wire.Object) []provider.Event {
	switch delta.Str("type") {
	case "text_delta":
		b.extend("text", delta)
		return b.piece(provider.EventText, delta.Str("text"))
	case "thinking_delta":
		b.extend("thinking", delta)
		return b.piece(provider.EventThinking, delta.Str("thinking"))
	case "signature_delta":
		b.extend("signature", delta)
	case "input_json_delta":
		b.input.WriteString(delta.Str("partial_json"))
		if b.block.Str("type") == "tool_use" {
			return b.piece(provider.EventCallDelta, delta.Str("partial_json"))
		}
	case "citations_delta":
		if citation := delta.Get("citation"); citation != nil {
			b.citations = append(b.citations, citation)
		}
	}
	return nil
}

func (b *blockFold) extend(member string, delta wire.Object) {
	if b.text[member] == nil {
		b.text[member] = &strings.Builder{}
		b.text[member].WriteString(b.block.Str(member))
	}
	b.text[member].WriteString(delta.Str(member))
}

func (b *blockFold) json() json.RawMessage {
	for _, member := range []string{"text", "thinking", "signature"} {
		if text := b.text[member]; text != nil {
			b.block.SetStr(member, text.String())
		}
	}
	if input := b.input.String(); input != "" {
		if rawjson.Valid([]byte(input)) {
			b.block.Put("input", json.RawMessage(strings.TrimSpace(input)))
		} else { // the stream broke off within it: kept as text
			b.block.SetStr("input", input)
		}
	}
	if len(b.citations) > 0 {
		b.block.Put("citations", wire.List(b.citations))
	}
	return b.block.JSON()
}

// Body returns the response as far as it has arrived.
func (s *Stream) Body() []byte {
	if s.message == nil {
		return nil
	}
	blocks := make([]json.RawMessage, len(s.blocks))
	for i, b := range s.blocks {
		blocks[i] = b.json()
	}
	message := slices.Clone(s.message)
	message.Put("content", wire.List(blocks))
	return message.JSON()
}

// Message returns the message as far as it has arrived.
func (s *Stream) Message() (*session.MessageEntry, error) { return wire.MessageSoFar(s.Body(), Decode) }
