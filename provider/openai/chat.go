package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// Roles that only this API has.
const (
	roleDeveloper = "developer"
	roleFunction  = "function"
)

// The longest ids and tool names.
const (
	maxChatID      = 40
	maxResponsesID = 64
	maxName        = 64
)

// The forms of chat messages and their parts: see wire.Residue.
const (
	formParts        = "parts"             // a content that could be a string is a list
	formString       = "string"            // an object is just a string
	formRefusal      = "refusal"           // a text is the refusal of a message
	formRefusalPart  = "refusal_part"      // a text is a refusal among the parts
	formAudio        = "audio"             // a recording is the message's own, not a part
	formFunctionCall = "function_call"     // a call in the old form, at most one in a message
	formCustom       = "custom"            // a call whose input is free text
	formObject       = "object"            // a call whose arguments are an object, not the text of one
	formReasoning    = "reasoning"         // thinking under OpenRouter's name for it
	formNoArguments  = "no_arguments"      // a call without the member for them
	formDetails      = "reasoning_details" // thinking that is only in the details
	reasoningContent = "reasoning_content" // thinking under most services' name for it
)

// DecodeChat reads a body of Chat Completions: a request, a response, a list of
// messages, or one message.
func DecodeChat(data []byte) (*provider.Body, error) {
	data, err := wire.Compact(data)
	if err != nil {
		return nil, fmt.Errorf("openai chat: %w", err)
	}
	var d ChatDecoder
	if list, ok := wire.Elements(data); ok {
		entries, err := d.messages(list)
		return &provider.Body{Kind: provider.KindMessages, Entries: entries}, err
	}
	o := wire.Members(data)
	switch {
	case rawjson.Kind(o.Get("messages")) == 'a':
		list, _ := o.TakeElements("messages")
		entries, err := d.messages(list)
		return &provider.Body{Kind: provider.KindRequest, Entries: entries, Model: o.Str("model"), Fields: session.Fields(o)}, err
	case rawjson.Kind(o.Get("choices")) == 'a':
		return d.response(o)
	case o.Has("role"):
		return &provider.Body{Kind: provider.KindMessage, Entries: []session.Entry{d.message(o)}}, nil
	case o.Has("error"):
		return nil, fmt.Errorf("openai chat: the body is an error, not a conversation: %.200s", o.Get("error"))
	}
	return nil, errors.New("openai chat: the body has neither messages, nor choices, nor a role")
}

// ChatDecoder reads messages one after the other. The zero value is ready. It remembers the
// calls, so that it can match results without ids.
type ChatDecoder struct {
	pairs wire.Pairs
}

// Message reads one message.
func (d *ChatDecoder) Message(raw []byte) (session.Entry, error) {
	raw, err := wire.Compact(raw)
	if err != nil {
		return session.Entry{}, fmt.Errorf("openai chat: %w", err)
	}
	o, err := wire.Parse(raw)
	if err != nil {
		return session.Entry{}, fmt.Errorf("openai chat: a message must be an object: %w", err)
	}
	return d.message(o), nil
}

func (d *ChatDecoder) messages(list []json.RawMessage) ([]session.Entry, error) {
	entries := make([]session.Entry, 0, len(list))
	for i, raw := range list {
		o, err := wire.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("openai chat: message %d must be an object, not %.40s", i, raw)
		}
		entries = append(entries, d.message(o))
	}
	return entries, nil
}

func (d *ChatDecoder) message(o wire.Object) session.Entry {
	m := &session.MessageEntry{Role: session.RoleUser}
	var r wire.Residue
	r.Miss(o, "role", "content")
	if role, ok := o.TakeStr("role"); ok {
		switch m.Role = role; role {
		case session.RoleSystem, session.RoleUser, session.RoleAssistant, session.RoleTool:
		default:
			r.Fields.SetStr("role", role)
			switch role {
			case roleDeveloper:
				m.Role = session.RoleSystem
			case roleFunction:
				m.Role = session.RoleTool
			}
		}
	}
	switch m.Role {
	case session.RoleAssistant:
		d.assistant(&o, m, &r)
	case session.RoleTool:
		d.result(&o, m, &r)
	default:
		m.Content = chatContent(&o, &r)
	}
	r.Fields.Merge(o)
	if len(m.Content) == 0 || wire.HasRaw(m.Content) || m.Role != session.RoleUser && wire.HasMedia(m.Content) {
		r.Mark(&m.Extra, wire.Chat) // without the mark, such blocks and messages are left out
	}
	r.Keep(&m.Extra, wire.Chat)
	return session.Entry{Type: session.TypeMessage, Message: m}
}

// chatContent takes the content of a message.
func chatContent(o *wire.Object, r *wire.Residue) []session.Content {
	if text, ok := o.TakeStr("content"); ok {
		return []session.Content{session.Text(text)}
	}
	list, ok := wire.TakeBlocks(o, "content")
	if !ok {
		return nil // null, absent, or something else, which stays as it is
	}
	blocks := make([]session.Content, len(list))
	for i, raw := range list {
		blocks[i] = chatPart(raw)
	}
	if len(blocks) == 0 || wire.IsPlain(blocks, wire.Chat) {
		r.Form = formParts
	}
	return blocks
}

// assistant takes the members that only a model's message has.
func (d *ChatDecoder) assistant(o *wire.Object, m *session.MessageEntry, r *wire.Residue) {
	d.pairs.Turn()
	m.Content = append(m.Content, chatThinking(o)...)
	text := chatContent(o, r)
	if m.Content = append(m.Content, text...); len(text) == 0 && rawjson.IsNull(o.Get("content")) {
		o.Take("content") // a message without text has it anyway
	}
	if text, ok := o.TakeStr("refusal"); ok {
		c := session.Text(text)
		(&wire.Residue{Form: formRefusal}).Keep(&c.Extra, wire.Chat)
		m.Content = append(m.Content, c)
	}
	if c, ok := audioOf(o); ok {
		m.Content = append(m.Content, c)
	}
	if c, ok := d.functionCall(o, len(m.Content) == 0); ok {
		m.Content = append(m.Content, c)
	}
	m.Content = append(m.Content, d.toolCalls(o, len(m.Content) == 0)...)
}

// chatThinking takes the model's thinking. Services name it differently; if a message has it
// under several names, the first is taken and the others stay.
func chatThinking(o *wire.Object) []session.Content {
	for _, name := range []string{reasoningContent, formReasoning} {
		if text, ok := o.TakeStr(name); ok {
			return []session.Content{thought(text, name)}
		}
	}
	details, ok := wire.BlockList(o.Get(formDetails))
	if !ok || len(details) == 0 {
		return nil
	}
	text := ""
	for _, raw := range details {
		detail := wire.Members(raw)
		text += detail.Str("text") + detail.Str("summary")
	}
	return []session.Content{thought(text, formDetails)} // the details stay
}

func thought(text, form string) session.Content {
	c := session.Thinking(text, "")
	(&wire.Residue{Form: form}).Keep(&c.Extra, wire.Chat)
	return c
}

// audioOf takes the recording of an answer. A mere reference to one stays.
func audioOf(o *wire.Object) (session.Content, bool) {
	audio := wire.Members(o.Get("audio"))
	data, ok := audio.TakeStr("data")
	if !ok {
		return session.Content{}, false
	}
	o.Take("audio")
	c := session.Media(&session.Source{Type: provider.SourceBase64, MediaType: "audio/unknown", Data: data})
	(&wire.Residue{Form: formAudio, Fields: audio}).Keep(&c.Extra, wire.Chat)
	return c, true
}

// functionCall takes a call in the old form. One without a name is a call too if the message
// says nothing else: see toolCalls.
func (d *ChatDecoder) functionCall(o *wire.Object, alone bool) (session.Content, bool) {
	call := wire.Members(o.Get("function_call"))
	r := wire.Residue{Form: formFunctionCall}
	r.Miss(call, "name", "arguments")
	name, hasName := call.TakeStr("name")
	arguments, hasArguments := call.TakeStr("arguments")
	switch given := call.Get("arguments"); {
	case call == nil || !hasName && !alone:
		return session.Content{}, false
	case hasArguments || given == nil || rawjson.IsNull(given):
	case alone || rawjson.Kind(given) == 'o':
		arguments = string(given) // the member stays, to be written as it was
	default:
		return session.Content{}, false
	}
	o.Take("function_call")
	keepName(&call, name)
	r.Fields = call
	c := wire.Call(d.pairs.Call("", name), name, arguments, &r)
	r.Keep(&c.Extra, wire.Chat)
	return c, true
}

// keepName keeps a name that the encoder would write differently.
func keepName(o *wire.Object, name string) {
	r := wire.Residue{Fields: *o}
	r.KeepUnsafe("name", name, maxName)
	*o = r.Fields
}

// toolCalls takes the calls. If one of them does not look like a call, the member is
// kept too, and replaces the encoded calls when the message is written again. If the message
// says nothing else, what cannot be read becomes calls all the same, so that the answer is not
// lost and the model learns of it.
func (d *ChatDecoder) toolCalls(o *wire.Object, alone bool) []session.Content {
	list, ok := wire.BlockList(o.Get("tool_calls"))
	if !ok || len(list) == 0 {
		return nil
	}
	var calls []session.Content
	all := true
	for _, raw := range list {
		if c, ok := d.toolCall(wire.Members(raw)); ok {
			calls = append(calls, c)
		} else {
			all = false
		}
	}
	if all {
		o.Take("tool_calls")
	}
	if alone && len(calls) == 0 {
		for _, raw := range list {
			c := session.ToolUse(d.pairs.Call(wire.Members(raw).Str("id"), ""), "", nil)
			(&wire.Residue{Text: ptr(string(raw))}).Keep(&c.Extra, wire.Chat)
			calls = append(calls, c)
		}
	}
	return calls
}

func (d *ChatDecoder) toolCall(o wire.Object) (session.Content, bool) {
	var r wire.Residue
	r.Miss(o, "id", "type")
	kind, hasKind := o.TakeStr("type")
	member, text := "function", "arguments"
	if kind == formCustom {
		r.Form, member, text = formCustom, formCustom, "input"
	} else if hasKind && kind != member {
		return session.Content{}, false
	}
	inner, ok := o.TakeObject(member)
	name, hasName := inner.TakeStr("name")
	value, hasText := inner.TakeStr(text)
	if !hasText && kind != formCustom && rawjson.Kind(inner.Get(text)) == 'o' {
		value, hasText, r.Form = string(inner.Take(text)), true, formObject
	}
	if !hasText && kind != formCustom && (!inner.Has(text) || rawjson.IsNull(inner.Get(text))) {
		if hasText = true; !inner.Has(text) {
			r.Form = formNoArguments
		}
	}
	if !ok || !hasName || !hasText {
		return session.Content{}, false
	}
	id, _ := o.TakeText("id") // an empty one stays
	if id != "" {
		r.KeepUnsafe("id", id, maxChatID)
	}
	id = d.pairs.Call(id, name)
	var c session.Content
	if kind == formCustom {
		c = wire.TextCall(id, name, value)
	} else {
		c = wire.Call(id, name, value, &r)
	}
	r.Fields.Merge(o)
	keepName(&inner, name)
	keepInner(&r, member, inner)
	r.Keep(&c.Extra, wire.Chat)
	return c, true
}

// result takes a tool's answer.
func (d *ChatDecoder) result(o *wire.Object, m *session.MessageEntry, r *wire.Residue) {
	r.Miss(*o, "tool_call_id")
	id, _ := o.TakeText("tool_call_id") // an empty one stays
	if id != "" {
		r.KeepUnsafe("tool_call_id", id, maxChatID)
	}
	id = d.pairs.Answer(id, o.Str("name"))
	if text, ok := o.TakeStr("content"); ok {
		m.Content = []session.Content{session.ToolResult(id, text, false)}
		return
	}
	m.Content = []session.Content{wire.Result(id, chatContent(o, r), wire.Chat)}
}

// response reads the answers of a response.
func (d *ChatDecoder) response(o wire.Object) (*provider.Body, error) {
	choices, _ := o.TakeElements("choices")
	if len(choices) == 0 {
		return nil, fmt.Errorf("openai chat: the response has no answer: %.200s", o.JSON())
	}
	b := &provider.Body{Kind: provider.KindResponse, Model: o.Str("model")}
	usage := wire.Usage(&o, "usage", wire.Chat, provider.OpenAIChatUsage)
	for i, raw := range choices {
		choice, err := wire.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("openai chat: choice %d must be an object, not %.40s", i, raw)
		}
		e, err := d.choice(o, choice)
		if err != nil {
			return nil, fmt.Errorf("openai chat: choice %d: %w", i, err)
		}
		if i == 0 {
			e.Message.Usage = usage // of all the choices together
			b.Entries = []session.Entry{e}
		} else {
			b.Alternatives = append(b.Alternatives, []session.Entry{e})
		}
	}
	return b, nil
}

func (d *ChatDecoder) choice(response, choice wire.Object) (session.Entry, error) {
	message, ok := choice.TakeObject("message")
	if !ok {
		return session.Entry{}, errors.New("it has no message")
	}
	role := message.Get("role")
	message.SetStr("role", session.RoleAssistant) // only the model answers
	e := d.message(message)
	m := e.Message
	response = append(wire.Object(nil), response...)
	m.ResponseID, _ = response.TakeText("id")
	m.Model, _ = response.TakeText("model")
	if seconds := response.Int("created"); seconds > 0 {
		e.Timestamp = time.Unix(int64(seconds), 0).UTC()
	}
	if native, ok := choice.TakeText("finish_reason"); ok {
		reason, keep := wire.ChatStops.Decode(native)
		if m.StopReason = reason; keep != "" {
			choice.SetStr("finish_reason", keep)
		}
	}
	r, _ := wire.ResidueOf(m.Extra, wire.Chat)
	if role == nil {
		r.Absent = append(r.Absent, "role")
	} else if string(role) != `"assistant"` {
		r.Fields.Put("role", role)
	}
	r.Envelope = wire.Object{{Name: "response", Value: response.JSON()}, {Name: "choice", Value: choice.JSON()}}
	r.Mark(&m.Extra, wire.Chat)
	return e, nil
}
