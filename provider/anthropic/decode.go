package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// The forms of messages: see wire.Residue.
const (
	formParts  = "parts"  // a content that would be a string is a list
	formString = "string" // a content that would be a list is a string
)

// Decode reads a body of Messages: a request, a response, a list of messages, or
// one message.
func Decode(data []byte) (*provider.Body, error) {
	data, err := wire.Compact(data)
	if err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	if list, ok := wire.Elements(data); ok {
		entries, err := messages(list)
		return &provider.Body{Kind: provider.KindMessages, Entries: entries}, err
	}
	o := wire.Members(data)
	switch {
	case rawjson.Kind(o.Get("messages")) == 'a':
		return wire.DecodeRequest(o, "model", "messages", systemPrompt, messages)
	case o.Str("type") == "message" && o.Has("role"):
		b := &provider.Body{Kind: provider.KindResponse, Model: o.Str("model")}
		b.Entries = []session.Entry{response(o)}
		return b, nil
	case o.Has("role"):
		return &provider.Body{Kind: provider.KindMessage, Entries: message(o)}, nil
	case o.Has("error"):
		return nil, fmt.Errorf("anthropic: the body is an error, not a conversation: %.200s", o.Get("error"))
	}
	return nil, errors.New("anthropic: neither messages nor a role")
}

// DecodeMessage reads one message, also one that is a response. A user's message
// that has tool results gives several entries.
func DecodeMessage(raw []byte) ([]session.Entry, error) {
	b, err := Decode(raw)
	if err != nil {
		return nil, err
	}
	if b.Kind != provider.KindMessage && b.Kind != provider.KindResponse {
		return nil, fmt.Errorf("anthropic: want a message, not %s", b.Kind)
	}
	return b.Entries, nil
}

// DecodeContent reads the content of a message: a string or a list of blocks.
func DecodeContent(raw []byte) ([]session.Content, error) {
	raw, err := wire.Compact(raw)
	if err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	if text, ok := rawjson.String(raw); ok {
		return []session.Content{session.Text(text)}, nil
	}
	list, ok := wire.BlockList(raw)
	if !ok {
		return nil, fmt.Errorf("anthropic: content must be a string or a list of at most %d blocks, not %.40s", session.MaxBlocks, raw)
	}
	return blocks(list), nil
}

func messages(list []json.RawMessage) ([]session.Entry, error) {
	return wire.DecodeList(list, wire.Anthropic, "message", message)
}

// message reads a message and cuts it where tool results begin and end.
func message(o wire.Object) []session.Entry {
	m := &session.MessageEntry{Role: session.RoleUser}
	var r wire.Residue
	r.Miss(o, "role", "content")
	if role, ok := o.TakeStr("role"); ok {
		switch m.Role = role; role {
		case session.RoleUser, session.RoleAssistant:
		default:
			r.Fields.SetStr("role", role)
		}
	}
	m.Content = content(&o, &r, m.Role)
	r.Fields.Merge(o)
	if needsOrigin(m.Content) {
		r.Mark(&m.Extra, wire.Anthropic)
	}
	r.Keep(&m.Extra, wire.Anthropic)
	return wire.Split(m, wire.Anthropic)
}

// needsOrigin reports whether blocks are written only in a message that came from this
// format: unknown blocks, empty texts, unsigned thinking, or no blocks at all.
func needsOrigin(blocks []session.Content) bool {
	unsigned := func(c session.Content) bool {
		return c.Thinking != nil && c.Thinking.Signature == "" && c.Thinking.Redacted == ""
	}
	return len(blocks) == 0 || wire.HasRaw(blocks) || wire.HasEmpty(blocks) || slices.ContainsFunc(blocks, unsigned)
}

// content takes the content of a message.
func content(o *wire.Object, r *wire.Residue, role string) []session.Content {
	plain := role != session.RoleAssistant // how a single text is usually written
	if text, ok := o.TakeStr("content"); ok {
		if !plain {
			r.Form = formString
		}
		return []session.Content{session.Text(text)}
	}
	list, ok := wire.TakeBlocks(o, "content")
	if !ok {
		return nil
	}
	blocks := blocks(list)
	for i := range blocks {
		if !plain && blocks[i].ToolResult != nil {
			blocks[i] = wire.Raw(list[i]) // a model cannot say this
		}
	}
	if plain && wire.IsPlain(blocks, wire.Anthropic) {
		r.Form = formParts
	}
	return blocks
}

// systemPrompt takes the system prompt of a request.
func systemPrompt(o *wire.Object) (e session.Entry, ok bool) {
	m := &session.MessageEntry{Role: session.RoleSystem}
	r := wire.Residue{}
	if text, ok := o.TakeStr("system"); ok {
		m.Content = []session.Content{session.Text(text)}
	} else if list, ok := wire.TakeBlocks(o, "system"); ok {
		m.Content = blocks(list)
		if len(list) == 0 || wire.IsPlain(m.Content, wire.Anthropic) {
			r.Form = formParts
		}
	} else {
		return e, false
	}
	if needsOrigin(m.Content) {
		r.Mark(&m.Extra, wire.Anthropic)
	}
	r.Keep(&m.Extra, wire.Anthropic)
	return session.Entry{Type: session.TypeMessage, Message: m}, true
}

// response reads a response. Its content is all the model's, whatever it is.
func response(o wire.Object) session.Entry {
	m := &session.MessageEntry{Role: session.RoleAssistant, Provider: "anthropic"}
	var r wire.Residue
	r.Miss(o, "content")
	m.Content = content(&o, &r, m.Role)
	m.ResponseID, _ = o.TakeText("id")
	m.Model, _ = o.TakeText("model")
	m.StopReason, _ = o.TakeText("stop_reason")
	m.Usage = wire.Usage(&o, "usage", wire.Anthropic, provider.AnthropicUsage)
	r.Envelope = o
	r.Mark(&m.Extra, wire.Anthropic)
	return session.Entry{Type: session.TypeMessage, Message: m}
}
