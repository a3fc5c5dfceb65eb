package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
)

// EncodeResponses writes the entries of a context as the input of a request.
// A system prompt that came as instructions is written as such.
//
// Given the entries of a session.Context, where every call has its result, the request
// keeps the rules that CheckResponses knows: no two calls have the same id.
func EncodeResponses(entries []session.Entry) (*provider.Messages, error) {
	return encodeResponses(entries, false)
}

// EncodeResponsesVerbatim is EncodeResponses for files that keep a conversation: items that
// came from this format come back with equal values, even if the provider would refuse them.
func EncodeResponsesVerbatim(entries []session.Entry) (*provider.Messages, error) {
	return encodeResponses(entries, true)
}

func encodeResponses(entries []session.Entry, verbatim bool) (*provider.Messages, error) {
	e := itemEncoder{verbatim: verbatim, ids: wire.UniqueIDs{Verbatim: verbatim}}
	var fields wire.Object
	messages := wire.Sent(entries, verbatim, media.Responses, &e.notes)
	if text, ok := promptOf(messages, formInstructions); ok {
		fields.SetStr("instructions", text)
		messages = messages[1:]
	}
	if text, ok := promptOf(messages, formInput); ok && len(messages) == 1 {
		fields.SetStr("input", text)
		return &provider.Messages{Fields: session.Fields(fields)}, nil
	}
	items, err := e.all(messages)
	if err != nil {
		return nil, err
	}
	fields.Put("input", wire.List(items))
	return &provider.Messages{Fields: session.Fields(fields), Notes: e.notes.List}, nil
}

// promptOf returns the text of the first message, if it came in a form.
func promptOf(messages []wire.Message, form string) (string, bool) {
	if len(messages) == 0 || !wire.IsPlain(messages[0].Content, wire.Responses) {
		return "", false
	}
	r, _ := wire.ResidueOf(messages[0].Extra, wire.Responses)
	return messages[0].Content[0].Text.Content, r.Form == form
}

type itemEncoder struct {
	notes wire.Notes
	items []json.RawMessage
	ids   wire.UniqueIDs
	kinds map[string]string // of the calls besides functions, by id
	own   bool              // the current message came from this format
	// forgotten: reasoning of the current message came without its encrypted form. The
	// provider stores nothing, so it does not find it by its id, and what follows it cannot
	// be sent by its id either.
	forgotten bool

	verbatim bool
}

func (e *itemEncoder) all(messages []wire.Message) ([]json.RawMessage, error) {
	e.items, e.kinds = []json.RawMessage{}, make(map[string]string)
	for _, m := range messages {
		e.notes.Of(m.Entry)
		if err := e.message(m); err != nil {
			return nil, fmt.Errorf("openai responses: entry %s: %w", m.Entry, err)
		}
	}
	if !e.verbatim {
		e.dropStranded()
	}
	return e.items, nil
}

// dropStranded leaves out reasoning that led to nothing: the answer broke off
// after it.
func (e *itemEncoder) dropStranded() {
	for i := len(e.items) - 1; i >= 0; i-- {
		if isStranded(e.items, i) {
			e.items = slices.Delete(e.items, i, i+1)
		}
	}
}

func (e *itemEncoder) message(m wire.Message) error {
	var r wire.Residue
	r, e.own = wire.ResidueOf(m.Extra, wire.Responses)
	switch {
	case r.Form == formItem && len(m.Content) == 1 && m.Content[0].Raw != nil:
		e.items = append(e.items, wire.RawOf(&m.Content[0]))
	case m.Role == session.RoleAssistant:
		return e.answer(m)
	case m.Role == session.RoleTool:
		for i := range m.Content {
			e.result(&m.Content[i])
		}
	default:
		e.input(m, &r)
	}
	return nil
}

// input writes a message that is not the model's.
func (e *itemEncoder) input(m wire.Message, r *wire.Residue) {
	parts := e.parts(m.Content, inputText)
	if len(parts) == 0 && (len(m.Content) > 0 || !e.own) {
		return
	}
	var o wire.Object
	o.SetStr("type", itemMessage)
	o.SetStr("role", m.Role)
	if r.Form == formString && wire.IsPlain(m.Content, wire.Responses) {
		o.SetStr("content", m.Content[0].Text.Content)
	} else {
		o.Put("content", wire.List(parts))
	}
	if len(parts) > 0 {
		r.Forget("content")
	}
	r.Restore(&o)
	e.items = append(e.items, o.JSON())
}

// answer writes a message of the model as items.
func (e *itemEncoder) answer(m wire.Message) error {
	e.forgotten = false
	for i := 0; i < len(m.Content); i++ {
		c := &m.Content[i]
		r, own := wire.ResidueOf(c.Extra, wire.Responses)
		var item wire.Object
		var err error
		switch {
		case c.Raw != nil && e.own:
			e.items = append(e.items, wire.RawOf(c))
			continue
		case c.Text != nil:
			last := i
			for last+1 < len(m.Content) && joined(&m.Content[last+1]) {
				last++
			}
			item = e.answerText(m.Content[i : last+1])
			i = last
		case c.Thinking != nil && own && c.Thinking.Signature == "" && !e.verbatim:
			e.forgotten = true
			continue
		case c.Thinking != nil && own:
			item = reasoningItem(c.Thinking, &r)
		case c.ToolUse != nil:
			item, err = e.call(c.ToolUse, &r)
		case c.Image != nil && r.Form == formImageItem && c.Image.Source != nil:
			item.SetStr("type", formImageItem)
			item.SetStr("result", c.Image.Source.Data)
			r.Restore(&item)
		case c.Thinking != nil:
			e.notes.Add("thinking of another provider is left out")
			continue
		default:
			e.notes.Add("%s is left out", wire.Describe(c))
			continue
		}
		if err != nil {
			return err
		}
		if e.forgotten {
			item.Take("id")
		}
		e.items = append(e.items, item.JSON())
	}
	return nil
}

// joined reports whether a text is in one item with the text before it.
func joined(c *session.Content) bool {
	r, _ := wire.ResidueOf(c.Extra, wire.Responses)
	return c.Text != nil && r.Join != nil && *r.Join
}

func (e *itemEncoder) answerText(texts []session.Content) wire.Object {
	first, _ := wire.ResidueOf(texts[0].Extra, wire.Responses)
	r, _ := wire.ResidueOf(session.Fields(first.Envelope), wire.Responses)
	var o wire.Object
	o.SetStr("type", itemMessage)
	o.SetStr("role", session.RoleAssistant)
	if r.Form == formString {
		o.SetStr("content", texts[0].Text.Content)
	} else {
		o.Put("content", wire.List(e.parts(texts, outputText)))
	}
	r.Restore(&o)
	return o
}

func reasoningItem(t *session.ThinkingContent, r *wire.Residue) wire.Object {
	var o wire.Object
	o.SetStr("type", "reasoning")
	o.Put("summary", summaryOf(t.Content))
	o.SetText("encrypted_content", t.Signature)
	r.Restore(&o)
	return o
}

func (e *itemEncoder) call(t *session.ToolUseContent, r *wire.Residue) (wire.Object, error) {
	var o wire.Object
	if !e.verbatim { // the provider refuses these members, or the result cannot match them
		r.Forget("call_id")
		r.Forget("name")
	}
	tool, ok := toolItems[r.Form]
	text, isText := wire.CallText(t)
	if !ok || r.Form == "custom_tool_call" && !isText {
		arguments, err := wire.Arguments(t, r, e.verbatim)
		if err != nil {
			return nil, err
		}
		o.SetStr("type", "function_call")
		o.SetStr("call_id", e.ids.Call(t.ID, maxResponsesID))
		o.SetStr("name", e.name(t.Name, r))
		o.SetStr("arguments", arguments)
		r.Restore(&o)
		return o, nil
	}
	e.kinds[t.ID] = r.Form
	o.SetStr("type", r.Form)
	o.SetStr("call_id", e.ids.Call(t.ID, maxResponsesID))
	if tool.name == "" {
		o.SetStr("name", e.name(t.Name, r))
		o.SetStr(tool.input, text)
	} else {
		input, err := t.InputJSON()
		if err != nil {
			return nil, err
		}
		o.Put(tool.input, input)
	}
	r.Restore(&o)
	return o, nil
}

// name returns the name of a tool, unless it was kept as it was.
func (e *itemEncoder) name(name string, r *wire.Residue) string {
	if r.Fields.Has("name") {
		return name
	}
	return e.notes.SafeName(name, maxName)
}

// result writes a tool's answer.
func (e *itemEncoder) result(c *session.Content) {
	r, own := wire.ResidueOf(c.Extra, wire.Responses)
	t := c.ToolResult
	var o wire.Object
	o.SetStr("type", "function_call_output")
	if kind := e.kinds[t.ToolUseID]; kind != "" {
		o.SetStr("type", kind+"_output")
	}
	o.SetText("type", r.Form)
	if !e.verbatim {
		r.Forget("call_id") // it is the call's
	}
	if output := r.Fields.Get("output"); len(t.Parts) > 0 || string(output) != t.Content {
		r.Forget("output")
	}
	o.SetStr("call_id", e.ids.Result(t.ToolUseID, maxResponsesID))
	switch {
	case len(t.Parts) == 1 && isScreenshot(&t.Parts[0]):
		o.Put("output", screenshot(&t.Parts[0]))
	case len(t.Parts) > 0:
		o.Put("output", wire.List(e.parts(t.Parts, inputText)))
	default:
		o.SetStr("output", t.Content)
	}
	if t.IsError && !own {
		e.notes.Add("the result does not say that the tool failed")
	}
	r.Restore(&o)
	e.items = append(e.items, o.JSON())
}

const formScreenshot = "computer_screenshot"

func isScreenshot(c *session.Content) bool {
	r, _ := wire.ResidueOf(c.Extra, wire.Responses)
	return c.Image != nil && c.Image.Source != nil && r.Form == formScreenshot
}

func screenshot(c *session.Content) json.RawMessage {
	r, _ := wire.ResidueOf(c.Extra, wire.Responses)
	url, _ := provider.URLOf(c.Image.Source)
	var o wire.Object
	o.SetStr("type", formScreenshot)
	o.SetStr("image_url", url)
	r.Restore(&o)
	return o.JSON()
}

// parts writes blocks as the parts of a message or an output.
func (e *itemEncoder) parts(blocks []session.Content, usual string) []json.RawMessage {
	list := []json.RawMessage{}
	for i := range blocks {
		c := &blocks[i]
		if c.Raw != nil && e.own {
			list = append(list, wire.RawOf(c))
			continue
		}
		r, _ := wire.ResidueOf(c.Extra, wire.Responses)
		o := newItemPart(c, r.Form, usual)
		if o == nil {
			e.notes.Add("%s is left out", wire.Describe(c))
			continue
		}
		for _, f := range r.Inner("input_audio") {
			inner := wire.Members(o.Get("input_audio"))
			inner.Put(f.Name, f.Value)
			o.SetObject("input_audio", inner)
		}
		r.Restore(&o)
		list = append(list, o.JSON())
	}
	return list
}

// newItemPart returns a block as a part, or nil if it cannot be one.
func newItemPart(c *session.Content, form, usual string) wire.Object {
	var o wire.Object
	source := c.Source()
	switch {
	case c.Text != nil && form == formRefusalPart:
		o.SetStr("type", "refusal")
		o.SetStr("refusal", c.Text.Content)
	case c.Text != nil:
		o.SetStr("type", usual)
		o.SetText("type", form)
		o.SetStr("text", c.Text.Content)
	case source == nil:
		return nil
	case c.Image != nil && source.Type == provider.SourceFile:
		o.SetStr("type", "input_image")
		o.SetStr("file_id", source.Data)
	case c.Image != nil:
		url, ok := provider.URLOf(source)
		if !ok {
			return nil
		}
		o.SetStr("type", "input_image")
		o.SetStr("image_url", url)
	case c.Audio != nil && source.Type == provider.SourceBase64:
		return newAudioPart(source)
	case c.File != nil:
		return newInputFile(c.File)
	}
	return o
}

func newInputFile(f *session.FileContent) wire.Object {
	var o wire.Object
	o.SetStr("type", "input_file")
	switch f.Source.Type {
	case provider.SourceFile:
		o.SetStr("file_id", f.Source.Data)
	case provider.SourceURL:
		o.SetStr("file_url", f.Source.Data)
	case provider.SourceBase64:
		url, _ := provider.URLOf(f.Source)
		o.SetStr("file_data", url)
	case provider.SourceText:
		return wire.Object{{Name: "type", Value: wire.Quote(inputText)}, {Name: "text", Value: wire.Quote(f.Source.Data)}}
	default:
		return nil
	}
	o.SetText("filename", f.Name)
	return o
}
