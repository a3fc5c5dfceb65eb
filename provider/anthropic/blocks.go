package anthropic

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// The longest ids and tool names.
const (
	maxID   = 64
	maxName = 128
)

// blocks reads the blocks of a message.
func blocks(list []json.RawMessage) []session.Content {
	out := make([]session.Content, len(list))
	for i, raw := range list {
		out[i] = block(raw)
	}
	return out
}

// block reads a block. An unknown block is kept whole. So are those of the provider's
// own tools: they need no result, and other providers cannot use them.
func block(raw json.RawMessage) session.Content {
	o := wire.Members(raw)
	kind, _ := o.TakeStr("type")
	var r wire.Residue
	c, ok := blockOf(kind, &o, &r)
	if !ok {
		return wire.Raw(raw)
	}
	r.Fields.Merge(o)
	r.Keep(&c.Extra, wire.Anthropic)
	return c
}

func blockOf(kind string, o *wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	switch kind {
	case "text":
		text, ok := o.TakeStr("text")
		return session.Text(text), ok
	case "thinking":
		r.Miss(*o, "signature")
		text, ok := o.TakeStr("thinking")
		signature, _ := o.TakeStr("signature")
		return session.Thinking(text, signature), ok
	case "redacted_thinking":
		data, ok := o.TakeText("data")
		c := session.Thinking("", "")
		c.Thinking.Redacted = data
		return c, ok
	case "tool_use":
		return toolUse(o, r)
	case "tool_result":
		return toolResult(o, r)
	case "image":
		source, ok := decodeSource(o, r)
		return session.ImageFrom(source), ok
	case "document":
		source, ok := decodeSource(o, r)
		title, _ := o.TakeText("title")
		return session.File(title, source), ok
	}
	return c, false
}

func toolUse(o *wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	id, hasID := o.TakeStr("id")
	name, hasName := o.TakeStr("name")
	input := o.Get("input")
	if !hasID || !hasName || input == nil {
		return c, false
	}
	if rawjson.Kind(input) == 'o' {
		o.Take("input")
	}
	r.KeepUnsafe("id", id, maxID)
	r.KeepUnsafe("name", name, maxName)
	return session.ToolUseJSON(id, name, input), true
}

// toolResult takes a tool's answer: a text, blocks, or nothing.
func toolResult(o *wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	r.Miss(*o, "content")
	id, ok := o.TakeStr("tool_use_id")
	r.KeepUnsafe("tool_use_id", id, maxID)
	if text, isText := o.TakeStr("content"); isText {
		c = session.ToolResult(id, text, false)
	} else if content := o.Get("content"); rawjson.Kind(content) == 'o' {
		// The provider does not accept this, but some programs keep a tool's answer
		// like this.
		c = session.ToolResult(id, string(content), false)
	} else {
		list, isList := wire.TakeBlocks(o, "content")
		c = wire.Result(id, blocks(list), wire.Anthropic)
		if isList && len(c.ToolResult.Parts) == 0 {
			r.Form = formParts
		}
	}
	if isError, _ := rawjson.Bool(o.Get("is_error")); isError {
		o.Take("is_error")
		c.ToolResult.IsError = true
	}
	return c, ok
}

// decodeSource takes the source of an image or a document.
func decodeSource(o *wire.Object, r *wire.Residue) (*session.Source, bool) {
	inner, _ := o.TakeObject("source")
	s := &session.Source{}
	s.Type, _ = inner.TakeStr("type")
	s.MediaType, _ = inner.TakeText("media_type")
	member := sourceMember(s.Type)
	data, ok := inner.TakeStr(member)
	s.Data = data
	if len(inner) > 0 {
		r.Fields.SetObject("source", inner)
	}
	return s, ok && member != ""
}

// sourceMember returns the name of the member that holds the data of a source.
func sourceMember(kind string) string {
	switch kind {
	case provider.SourceBase64, provider.SourceText:
		return "data"
	case provider.SourceURL:
		return "url"
	case provider.SourceFile:
		return "file_id"
	}
	return ""
}

// isElsewhere reports whether the data of a source is not in the request. The provider
// determines its type itself, and refuses a request that names one.
func isElsewhere(kind string) bool {
	return kind == provider.SourceURL || kind == provider.SourceFile
}
