package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// The forms of items: see wire.Residue. For calls and results of tools other than functions,
// the form is the type of the item.
const (
	formInstructions = "instructions" // a system prompt beside the items
	formInput        = "input"        // a prompt that is the whole input, as a string
	formItem         = "item"         // a message that is an item of another kind, kept whole
	formImageItem    = "image_generation_call"
)

const itemMessage = "message"

// DecodeResponses reads a body of Responses: a request, a response, a list of
// items, or one item. The items of one answer become one message.
func DecodeResponses(data []byte) (*provider.Body, error) {
	data, err := wire.Compact(data)
	if err != nil {
		return nil, fmt.Errorf("openai responses: %w", err)
	}
	d := itemDecoder{}
	if list, ok := wire.Elements(data); ok {
		d.items(list)
		return &provider.Body{Kind: provider.KindMessages, Entries: d.entries}, nil
	}
	o := wire.Members(data)
	switch {
	case o.Str("object") == "response" || rawjson.Kind(o.Get("output")) == 'a' && o.Has("id"):
		return d.response(o)
	case o.Has("input"):
		return d.request(o)
	case o.Has("type") || o.Has("role"):
		d.item(data)
		return &provider.Body{Kind: provider.KindMessage, Entries: d.entries}, nil
	case o.Has("error"):
		return nil, fmt.Errorf("openai responses: the body is an error, not a conversation: %.200s", o.Get("error"))
	}
	return nil, errors.New("openai responses: the body has neither input nor output, and is not an item")
}

// DecodeItem reads one item, for sources that keep items line by line. Each item of a model's
// answer becomes a separate message: the caller must know which belong together.
func DecodeItem(raw []byte) ([]session.Entry, error) {
	raw, err := wire.Compact(raw)
	if err != nil {
		return nil, fmt.Errorf("openai responses: %w", err)
	}
	var d itemDecoder
	d.item(raw)
	return d.entries, nil
}

// itemDecoder turns items into messages.
type itemDecoder struct {
	entries []session.Entry
	open    bool // the last entry is an answer that the next item may belong to
}

func (d *itemDecoder) items(list []json.RawMessage) {
	for _, raw := range list {
		d.item(raw)
	}
}

// item adds an item. An unknown item is kept whole in the model's message, because new
// item types usually describe something the model did.
func (d *itemDecoder) item(raw json.RawMessage) {
	o := wire.Members(raw)
	kind := o.Str("type")
	if !o.Has("type") && o.Has("role") {
		kind = itemMessage
	}
	switch {
	case kind == itemMessage:
		d.message(raw, o)
	case isOutput(kind):
		d.result(raw, kind, o)
	default:
		d.answer(answerBlock(raw, kind, o))
	}
}

// answer adds a block to the model's message.
func (d *itemDecoder) answer(blocks ...session.Content) {
	if !d.open {
		d.add(&session.MessageEntry{Role: session.RoleAssistant})
		d.open = true
	}
	m := d.entries[len(d.entries)-1].Message
	m.Content = append(m.Content, blocks...)
	if wire.HasRaw(blocks) {
		(&wire.Residue{}).Mark(&m.Extra, wire.Responses)
	}
}

func (d *itemDecoder) add(m *session.MessageEntry) {
	d.entries = append(d.entries, session.Entry{Type: session.TypeMessage, Message: m})
	d.open = false
}

func (d *itemDecoder) message(raw json.RawMessage, o wire.Object) {
	role := o.Str("role")
	if role == session.RoleAssistant {
		d.answer(modelBlocks(raw, o)...)
		return
	}
	m := &session.MessageEntry{Role: session.RoleUser}
	var r wire.Residue
	r.Miss(o, "type", "role", "content")
	o.Take("type")
	switch role {
	case session.RoleUser:
		o.Take("role")
	case session.RoleSystem:
		o.Take("role")
		m.Role = role
	case roleDeveloper:
		m.Role = session.RoleSystem
	}
	m.Content = itemContent(&o, &r)
	r.Fields = o
	if len(m.Content) == 0 || wire.HasRaw(m.Content) {
		r.Mark(&m.Extra, wire.Responses)
	}
	r.Keep(&m.Extra, wire.Responses)
	d.add(m)
}

// itemContent takes the content of a message that is not the model's.
func itemContent(o *wire.Object, r *wire.Residue) []session.Content {
	if text, ok := o.TakeStr("content"); ok {
		r.Form = formString
		return []session.Content{session.Text(text)}
	}
	list, ok := wire.TakeBlocks(o, "content")
	if !ok {
		return nil
	}
	return itemParts(list, inputText)
}

// modelBlocks returns the content of a model's message. The first text carries the item's own
// residue; an item without text, or with unknown parts, is kept whole.
func modelBlocks(raw json.RawMessage, o wire.Object) []session.Content {
	var r wire.Residue
	r.Miss(o, "type")
	o.Take("type")
	o.Take("role")
	var blocks []session.Content
	if text, ok := o.TakeStr("content"); ok {
		r.Form = formString
		blocks = []session.Content{session.Text(text)}
	} else if list, ok := wire.TakeBlocks(&o, "content"); ok {
		blocks = itemParts(list, outputText)
	}
	r.Fields = o
	if len(blocks) == 0 || slices.ContainsFunc(blocks, func(c session.Content) bool { return c.Text == nil }) {
		return []session.Content{wire.Raw(raw)}
	}
	for i := range blocks {
		part, _ := wire.ResidueOf(blocks[i].Extra, wire.Responses)
		if i == 0 {
			r.Keep((*session.Fields)(&part.Envelope), wire.Responses)
		} else {
			part.Join = ptr(true) // in one item with the text before it
		}
		part.Keep(&blocks[i].Extra, wire.Responses)
	}
	return blocks
}

func ptr[T any](v T) *T { return &v }

// request reads a request.
func (d *itemDecoder) request(o wire.Object) (*provider.Body, error) {
	b := &provider.Body{Kind: provider.KindRequest, Model: o.Str("model")}
	if text, ok := o.TakeStr("instructions"); ok {
		d.prompt(session.RoleSystem, text, formInstructions)
	}
	if text, ok := o.TakeStr("input"); ok {
		d.prompt(session.RoleUser, text, formInput)
	} else if list, ok := o.TakeElements("input"); ok {
		d.items(list)
	} else {
		return nil, fmt.Errorf("openai responses: input must be a string or a list, not %.40s", o.Get("input"))
	}
	b.Entries, b.Fields = d.entries, session.Fields(o)
	return b, nil
}

func (d *itemDecoder) prompt(role session.MessageRole, text, form string) {
	m := &session.MessageEntry{Role: role, Content: []session.Content{session.Text(text)}}
	(&wire.Residue{Form: form}).Keep(&m.Extra, wire.Responses)
	d.add(m)
}

// response reads a response. Its own members stay with its last message.
func (d *itemDecoder) response(o wire.Object) (*provider.Body, error) {
	list, ok := o.TakeElements("output")
	if !ok {
		return nil, errors.New("openai responses: the response has no output")
	}
	b := &provider.Body{Kind: provider.KindResponse, Model: o.Str("model")}
	if d.items(list); len(d.entries) == 0 {
		d.add(&session.MessageEntry{Role: session.RoleAssistant})
	}
	id, _ := o.TakeText("id")
	model, _ := o.TakeText("model")
	for i := range d.entries {
		e := &d.entries[i]
		e.Message.ResponseID = id
		if e.Message.Role == session.RoleAssistant || i == len(d.entries)-1 { // the one that describes the response
			e.Message.Model, e.Message.Provider = model, "openai"
		}
		if seconds := o.Int("created_at"); seconds > 0 {
			e.Timestamp = time.Unix(int64(seconds), 0).UTC()
		}
	}
	m := d.entries[len(d.entries)-1].Message
	m.Usage = wire.Usage(&o, "usage", wire.Responses, provider.OpenAIResponsesUsage)
	m.StopReason = responseStop(o, m)
	r, _ := wire.ResidueOf(m.Extra, wire.Responses)
	r.Envelope = wire.Object{{Name: "response", Value: o.JSON()}}
	r.Mark(&m.Extra, wire.Responses)
	b.Entries = d.entries
	return b, nil
}

// responseStop returns why the model stopped. The members that say so stay.
func responseStop(o wire.Object, m *session.MessageEntry) string {
	switch status := o.Str("status"); status {
	case "incomplete":
		reason, _ := wire.ResponsesStops.Decode(wire.Members(o.Get("incomplete_details")).Str("reason"))
		return reason
	case "", "completed":
	default:
		return status
	}
	for i := range m.Content {
		if m.Content[i].ToolUse != nil {
			return provider.StopToolUse
		}
	}
	return provider.StopEndTurn
}

func isOutput(kind string) bool { return strings.HasSuffix(kind, "_call_output") }
