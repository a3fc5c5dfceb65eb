package openai

import (
	"encoding/json"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// toolItem is a call of a tool that the caller runs, and where its input is.
type toolItem struct {
	name  string // of the tool, where the item has none
	input string // the member that holds the input
}

// toolItems are the calls besides functions. Calls that OpenAI runs itself (searches,
// code, remote MCP) need no result: those items are kept whole.
var toolItems = map[string]toolItem{
	"custom_tool_call": {"", "input"},
	"computer_call":    {"computer", "action"},
	"local_shell_call": {"local_shell", "action"},
	"shell_call":       {"shell", "action"},
	"apply_patch_call": {"apply_patch", "operation"},
}

// answerBlock turns an item of an answer into a block.
func answerBlock(raw json.RawMessage, kind string, o wire.Object) session.Content {
	var r wire.Residue
	var c session.Content
	ok := false
	o.Take("type")
	switch kind {
	case "reasoning":
		c, ok = reasoningBlock(&o, &r)
	case "function_call":
		c, ok = functionBlock(&o, &r)
	case formImageItem:
		c, ok = generatedImage(&o, &r)
	default:
		if tool, is := toolItems[kind]; is {
			c, ok = toolBlock(kind, tool, &o, &r)
		}
	}
	if !ok {
		return wire.Raw(raw)
	}
	if t := c.ToolUse; t != nil {
		r.KeepUnsafe("call_id", t.ID, maxResponsesID)
		r.KeepUnsafe("name", t.Name, maxName)
	}
	r.Fields.Merge(o)
	// Mark it even if nothing is left to keep: thinking is sent back only to its own
	// provider.
	r.Mark(&c.Extra, wire.Responses)
	return c
}

// reasoningBlock returns the model's thoughts: the summary, or else the text.
// The encrypted form is what is sent back.
func reasoningBlock(o *wire.Object, r *wire.Residue) (session.Content, bool) {
	summary := textsOf(o.Get("summary"), "summary_text")
	if text := o.Get("content"); len(summary) == 0 && text != nil {
		summary = textsOf(text, "reasoning_text")
	}
	c := session.Thinking(strings.Join(summary, "\n\n"), "")
	c.Thinking.Signature, _ = o.TakeText("encrypted_content")
	r.Miss(*o, "summary")
	if string(o.Get("summary")) == string(summaryOf(c.Thinking.Content)) && !o.Has("content") {
		o.Take("summary") // it is written again from the text
	}
	return c, true
}

func textsOf(raw json.RawMessage, kind string) []string {
	var texts []string
	list, _ := wire.Elements(raw)
	for _, raw := range list {
		if part := wire.Members(raw); part.Str("type") == kind {
			texts = append(texts, part.Str("text"))
		}
	}
	return texts
}

// summaryOf returns a summary that is one text.
func summaryOf(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("[]")
	}
	o := wire.Object{{Name: "type", Value: wire.Quote("summary_text")}, {Name: "text", Value: wire.Quote(text)}}
	return wire.List([]json.RawMessage{o.JSON()})
}

func functionBlock(o *wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	id, hasID := o.TakeStr("call_id")
	name, hasName := o.TakeStr("name")
	arguments, ok := o.TakeStr("arguments")
	return wire.Call(id, name, arguments, r), hasID && hasName && ok
}

func toolBlock(kind string, tool toolItem, o *wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	id, hasID := o.TakeStr("call_id")
	r.Form = kind
	name := tool.name
	if name == "" {
		if name, ok = o.TakeStr("name"); !ok {
			return c, false
		}
	}
	if text, ok := o.TakeStr(tool.input); ok && kind == "custom_tool_call" {
		return wire.TextCall(id, name, text), hasID
	}
	input := o.Get(tool.input)
	if rawjson.Kind(input) != 'o' || kind == "custom_tool_call" {
		return c, false
	}
	o.Take(tool.input)
	return session.ToolUseJSON(id, name, input), hasID
}

// generatedImage takes the picture that a model made, so that its bytes are kept
// once.
func generatedImage(o *wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	data, ok := o.TakeStr("result")
	format := o.Str("output_format")
	if format == "" {
		format = "png"
	}
	r.Form = formImageItem
	return session.ImageFrom(&session.Source{Type: provider.SourceBase64, MediaType: "image/" + format, Data: data}), ok
}

// result adds a tool's answer. An answer without an id is kept whole, in its own
// message, because the model did not say it.
func (d *itemDecoder) result(raw json.RawMessage, kind string, o wire.Object) {
	m := &session.MessageEntry{Role: session.RoleTool}
	var r wire.Residue
	id, ok := o.TakeStr("call_id")
	if !ok {
		m.Role, m.Content = session.RoleUser, []session.Content{wire.Raw(raw)}
		(&wire.Residue{Form: formItem}).Mark(&m.Extra, wire.Responses)
		d.add(m)
		return
	}
	o.Take("type")
	if kind != "function_call_output" {
		r.Form = kind
	}
	r.KeepUnsafe("call_id", id, maxResponsesID)
	c := outputBlock(id, &o, &r)
	r.Fields.Merge(o)
	r.Keep(&c.Extra, wire.Responses)
	m.Content = []session.Content{c}
	if wire.HasRaw(m.Content) || wire.HasMedia(m.Content) {
		(&wire.Residue{}).Mark(&m.Extra, wire.Responses)
	}
	d.add(m)
}

// outputBlock takes the output: a text, parts, or a screenshot. For anything else the
// text is its JSON, and the output is kept too.
func outputBlock(id string, o *wire.Object, r *wire.Residue) session.Content {
	if text, ok := o.TakeStr("output"); ok {
		return session.ToolResult(id, text, false)
	}
	output := o.Get("output")
	if list, ok := wire.BlockList(output); ok {
		parts := itemParts(list, inputText)
		if len(parts) == 0 || wire.HasRaw(parts) { // a tool's own structure
			return session.ToolResult(id, string(output), false)
		}
		o.Take("output")
		c := session.ToolResult(id, session.TextOf(parts), false)
		c.ToolResult.Parts = parts
		return c
	}
	screen := wire.Members(output)
	if url, ok := screen.TakeStr("image_url"); ok && screen.Str("type") == formScreenshot {
		o.Take("output")
		image := session.ImageFrom(provider.SourceAt(url))
		screen.Take("type")
		(&wire.Residue{Form: formScreenshot, Fields: screen}).Keep(&image.Extra, wire.Responses)
		c := session.ToolResult(id, "", false)
		c.ToolResult.Parts = []session.Content{image}
		return c
	}
	r.Miss(*o, "output")
	return session.ToolResult(id, string(output), false)
}

// The usual types of texts: those for a model, and those by it.
const (
	inputText  = "input_text"
	outputText = "output_text"
)

// itemParts reads the parts of a message or of an output, whose texts usually
// have the given type.
func itemParts(list []json.RawMessage, usual string) []session.Content {
	blocks := make([]session.Content, len(list))
	for i, raw := range list {
		blocks[i] = itemPart(raw, usual)
	}
	return blocks
}

func itemPart(raw json.RawMessage, usual string) session.Content {
	o := wire.Members(raw)
	kind, _ := o.TakeStr("type")
	var r wire.Residue
	c, ok := itemPartOf(kind, &o, &r)
	if r.Form == usual {
		r.Form = ""
	}
	if !ok {
		return wire.Raw(raw)
	}
	r.Fields.Merge(o)
	r.Keep(&c.Extra, wire.Responses)
	return c
}

func itemPartOf(kind string, o *wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	switch kind {
	case inputText, outputText, "text":
		text, ok := o.TakeStr("text")
		r.Form = kind
		return session.Text(text), ok
	case "refusal":
		text, ok := o.TakeStr("refusal")
		r.Form = formRefusalPart
		return session.Text(text), ok
	case "input_image":
		if url, ok := o.TakeStr("image_url"); ok {
			return session.ImageFrom(provider.SourceAt(url)), true
		}
		id, ok := o.TakeStr("file_id")
		return session.ImageFrom(&session.Source{Type: provider.SourceFile, Data: id}), ok
	case "input_audio":
		return audioPart(o, r)
	case "input_file":
		return inputFile(o)
	}
	return c, false
}

func inputFile(o *wire.Object) (c session.Content, ok bool) {
	name, _ := o.TakeText("filename")
	if id, ok := o.TakeStr("file_id"); ok {
		return session.File(name, &session.Source{Type: provider.SourceFile, Data: id}), true
	}
	if url, ok := o.TakeStr("file_url"); ok {
		return session.File(name, &session.Source{Type: provider.SourceURL, Data: url}), true
	}
	data, ok := o.TakeStr("file_data")
	source := provider.SourceAt(data)
	return session.File(name, source), ok && source.Type == provider.SourceBase64
}
