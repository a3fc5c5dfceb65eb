package bedrock

import (
	"encoding/json"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// formJSON is a tool's answer that is JSON and not text: see wire.Residue.
const (
	formJSON  = "json"
	formParts = "parts" // a tool's answer is a list of nothing
)

// maxID is the length of the longest id, and of the longest tool name.
const maxID = 64

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
	var r wire.Residue
	switch kind {
	case "image", "audio":
		c, ok = mediaBlock(kind, &inner)
	case "document":
		c, ok = document(&inner)
	case "toolUse":
		c, ok = toolUse(&inner, &r)
	case "toolResult":
		c, ok = toolResult(&inner, &r)
	case "reasoningContent":
		c, ok = reasoning(&inner, &r)
	}
	if !ok {
		return c, false
	}
	r.Fields.Merge(inner)
	if c.Thinking != nil {
		r.Mark(&c.Extra, wire.Bedrock) // sent back only to its own provider
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

func mediaBlock(kind string, o *wire.Object) (c session.Content, ok bool) {
	format, hasFormat := o.TakeText("format")
	data, ok := bytesOf(o)
	return session.Media(&session.Source{Type: provider.SourceBase64, MediaType: kind + "/" + format, Data: data}), ok && hasFormat
}

func document(o *wire.Object) (c session.Content, ok bool) {
	format, _ := o.TakeStr("format")
	mediaType, known := documentTypes[format]
	name, hasName := o.TakeText("name")
	data, ok := bytesOf(o)
	return session.File(name, &session.Source{Type: provider.SourceBase64, MediaType: mediaType, Data: data}), ok && known && hasName
}

func toolUse(o *wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	id, hasID := o.TakeStr("toolUseId")
	name, hasName := o.TakeStr("name")
	input := o.Get("input")
	if rawjson.Kind(input) == 'o' {
		o.Take("input")
	}
	r.KeepUnsafe("toolUseId", id, maxID)
	r.KeepUnsafe("name", name, maxID)
	return session.ToolUseJSON(id, name, input), hasID && hasName && input != nil
}

func toolResult(o *wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	id, hasID := o.TakeStr("toolUseId")
	list, ok := wire.TakeBlocks(o, "content")
	if !ok || !hasID {
		return c, false
	}
	r.KeepUnsafe("toolUseId", id, maxID)
	parts := make([]session.Content, len(list))
	for i, raw := range list {
		parts[i] = resultPart(raw)
	}
	c = wire.Result(id, parts, wire.Bedrock)
	if len(parts) == 0 {
		r.Form = formParts
	}
	if len(parts) == 1 && isJSON(&parts[0]) { // no need to say it twice
		r.Form, c.ToolResult.Parts = formJSON, nil
	}
	if o.Str("status") == "error" {
		o.Take("status")
		c.ToolResult.IsError = true
	}
	return c, true
}

// resultPart reads a part of a tool's answer. JSON becomes its text.
func resultPart(raw json.RawMessage) session.Content {
	if o := wire.Members(raw); len(o) == 1 && o.Has("json") {
		c := session.Text(string(o.Get("json")))
		(&wire.Residue{Form: formJSON}).Keep(&c.Extra, wire.Bedrock)
		return c
	}
	if c, ok := block(raw); ok && (c.Text != nil || c.Source() != nil) {
		return c
	}
	return wire.Raw(raw)
}

func isJSON(c *session.Content) bool {
	r, _ := wire.ResidueOf(c.Extra, wire.Bedrock)
	return c.Text != nil && r.Form == formJSON && rawjson.Valid([]byte(c.Text.Content))
}

func reasoning(o *wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	c = session.Thinking("", "")
	if data, ok := o.TakeText("redactedContent"); ok {
		c.Thinking.Redacted = data
		return c, len(*o) == 0
	}
	inner, _ := o.TakeObject("reasoningText")
	c.Thinking.Content, ok = inner.TakeStr("text")
	c.Thinking.Signature, _ = inner.TakeText("signature")
	if len(inner) > 0 {
		r.Fields.SetObject("reasoningText", inner)
	}
	return c, ok
}

// formatOf returns the format of a medium of a kind, or "".
func formatOf(kind string, s *session.Source) string {
	if s == nil || s.Type != provider.SourceBase64 {
		return ""
	}
	if kind == "document" {
		for format, mediaType := range documentTypes {
			if mediaType == s.MediaType {
				return format
			}
		}
		return ""
	}
	format, _ := strings.CutPrefix(s.MediaType, kind+"/")
	return format
}
