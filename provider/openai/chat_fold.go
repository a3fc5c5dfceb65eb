package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider/internal/wire"
)

// FoldChat reads a stream of Chat Completions and returns the response that
// would have come without streaming. A stream that breaks off gives what there
// was of it.
func FoldChat(r io.Reader) ([]byte, error) {
	f := chatFold{at: make(map[int]*choiceFold)}
	err := wire.Events(r, f.add)
	if err == nil && f.response == nil {
		err = errors.New("no chunk has choices")
	}
	if err != nil {
		return nil, fmt.Errorf("openai chat stream: %w", err)
	}
	return f.json(), nil
}

// chatFold is a response that grows by chunks.
type chatFold struct {
	response wire.Object // without its choices
	choices  []*choiceFold
	at       map[int]*choiceFold // the choices by their index
}

type choiceFold struct {
	choice   wire.Object // without what grows
	message  wire.Merged
	logprobs wire.Merged
}

func (f *chatFold) add(data []byte) error {
	o, err := wire.Parse(data)
	if err != nil {
		return fmt.Errorf("a chunk must be an object, not %.40s", data)
	}
	if e := o.Get("error"); e != nil {
		return fmt.Errorf("the stream has an error: %.200s", e)
	}
	choices, ok := o.TakeElements("choices")
	if !ok {
		return nil // a ping of some sort
	}
	o.Take("obfuscation") // padding, of no meaning
	o.SetStr("object", "chat.completion")
	update(&f.response, o)
	for _, raw := range choices {
		f.addChoice(wire.Members(raw))
	}
	return nil
}

func (f *chatFold) addChoice(o wire.Object) {
	c := f.at[o.Int("index")]
	if c == nil {
		c = &choiceFold{}
		f.choices, f.at[o.Int("index")] = append(f.choices, c), c
	}
	if delta := o.Take("delta"); rawjson.Kind(delta) == 'o' {
		c.message.Add(delta)
	}
	if logprobs := o.Take("logprobs"); logprobs != nil {
		c.logprobs.Add(logprobs)
	}
	update(&c.choice, o)
}

// update sets the members that the newer object has and knows.
func update(o *wire.Object, newer wire.Object) {
	for _, f := range newer {
		if !o.Has(f.Name) || !rawjson.IsNull(f.Value) {
			o.Put(f.Name, f.Value)
		}
	}
}

func (f *chatFold) json() []byte {
	choices := []json.RawMessage{}
	for _, c := range f.choices {
		message := wire.Members(c.message.JSON())
		if calls, ok := wire.Elements(message.Get("tool_calls")); ok {
			for i := range calls {
				calls[i] = withoutIndex(calls[i])
			}
			message.Put("tool_calls", wire.List(calls))
		}
		c.choice.SetObject("message", message)
		if logprobs := c.logprobs.JSON(); !rawjson.IsNull(logprobs) {
			c.choice.Put("logprobs", logprobs)
		}
		choices = append(choices, c.choice.JSON())
	}
	f.response.Put("choices", wire.List(choices))
	return f.response.JSON()
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
