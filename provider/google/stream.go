package google

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// maxStream is the size of the largest stream that is read as one JSON array.
const maxStream = 64 << 20

// Fold reads a stream of Gemini, as events or as an array, and returns the
// response that would have come without streaming. Consecutive texts become one.
func Fold(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxStream+1))
	if err == nil && len(data) > maxStream {
		err = fmt.Errorf("it has more than %d MiB", maxStream>>20)
	}
	s := NewStream()
	if err == nil {
		err = s.addAll(data)
	}
	if err == nil && s.candidates == nil {
		err = errors.New("no chunk has candidates")
	}
	if err != nil {
		return nil, fmt.Errorf("google stream: %w", err)
	}
	return s.Body(), nil
}

// Stream is a response that grows by chunks: see provider.Stream. The events are
// those of the first candidate.
type Stream struct {
	response   wire.Object
	candidates []*candidateFold
	at         map[int]*candidateFold // the candidates by their index
	ids        []string               // of the calls
}

// NewStream returns a stream that has not begun.
func NewStream() *Stream { return &Stream{at: make(map[int]*candidateFold)} }

type candidateFold struct {
	candidate wire.Object
	content   wire.Object
	parts     []wire.Object
	text      strings.Builder // of the last part, if that is text
}

func (s *Stream) addAll(data []byte) error {
	add := func(chunk []byte) error {
		_, err := s.Add(chunk)
		return err
	}
	if wire.IsEvents(data) {
		return wire.Events(bytes.NewReader(data), add)
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
		if err := add(chunk); err != nil {
			return err
		}
	}
	return nil
}

// Add takes the next chunk.
func (s *Stream) Add(data []byte) ([]provider.Event, error) {
	o := wire.Members(data)
	if e := o.Get("error"); e != nil {
		return nil, provider.ReadError(providerName, 0, data)
	}
	list, _ := o.TakeElements("candidates")
	s.response.Merge(o)
	var events []provider.Event
	for _, raw := range list {
		events = append(events, s.addCandidate(wire.Members(raw))...)
	}
	if reason := wire.Members(o.Get("promptFeedback")).Str("blockReason"); reason != "" && s.candidates == nil {
		return nil, &provider.Error{Kind: session.ErrInvalid, Provider: providerName, Code: reason, Message: "the prompt was blocked: " + reason}
	}
	return append(events, wire.Spent(provider.GeminiUsage(o.Get("usageMetadata")))...), nil
}

// Done reports whether the first candidate says why it ended.
func (s *Stream) Done() bool {
	return s.at[0] != nil && s.at[0].candidate.Str("finishReason") != ""
}

func (s *Stream) addCandidate(o wire.Object) []provider.Event {
	index := o.Int("index")
	c := s.at[index]
	if c == nil {
		c = &candidateFold{}
		s.candidates, s.at[index] = append(s.candidates, c), c
	}
	content, _ := o.TakeObject("content")
	parts, _ := content.TakeElements("parts")
	var events []provider.Event
	for _, raw := range parts {
		c.addPart(wire.Members(raw))
		if index == 0 {
			events = append(events, s.partEvents(raw, len(c.parts)-1)...)
		}
	}
	c.content.Merge(content)
	c.candidate.Merge(o)
	return events
}

// partEvents returns the events of a part. Calls come whole.
func (s *Stream) partEvents(raw json.RawMessage, block int) []provider.Event {
	o := wire.Members(raw)
	if text := o.Str("text"); text != "" {
		kind := provider.EventText
		if string(o.Get("thought")) == "true" {
			kind = provider.EventThinking
		}
		return []provider.Event{{Type: kind, Block: block, Text: text}}
	}
	call := wire.Members(o.Get("functionCall"))
	if call == nil {
		return nil
	}
	model := wire.Object{{Name: "role", Value: wire.Quote("model")}, {Name: "parts", Value: wire.List([]json.RawMessage{raw})}}
	entries, err := (&Decoder{}).Content(model.JSON())
	if err != nil || len(entries) != 1 || len(entries[0].Message.Content) != 1 || entries[0].Message.Content[0].ToolUse == nil {
		return nil
	}
	whole := entries[0].Message.Content[0].ToolUse
	if call.Str("id") == "" {
		// The id is not sent, but it must be unique in a log with many responses.
		whole.ID = "call_" + s.response.Str("responseId") + "_" + strconv.Itoa(len(s.ids)+1)
	}
	s.ids = append(s.ids, whole.ID)
	begun := &session.ToolUseContent{ID: whole.ID, Name: whole.Name}
	events := []provider.Event{{Type: provider.EventCallStart, Block: block, Call: begun}}
	if args := call.Get("args"); args != nil {
		events = append(events, provider.Event{Type: provider.EventCallDelta, Block: block, Text: string(args)})
	}
	return append(events, provider.Event{Type: provider.EventCallEnd, Block: block, Call: whole})
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

// Body returns the response as far as it has arrived.
func (s *Stream) Body() []byte {
	if s.candidates == nil {
		return nil
	}
	list := make([]json.RawMessage, len(s.candidates))
	for i, c := range s.candidates {
		parts := make([]json.RawMessage, len(c.parts))
		for j, part := range c.parts {
			if j == len(c.parts)-1 && isText(part) {
				part = slices.Clone(part)
				part.SetStr("text", c.text.String())
			}
			parts[j] = part.JSON()
		}
		content, candidate := slices.Clone(c.content), slices.Clone(c.candidate)
		content.Put("parts", wire.List(parts))
		candidate.SetObject("content", content)
		list[i] = candidate.JSON()
	}
	response := slices.Clone(s.response)
	response.Put("candidates", wire.List(list))
	return response.JSON()
}

// Message returns the first candidate as far as it has arrived.
func (s *Stream) Message() (*session.MessageEntry, error) {
	if s.at[0] == nil {
		return nil, nil
	}
	m, err := wire.MessageSoFar(s.Body(), Decode)
	if m == nil || err != nil {
		return nil, err
	}
	n := 0
	for i := range m.Content {
		if call := m.Content[i].ToolUse; call != nil && n < len(s.ids) {
			call.ID, n = s.ids[n], n+1
		}
	}
	return m, nil
}
