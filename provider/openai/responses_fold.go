package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-dev/coppice/provider/internal/wire"
)

// FoldResponses reads a stream of Responses and returns the response that it
// ends with. Of a stream that breaks off, the items that were complete are put
// into the response that it began with.
func FoldResponses(r io.Reader) ([]byte, error) {
	var f responsesFold
	err := wire.Events(r, f.add)
	if err == nil && f.response == nil {
		err = errors.New("no event has a response")
	}
	if err != nil {
		return nil, fmt.Errorf("openai responses stream: %w", err)
	}
	if list, _ := wire.Elements(f.response.Get("output")); len(list) == 0 {
		f.response.Put("output", wire.List(f.items))
	}
	return f.response.JSON(), nil
}

type responsesFold struct {
	response wire.Object
	items    []json.RawMessage // that are done
}

func (f *responsesFold) add(data []byte) error {
	o := wire.Members(data)
	switch kind := o.Str("type"); kind {
	case "error":
		return fmt.Errorf("the stream has an error: %.200s", data)
	case "response.output_item.done":
		if item := o.Get("item"); item != nil {
			f.items = append(f.items, item)
		}
	default:
		if response, ok := o.TakeObject("response"); ok {
			f.response = response
		}
	}
	return nil
}
