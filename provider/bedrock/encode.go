package bedrock

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
)

// Encode writes the entries of a context as the messages of a request, and the
// system messages at its beginning as its system prompt.
//
// Given the entries of a session.Context, where every call has its result, the request
// keeps the rules that Check knows. For that, everything a model said before its calls
// were answered becomes one message, ids are made unique, and empty blocks are left
// out.
func Encode(entries []session.Entry) (*provider.Messages, error) { return encode(entries, false) }

// EncodeVerbatim is Encode for files that keep a conversation: what came from this
// format comes back with equal values, even where the provider would refuse it.
func EncodeVerbatim(entries []session.Entry) (*provider.Messages, error) {
	return encode(entries, true)
}

func encode(entries []session.Entry, verbatim bool) (*provider.Messages, error) {
	e := encoder{verbatim: verbatim, ids: wire.UniqueIDs{Verbatim: verbatim}}
	var fields wire.Object
	system, list := wire.CutSystem(wire.Sent(entries, verbatim, media.Bedrock, &e.notes), wire.Bedrock)
	if len(system) > 0 {
		prompt, _, err := e.blocks(system)
		if err != nil {
			return nil, fmt.Errorf("bedrock: entry %s: %w", system[0].Entry, err)
		}
		fields.Put("system", wire.List(prompt))
	}
	runs := wire.Runs{Verbatim: verbatim, TakeTurns: true, IsThought: isThought}
	for _, parts := range wire.Joined(list, wire.Bedrock) {
		message, err := e.message(parts)
		if err != nil {
			return nil, fmt.Errorf("bedrock: entry %s: %w", parts[0].Entry, err)
		}
		if message != nil {
			runs.Add(wire.RunOf(message, parts), "content")
		}
	}
	runs.Open(func(text string) wire.Object {
		block := wire.Object{{Name: "text", Value: wire.Quote(text)}}
		return wire.Object{
			{Name: "role", Value: wire.Quote(session.RoleUser)},
			{Name: "content", Value: wire.List([]json.RawMessage{block.JSON()})},
		}
	}, &e.notes, wire.First(list))
	fields.Put("messages", runs.JSON())
	return &provider.Messages{Fields: session.Fields(fields), Notes: e.notes.List}, nil
}

// isThought reports whether a block is thinking. The models that answer here are the same as
// elsewhere, and so a message cannot end with it: see package anthropic.
func isThought(block wire.Object) bool { return block.Has("reasoningContent") }

type encoder struct {
	notes wire.Notes
	ids   wire.UniqueIDs
	own   bool   // the current message came from this format
	maker string // the provider whose model made the current message

	verbatim bool
}

// message writes the messages that are one, or returns nil if nothing is left.
func (e *encoder) message(parts []wire.Message) (wire.Object, error) {
	blocks, had, err := e.blocks(parts)
	if err != nil || len(blocks) == 0 && (had > 0 || !e.own || !e.verbatim) {
		return nil, err
	}
	var o wire.Object
	o.SetStr("role", session.RoleUser)
	if parts[0].Role == session.RoleAssistant {
		o.SetStr("role", session.RoleAssistant)
	}
	if parts[0].Role == session.RoleSystem {
		e.notes.Of(parts[0].Entry)
		e.notes.Add("a system message amid the conversation is sent as the user's")
	}
	o.Put("content", wire.List(blocks))
	r, _ := wire.ResidueOf(parts[0].Extra, wire.Bedrock)
	if len(blocks) > 0 {
		r.Forget("content")
	}
	if !e.verbatim {
		r.FixRole(parts[0].Role)
	}
	r.Restore(&o)
	return o, nil
}

// blocks writes the blocks of messages, and returns how many there were.
func (e *encoder) blocks(list []wire.Message) (blocks []json.RawMessage, had int, err error) {
	blocks = []json.RawMessage{}
	for _, m := range list {
		e.notes.Of(m.Entry)
		_, own := wire.ResidueOf(m.Extra, wire.Bedrock)
		e.own, e.maker = own || m.Part && e.own, m.Provider
		for i := range m.Content {
			had++
			raw, err := e.block(&m.Content[i])
			if err != nil {
				return nil, 0, err
			}
			if raw != nil {
				blocks = append(blocks, raw)
			}
		}
	}
	return blocks, had, nil
}

// block writes a block, or notes why it cannot be written and returns nil.
func (e *encoder) block(c *session.Content) (json.RawMessage, error) {
	r, own := wire.ResidueOf(c.Extra, wire.Bedrock)
	switch {
	case c.Raw != nil && e.own:
		return wire.RawOf(c), nil
	case c.Text != nil && wire.IsBlank(c.Text.Content) && (!e.own || !e.verbatim):
		return nil, nil // refused, and says nothing
	case c.Text != nil && isJSON(c):
		return wire.Object{{Name: "json", Value: json.RawMessage(c.Text.Content)}}.JSON(), nil
	case c.Text != nil:
		return wire.Object{{Name: "text", Value: wire.Quote(c.Text.Content)}}.JSON(), nil
	case c.Thinking != nil:
		return e.reasoning(c, &r, own), nil
	case c.ToolUse != nil:
		input, err := wire.Input(c.ToolUse, c.Extra, &e.notes)
		if err != nil {
			return nil, err
		}
		if c.ToolUse.Input != nil {
			r.Forget("input")
		}
		if !e.verbatim {
			r.Forget("toolUseId")
			r.Forget("name")
			r.Forget("input")
		}
		var o wire.Object
		o.SetStr("toolUseId", e.ids.Call(c.ToolUse.ID, maxID))
		if !r.Fields.Has("name") {
			o.SetStr("name", e.notes.SafeName(c.ToolUse.Name, maxID))
		}
		o.Put("input", input)
		return tagged("toolUse", o, &r), nil
	case c.ToolResult != nil:
		return e.toolResult(c.ToolResult, &r)
	}
	if o, kind := newMedia(c); o != nil {
		return tagged(kind, o, &r), nil
	}
	e.notes.Add("%s is left out", wire.Describe(c))
	return nil, nil
}

// tagged returns a block of a type.
func tagged(kind string, o wire.Object, r *wire.Residue) json.RawMessage {
	r.Restore(&o)
	return wire.Object{{Name: kind, Value: o.JSON()}}.JSON()
}

func newMedia(c *session.Content) (o wire.Object, kind string) {
	source := c.Source()
	switch {
	case c.Image != nil:
		kind = "image"
	case c.Audio != nil:
		kind = "audio"
	case c.File != nil:
		kind = "document"
	}
	format := formatOf(kind, source)
	if format == "" {
		return nil, ""
	}
	o.SetStr("format", format)
	if c.File != nil {
		o.SetStr("name", c.File.Name)
	}
	o.SetObject("source", wire.Object{{Name: "bytes", Value: wire.Quote(source.Data)}})
	return o, kind
}

// reasoning writes thinking that can be sent back: it must be from here, or be
// signed by the provider whose models answer here.
func (e *encoder) reasoning(c *session.Content, r *wire.Residue, own bool) json.RawMessage {
	t := c.Thinking
	signed := t.Signature != "" || t.Redacted != ""
	if !own && (wire.Foreign(c.Extra, wire.Anthropic) || !signed || e.maker != "" && e.maker != "anthropic") {
		e.notes.Add("thinking of another provider is left out")
		return nil
	}
	var o wire.Object
	if t.Redacted != "" {
		o.SetStr("redactedContent", t.Redacted)
		return tagged("reasoningContent", o, r)
	}
	var text wire.Object
	text.SetStr("text", t.Content)
	if t.Signature != "" {
		text.SetStr("signature", t.Signature)
	}
	text.Merge(r.Inner("reasoningText"))
	o.SetObject("reasoningText", text)
	return tagged("reasoningContent", o, r)
}

func (e *encoder) toolResult(t *session.ToolResultContent, r *wire.Residue) (json.RawMessage, error) {
	parts := wire.Parts(t)
	if len(parts) == 0 && r.Form != formParts {
		parts = []session.Content{session.Text(t.Content)}
	}
	if r.Form == formJSON && len(parts) == 1 {
		(&wire.Residue{Form: formJSON}).Keep(&parts[0].Extra, wire.Bedrock)
	}
	list := []json.RawMessage{}
	for i := range parts {
		raw, err := e.resultPart(&parts[i])
		if err != nil {
			return nil, err
		}
		if raw != nil {
			list = append(list, raw)
		}
	}
	var o wire.Object
	o.SetStr("toolUseId", e.ids.Result(t.ToolUseID, maxID))
	o.Put("content", wire.List(list))
	if t.IsError {
		o.SetStr("status", "error")
	}
	return tagged("toolResult", o, r), nil
}

// resultPart writes a part of a tool's answer, which may be empty.
func (e *encoder) resultPart(c *session.Content) (json.RawMessage, error) {
	if c.Text != nil && c.Text.Content == "" {
		return json.RawMessage(`{"text":""}`), nil
	}
	return e.block(c)
}

// EncodeResponse writes an answer as a response.
func EncodeResponse(answers ...session.Entry) (json.RawMessage, []provider.Note, error) {
	if len(answers) != 1 || answers[0].Message == nil || answers[0].Message.Role != session.RoleAssistant {
		return nil, nil, fmt.Errorf("bedrock: a response is one message of a model, not %d entries", len(answers))
	}
	m := answers[0].Message
	e := encoder{verbatim: true, ids: wire.UniqueIDs{Verbatim: true}}
	message, err := e.message([]wire.Message{{Entry: answers[0].ID, Role: session.RoleAssistant, MessageEntry: m}})
	if err != nil {
		return nil, nil, fmt.Errorf("bedrock: entry %s: %w", answers[0].ID, err)
	}
	if message == nil {
		message = wire.Members([]byte(`{"role":"assistant","content":[]}`))
	}
	r, _ := wire.ResidueOf(m.Extra, wire.Bedrock)
	output := wire.Object{{Name: "message", Value: message.JSON()}}
	output = append(output, r.Around("output")...)
	var o wire.Object
	o.SetObject("output", output)
	if m.StopReason != "" {
		o.SetStr("stopReason", stops.Encode(m.StopReason))
	}
	if m.Usage != nil {
		o.Put("usage", usage(m.Usage))
	}
	o.Merge(r.Around("response"))
	return o.JSON(), e.notes.List, nil
}

func usage(u *session.Usage) json.RawMessage {
	if raw, ok := wire.UsageText(u, wire.Bedrock, provider.BedrockUsage); ok {
		return raw
	}
	return wire.Counts(wire.Count{Name: "inputTokens", N: u.Input}, wire.Count{Name: "outputTokens", N: u.Output},
		wire.Count{Name: "cacheReadInputTokens", N: u.CacheRead}, wire.Count{Name: "cacheWriteInputTokens", N: u.CacheWrite},
		wire.Count{Name: "totalTokens", N: u.Context()}).JSON()
}
