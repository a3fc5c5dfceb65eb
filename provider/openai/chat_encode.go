package openai

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
)

// ChatOptions say how to write messages. The zero value is what OpenAI accepts.
type ChatOptions struct {
	// Reasoning is the member for the thinking of another provider's model, such as
	// "reasoning_content". Default: it is left out.
	Reasoning string
}

// EncodeChat writes the entries of a context as the messages of a request.
//
// Given the entries of a session.Context, where every call has its result, the request keeps
// the rules that CheckChat knows. To that end, everything that a model said before its calls
// were answered becomes one message.
func EncodeChat(entries []session.Entry, o *ChatOptions) (*provider.Messages, error) {
	return encodeChat(entries, o, false)
}

// EncodeChatVerbatim is EncodeChat for files that keep a conversation: messages that came
// from this format come back with equal values, even if the provider would refuse them.
func EncodeChatVerbatim(entries []session.Entry, o *ChatOptions) (*provider.Messages, error) {
	return encodeChat(entries, o, true)
}

func encodeChat(entries []session.Entry, o *ChatOptions, verbatim bool) (*provider.Messages, error) {
	e := chatEncoder{verbatim: verbatim, ids: wire.UniqueIDs{Verbatim: verbatim}}
	if o != nil {
		e.options = *o
	}
	runs := wire.Runs{Verbatim: verbatim}
	for _, m := range wire.Sent(entries, verbatim, media.Chat, &e.notes) {
		messages, err := e.message(m)
		if err != nil {
			return nil, fmt.Errorf("openai chat: entry %s: %w", m.Entry, err)
		}
		for _, message := range messages {
			e.add(&runs, wire.Run{Message: message, Model: m.Role == session.RoleAssistant, Calls: hasCalls(message)})
		}
	}
	return &provider.Messages{Fields: session.Fields{{Name: "messages", Value: runs.JSON()}}, Notes: e.notes.List}, nil
}

// add adds a message. Text of the model between a call and its result belongs to the
// same message.
func (e *chatEncoder) add(runs *wire.Runs, next wire.Run) {
	if !runs.Joins(next) {
		runs.List = append(runs.List, next)
		return
	}
	last := runs.Last()
	said := next.Message.Get("content")
	if !isSilent(said) {
		e.notes.Add("what was said after a call comes before it")
	}
	if before := last.Message.Get("content"); isSilent(before) {
		last.Message.Put("content", said)
	} else if !isSilent(said) {
		last.Extend("content", wire.Blocks(said))
	}
	more, _ := wire.Elements(next.Message.Get("tool_calls"))
	last.Extend("tool_calls", more)
	last.Join(next)
}

func hasCalls(message wire.Object) bool {
	calls, _ := wire.Elements(message.Get("tool_calls"))
	return len(calls) > 0
}

// isSilent reports whether a content is empty.
func isSilent(content json.RawMessage) bool {
	text, isText := rawjson.String(content)
	return isText && text == "" || content == nil || rawjson.IsNull(content)
}

type chatEncoder struct {
	options ChatOptions
	notes   wire.Notes
	ids     wire.UniqueIDs
	own     bool // the current message came from this format

	verbatim bool
}

// message writes a message. Each tool result is a message of its own.
func (e *chatEncoder) message(m wire.Message) ([]wire.Object, error) {
	e.notes.Of(m.Entry)
	r, own := wire.ResidueOf(m.Extra, wire.Chat)
	e.own = own
	if !e.verbatim {
		r.FixRole(m.Role)
	}
	if m.Role != session.RoleTool {
		o, err := e.one(m, &r)
		if o == nil || err != nil {
			return nil, err
		}
		r.Restore(&o)
		return []wire.Object{o}, nil
	}
	var list []wire.Object
	for i := range m.Content {
		o := e.result(m.Content[i].ToolResult, &r)
		if i == 0 {
			r.Restore(&o)
		}
		list = append(list, o)
	}
	return list, nil
}

// one returns a message that is not a tool result, or nil if nothing is left of it.
func (e *chatEncoder) one(m wire.Message, r *wire.Residue) (wire.Object, error) {
	if len(m.Content) == 0 && !e.own {
		return nil, nil
	}
	var o wire.Object
	o.SetStr("role", m.Role)
	if m.Role == session.RoleAssistant {
		return e.assistant(o, m, r)
	}
	parts := e.parts(m.Content, m.Role)
	if len(parts) == 0 && len(m.Content) > 0 {
		return nil, nil
	}
	o.Put("content", content(m.Content, parts, r.Form, `""`))
	if len(parts) > 0 {
		r.Forget("content")
	}
	return o, nil
}

// content returns the content of a message: a string if it is one text, unless
// it was a list.
func content(blocks []session.Content, parts []json.RawMessage, form, empty string) json.RawMessage {
	switch {
	case form == formParts:
	case len(parts) == 0:
		return json.RawMessage(empty)
	case wire.IsPlain(blocks, wire.Chat):
		return wire.Quote(blocks[0].Text.Content)
	}
	return wire.List(parts)
}

// chatAnswer collects the parts of a model's message.
type chatAnswer struct {
	content []session.Content
	members wire.Object // besides the content and the calls
	calls   []json.RawMessage
	empty   string // the content, if there is none
}

// assistant writes a model's message, or returns nil if nothing is left of it.
func (e *chatEncoder) assistant(o wire.Object, m wire.Message, r *wire.Residue) (wire.Object, error) {
	a := chatAnswer{empty: "null"}
	for i := range m.Content {
		if err := e.addBlock(&a, &m.Content[i]); err != nil {
			return nil, err
		}
	}
	parts := e.parts(a.content, m.Role)
	if len(m.Content) > 0 && e.isSilent(parts, a.calls, a.members, r) {
		return nil, nil
	}
	if len(a.calls) > 0 {
		a.empty = "null"
	}
	o.Put("content", content(a.content, parts, r.Form, a.empty))
	if len(parts) > 0 {
		r.Forget("content")
	}
	o = append(o, a.members...)
	if len(a.calls) > 0 {
		o.Put("tool_calls", wire.List(a.calls))
	}
	if !e.verbatim {
		r.Forget("tool_calls")  // the calls as they were read, broken ones included
		r.Forget("annotations") // answers have them, requests do not
	}
	return o, nil
}

// addBlock adds a block to a model's message: Chat Completions has a member for each kind, so
// the order of text and calls is lost.
func (e *chatEncoder) addBlock(a *chatAnswer, c *session.Content) error {
	own, _ := wire.ResidueOf(c.Extra, wire.Chat)
	switch {
	case c.Thinking != nil:
		if e.thinking(c.Thinking, own.Form, &a.members); own.Form == "" {
			a.empty = `""` // null without calls is refused
		}
	case c.Text != nil && own.Form == formRefusal:
		a.members.SetStr("refusal", c.Text.Content)
	case c.Audio != nil && own.Form == formAudio && c.Audio.Source != nil:
		audio := append(own.Fields, session.Field{Name: "data", Value: wire.Quote(c.Audio.Source.Data)})
		a.members.SetObject("audio", audio)
	case c.ToolUse != nil && own.Form == formFunctionCall && e.verbatim:
		call, err := e.function(c.ToolUse, &own)
		if err != nil {
			return err
		}
		a.members.SetObject("function_call", call)
	case c.ToolUse != nil:
		if own.Form == formFunctionCall { // its result names a call, and this form has no ids
			own = wire.Residue{Text: own.Text}
		}
		call, err := e.call(c.ToolUse, &own)
		if err != nil {
			return err
		}
		a.calls = append(a.calls, call)
	default:
		if len(a.calls) > 0 {
			e.notes.Add("what was said after a call comes before it")
		}
		a.content = append(a.content, *c)
	}
	return nil
}

// isSilent reports whether nothing is left of a model's message. Thinking alone is refused,
// because the message would have no content:
// https://github.com/QuantumNous/new-api/issues/4776.
func (e *chatEncoder) isSilent(parts, calls []json.RawMessage, rest wire.Object, r *wire.Residue) bool {
	if len(parts)+len(calls) > 0 {
		return false
	}
	if e.verbatim {
		return len(rest) == 0 && r.Fields.Get(formDetails) == nil
	}
	return !rest.Has("refusal") && !rest.Has("audio")
}

func (e *chatEncoder) thinking(t *session.ThinkingContent, form string, rest *wire.Object) {
	switch {
	case form == formDetails: // they are among the members that were kept
	case form != "":
		rest.SetStr(form, t.Content)
	case e.options.Reasoning != "" && t.Content != "":
		rest.SetStr(e.options.Reasoning, rest.Str(e.options.Reasoning)+t.Content)
		if t.Signature != "" || t.Redacted != "" {
			e.notes.Add("the signature of thinking is left out")
		}
	default:
		e.notes.Add("thinking is left out")
	}
}

func (e *chatEncoder) function(t *session.ToolUseContent, r *wire.Residue) (wire.Object, error) {
	arguments, err := wire.Arguments(t, r, e.verbatim)
	if err != nil {
		return nil, err
	}
	var o wire.Object
	o.SetStr("name", e.name(t.Name, &r.Fields))
	o.SetStr("arguments", arguments)
	r.Restore(&o)
	return o, nil
}

func (e *chatEncoder) call(t *session.ToolUseContent, r *wire.Residue) (json.RawMessage, error) {
	var o, inner wire.Object
	o.SetStr("id", e.callID(t.ID, r))
	member := "function"
	if r.Form == formCustom {
		member = formCustom
	}
	rest := r.Inner(member)
	inner.SetStr("name", e.name(t.Name, &rest))
	if text, ok := wire.CallText(t); ok && r.Form == formCustom {
		inner.SetStr("input", text)
	} else {
		member = "function"
		arguments, err := wire.Arguments(t, r, e.verbatim)
		if err != nil {
			return nil, err
		}
		switch inner.SetStr("arguments", arguments); {
		case !e.verbatim:
			rest.Take("arguments")
		case r.Form == formObject:
			inner.Put("arguments", json.RawMessage(arguments))
		case r.Form == formNoArguments:
			inner.Take("arguments")
		}
	}
	inner.Merge(rest)
	o.SetStr("type", member)
	o.SetObject(member, inner)
	r.Restore(&o)
	return o.JSON(), nil
}

// callID returns the id of a call. A server that gave an id gets it back. A server that gave
// none gets one too, because the result must name its call.
func (e *chatEncoder) callID(id string, r *wire.Residue) string {
	given := r.Fields.Str("id") == id && id != ""
	if !e.verbatim {
		r.Forget("id")
		r.Forget("type")
	}
	if given {
		return e.ids.Own(id, maxChatID)
	}
	return e.ids.Call(id, maxChatID)
}

// name returns the name of a tool, unless it was kept as it was.
func (e *chatEncoder) name(name string, kept *wire.Object) string {
	if !e.verbatim {
		kept.Take("name")
	}
	if kept.Has("name") {
		return name
	}
	return e.notes.SafeName(name, maxName)
}

// result returns the message of a tool's answer.
func (e *chatEncoder) result(t *session.ToolResultContent, r *wire.Residue) wire.Object {
	var o wire.Object
	if !e.verbatim {
		r.Forget("tool_call_id") // it is the call's
		if r.Fields.Str("role") == roleFunction {
			r.Forget("role")
			r.Forget("name")
		}
	}
	o.SetStr("role", session.RoleTool)
	o.SetStr("tool_call_id", e.ids.Result(t.ToolUseID, maxChatID))
	blocks := wire.Parts(t)
	parts := e.parts(blocks, session.RoleTool)
	o.Put("content", content(blocks, parts, r.Form, `""`))
	if len(parts) > 0 {
		r.Forget("content")
	}
	if t.IsError {
		e.notes.Add("the result does not say that the tool failed")
	}
	return o
}
