package bedrock

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// documentTypes are the formats of documents and their media types.
var documentTypes = map[string]string{
	"pdf": "application/pdf", "csv": "text/csv", "html": "text/html", "txt": "text/plain", "md": "text/markdown",
	"doc": "application/msword", "xls": "application/vnd.ms-excel",
	"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}

// blocks reads the blocks of a message. An unknown block is kept whole, and so is a
// tool's answer in a message that is not the user's.
func blocks(list []json.RawMessage, role string) []session.Content {
	out := make([]session.Content, len(list))
	for i, raw := range list {
		c, ok := block(raw)
		if !ok || c.ToolResult != nil && role != session.RoleUser {
			c = wire.Raw(raw)
		}
		out[i] = c
	}
	return out
}

// block reads a block: an object with one member, whose name is its type.
func block(raw json.RawMessage) (c session.Content, ok bool) {
	o := wire.Members(raw)
	if len(o) != 1 {
		return c, false
	}
	if text, ok := o.TakeStr("text"); ok {
		return session.Text(text), true
	}
	kind, inner := o[0].Name, wire.Members(o[0].Value)
	switch kind {
	case "image", "audio":
		c, ok = mediaBlock(kind, &inner)
	case "document":
		c, ok = document(&inner)
	case "toolUse":
		c, ok = toolUse(&inner)
	case "toolResult":
		c, ok = toolResult(&inner)
	case "reasoningContent":
		c, ok = reasoning(&inner)
	}
	if !ok {
		return c, false
	}
	r := wire.Residue{Fields: inner}
	if c.Thinking != nil {
		r.Mark(&c.Extra, wire.Bedrock) // not for other providers
	}
	r.Keep(&c.Extra, wire.Bedrock)
	return c, true
}

// bytesOf takes the bytes of a source. It does not handle sources that are stored
// elsewhere.
func bytesOf(o *wire.Object) (data string, ok bool) {
	source := wire.Members(o.Get("source"))
	data, ok = source.TakeStr("bytes")
	if ok = ok && len(source) == 0; ok {
		o.Take("source")
	}
	return data, ok
}

// mediaBlock reads a picture or a recording, whose media type is its kind and its format.
func mediaBlock(kind string, o *wire.Object) (c session.Content, ok bool) {
	format, hasFormat := o.TakeText("format")
	data, ok := bytesOf(o)
	return session.Media(&session.Source{Type: provider.SourceBase64, MediaType: kind + "/" + format, Data: data}), ok && hasFormat
}

// document reads a file. An unknown format has no media type, so the block is kept whole.
func document(o *wire.Object) (c session.Content, ok bool) {
	format, _ := o.TakeStr("format")
	mediaType, known := documentTypes[format]
	name, hasName := o.TakeText("name")
	data, ok := bytesOf(o)
	return session.File(name, &session.Source{Type: provider.SourceBase64, MediaType: mediaType, Data: data}), ok && known && hasName
}

// toolUse reads a call. An input that is no object stays among the unknown members, too.
func toolUse(o *wire.Object) (c session.Content, ok bool) {
	id, hasID := o.TakeStr("toolUseId")
	name, hasName := o.TakeStr("name")
	input := o.Get("input")
	if rawjson.Kind(input) == 'o' {
		o.Take("input")
	}
	return session.ToolUseJSON(id, name, input), hasID && hasName && input != nil
}

// toolResult reads a tool's answer. Only a status of "error" has a field of its own.
func toolResult(o *wire.Object) (c session.Content, ok bool) {
	id, hasID := o.TakeStr("toolUseId")
	list, ok := wire.TakeBlocks(o, "content")
	if !ok || !hasID {
		return c, false
	}
	parts := make([]session.Content, len(list))
	for i, raw := range list {
		parts[i] = resultPart(raw)
	}
	c = wire.Result(id, parts, wire.Bedrock)
	if o.Str("status") == "error" {
		o.Take("status")
		c.ToolResult.IsError = true
	}
	return c, true
}

// resultPart reads a part of a tool's answer. JSON becomes its text.
func resultPart(raw json.RawMessage) session.Content {
	if o := wire.Members(raw); len(o) == 1 && o.Has("json") {
		return session.Text(string(o.Get("json")))
	}
	if c, ok := block(raw); ok && (c.Text != nil || c.Source() != nil) {
		return c
	}
	return wire.Raw(raw)
}

// reasoning reads thinking: a text with its signature, or redacted bytes.
func reasoning(o *wire.Object) (c session.Content, ok bool) {
	c = session.Thinking("", "")
	if data, ok := o.TakeText("redactedContent"); ok {
		c.Thinking.Redacted = data
		return c, len(*o) == 0
	}
	inner, _ := o.TakeObject("reasoningText")
	c.Thinking.Content, ok = inner.TakeStr("text")
	c.Thinking.Signature, _ = inner.TakeText("signature")
	if len(inner) > 0 {
		o.SetObject("reasoningText", inner)
	}
	return c, ok
}
