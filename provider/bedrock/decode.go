package bedrock

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

var stops = wire.Stops{
	In: map[string]string{"guardrail_intervened": provider.StopRefusal, "content_filtered": provider.StopRefusal},
}

// Decode reads a body of Converse: a request, a response, a list of messages, or
// one message.
func Decode(data []byte) (*provider.Body, error) {
	data, err := wire.Compact(data)
	if err != nil {
		return nil, fmt.Errorf("bedrock: %w", err)
	}
	if list, ok := wire.Elements(data); ok {
		entries, err := messages(list)
		return &provider.Body{Kind: provider.KindMessages, Entries: entries}, err
	}
	o := wire.Members(data)
	switch {
	case rawjson.Kind(o.Get("messages")) == 'a':
		return wire.DecodeRequest(o, "modelId", "messages", systemPrompt, messages)
	case rawjson.Kind(o.Get("output")) == 'o':
		return response(o)
	case o.Has("role"):
		return &provider.Body{Kind: provider.KindMessage, Entries: message(o)}, nil
	}
	return nil, errors.New("bedrock: the body has neither messages, nor output, nor a role")
}

func messages(list []json.RawMessage) ([]session.Entry, error) {
	return wire.DecodeList(list, wire.Bedrock, "message", message)
}

func message(o wire.Object) []session.Entry {
	m := &session.MessageEntry{Role: session.RoleUser}
	switch role := o.Str("role"); role {
	case session.RoleUser, session.RoleAssistant:
		o.Take("role")
		m.Role = role
	}
	fill(m, o, nil)
	return wire.Split(m, wire.Bedrock)
}

// fill adds the blocks of a message and keeps its other members.
func fill(m *session.MessageEntry, o, envelope wire.Object) {
	if list, ok := wire.TakeBlocks(&o, "content"); ok {
		m.Content = blocks(list, m.Role)
	}
	(&wire.Residue{Fields: o, Envelope: envelope}).Keep(&m.Extra, wire.Bedrock)
}

// systemPrompt takes the system prompt of a request.
func systemPrompt(o *wire.Object) (e session.Entry, ok bool) {
	list, ok := wire.TakeBlocks(o, "system")
	if !ok {
		return e, false
	}
	m := &session.MessageEntry{Role: session.RoleSystem, Content: blocks(list, session.RoleSystem)}
	return session.Entry{Type: session.TypeMessage, Message: m}, true
}

// response reads a response of Converse: a message in the output, and the usage beside it.
func response(o wire.Object) (*provider.Body, error) {
	output, _ := o.TakeObject("output")
	inner, ok := output.TakeObject("message")
	if !ok {
		return nil, errors.New("bedrock: a response without a message")
	}
	m := &session.MessageEntry{Role: session.RoleAssistant}
	if inner.Str("role") == m.Role {
		inner.Take("role")
	}
	if native, ok := o.TakeText("stopReason"); ok {
		reason, keep := stops.Decode(native)
		if m.StopReason = reason; keep != "" {
			o.SetStr("stopReason", keep)
		}
	}
	m.Usage = wire.Usage(&o, "usage", wire.Bedrock, provider.BedrockUsage)
	fill(m, inner, wire.Object{{Name: "response", Value: o.JSON()}, {Name: "output", Value: output.JSON()}})
	return &provider.Body{Kind: provider.KindResponse, Entries: []session.Entry{{Type: session.TypeMessage, Message: m}}}, nil
}
