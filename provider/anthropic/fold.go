package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider/internal/wire"
)

// Fold reads a stream of Messages and returns the response that would have come
// without streaming. A stream that breaks off gives what there was of it.
func Fold(r io.Reader) ([]byte, error) {
	f := fold{at: make(map[int]*blockFold)}
	err := wire.Events(r, f.add)
	if err == nil && f.message == nil {
		err = errors.New("it has no message_start")
	}
	if err != nil {
		return nil, fmt.Errorf("anthropic stream: %w", err)
	}
	return f.json(), nil
}

// fold is a response that grows by events.
type fold struct {
	message wire.Object
	blocks  []*blockFold
	at      map[int]*blockFold // the newest block of each index
}

type blockFold struct {
	block     wire.Object
	text      map[string]*strings.Builder // members that grow
	input     strings.Builder             // the input of a call, as text
	citations []json.RawMessage
}

func (f *fold) add(data []byte) error {
	o := wire.Members(data)
	switch o.Str("type") {
	case "error":
		return fmt.Errorf("the stream has an error: %.200s", data)
	case "message_start":
		f.message, _ = o.TakeObject("message")
	case "content_block_start":
		block, _ := o.TakeObject("content_block")
		b := &blockFold{block: block, text: map[string]*strings.Builder{}}
		f.blocks, f.at[o.Int("index")] = append(f.blocks, b), b
	case "content_block_delta":
		if b := f.at[o.Int("index")]; b != nil {
			delta, _ := o.TakeObject("delta")
			b.add(delta)
		}
	case "message_delta":
		delta, _ := o.TakeObject("delta")
		f.message.Merge(delta)
		f.addUsage(wire.Members(o.Get("usage")))
	}
	return nil
}

// addUsage takes over the newest counts.
func (f *fold) addUsage(newer wire.Object) {
	usage := wire.Members(f.message.Get("usage"))
	usage.Merge(newer)
	if len(usage) > 0 {
		f.message.SetObject("usage", usage)
	}
}

func (b *blockFold) add(delta wire.Object) {
	switch delta.Str("type") {
	case "text_delta":
		b.grow("text", delta)
	case "thinking_delta":
		b.grow("thinking", delta)
	case "signature_delta":
		b.grow("signature", delta)
	case "input_json_delta":
		b.input.WriteString(delta.Str("partial_json"))
	case "citations_delta":
		if citation := delta.Get("citation"); citation != nil {
			b.citations = append(b.citations, citation)
		}
	}
}

func (b *blockFold) grow(member string, delta wire.Object) {
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

func (f *fold) json() []byte {
	blocks := make([]json.RawMessage, len(f.blocks))
	for i, b := range f.blocks {
		blocks[i] = b.json()
	}
	f.message.Put("content", wire.List(blocks))
	return f.message.JSON()
}
