package google

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider/internal/wire"
)

// maxStream is the greatest stream that is read when it is one JSON array.
const maxStream = 64 << 20

// Fold reads a stream of Gemini, as events or as an array, and returns the
// response that would have come without streaming. Texts that follow each other
// become one.
func Fold(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxStream+1))
	if err == nil && len(data) > maxStream {
		err = fmt.Errorf("it has more than %d MiB", maxStream>>20)
	}
	f := fold{at: make(map[int]*candidateFold)}
	if err == nil {
		err = f.addAll(data)
	}
	if err == nil && f.candidates == nil {
		err = errors.New("no chunk has candidates")
	}
	if err != nil {
		return nil, fmt.Errorf("google stream: %w", err)
	}
	return f.json(), nil
}

// fold is a response that grows by chunks.
type fold struct {
	response   wire.Object
	candidates []*candidateFold
	at         map[int]*candidateFold // the candidates by their index
}

type candidateFold struct {
	candidate wire.Object
	content   wire.Object
	parts     []wire.Object
	text      strings.Builder // of the last part, if that is text
}

func (f *fold) addAll(data []byte) error {
	if wire.IsEvents(data) {
		return wire.Events(bytes.NewReader(data), f.add)
	}
	data, err := wire.Compact(data)
	if err != nil {
		return err
	}
	list, ok := wire.Elements(data)
	if !ok {
		list = []json.RawMessage{data}
	}
	for _, chunk := range list {
		if err := f.add(chunk); err != nil {
			return err
		}
	}
	return nil
}

func (f *fold) add(data []byte) error {
	o := wire.Members(data)
	if e := o.Get("error"); e != nil {
		return fmt.Errorf("the stream has an error: %.200s", e)
	}
	list, _ := o.TakeElements("candidates")
	f.response.Merge(o)
	for _, raw := range list {
		f.addCandidate(wire.Members(raw))
	}
	return nil
}

func (f *fold) addCandidate(o wire.Object) {
	c := f.at[o.Int("index")]
	if c == nil {
		c = &candidateFold{}
		f.candidates, f.at[o.Int("index")] = append(f.candidates, c), c
	}
	content, _ := o.TakeObject("content")
	parts, _ := content.TakeElements("parts")
	for _, raw := range parts {
		c.addPart(wire.Members(raw))
	}
	c.content.Merge(content)
	c.candidate.Merge(o)
}

// addPart adds a part, or lengthens the last one if both are texts of a kind.
func (c *candidateFold) addPart(o wire.Object) {
	if n := len(c.parts); n > 0 && isText(c.parts[n-1]) && isText(o) && !c.parts[n-1].Has("thoughtSignature") &&
		bytes.Equal(c.parts[n-1].Get("thought"), o.Get("thought")) {
		c.text.WriteString(o.Str("text"))
		o.Take("text")
		c.parts[n-1].Merge(o)
		return
	}
	c.endText()
	c.parts = append(c.parts, o)
	c.text.WriteString(o.Str("text"))
}

// endText gives the last part the text that it has grown to.
func (c *candidateFold) endText() {
	if n := len(c.parts); n > 0 && isText(c.parts[n-1]) {
		c.parts[n-1].SetStr("text", c.text.String())
	}
	c.text.Reset()
}

func isText(o wire.Object) bool { return rawjson.Kind(o.Get("text")) == 's' }

func (f *fold) json() []byte {
	list := make([]json.RawMessage, len(f.candidates))
	for i, c := range f.candidates {
		c.endText()
		parts := make([]json.RawMessage, len(c.parts))
		for j, part := range c.parts {
			parts[j] = part.JSON()
		}
		c.content.Put("parts", wire.List(parts))
		c.candidate.SetObject("content", c.content)
		list[i] = c.candidate.JSON()
	}
	f.response.Put("candidates", wire.List(list))
	return f.response.JSON()
}
