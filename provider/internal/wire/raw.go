package wire

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/session"
)

// wrapped is the type of a block around another one that a log would misread: a bare string,
// or a block that looks like one of Coppice's.
const wrapped = "wrapped"

// Raw returns a block that is kept as it is.
func Raw(raw []byte) session.Content {
	c := session.Content{Type: session.ContentType(Members(raw).Str("type")), Raw: raw}
	var back session.Content
	if json.Unmarshal(raw, &back) == nil && back.Raw != nil && c.Type != wrapped {
		return c
	}
	o := Object{{Name: "type", Value: Quote(wrapped)}, {Name: "block", Value: raw}}
	return session.Content{Type: wrapped, Raw: o.JSON()}
}

// RawOf returns the original block.
func RawOf(c *session.Content) json.RawMessage {
	if c.Type == wrapped {
		if inner := Members(c.Raw).Get("block"); inner != nil {
			return inner
		}
	}
	return c.Raw
}

// HasRaw reports whether any of the blocks, or of the parts of tool results, is kept as it
// is.
func HasRaw(blocks []session.Content) bool {
	return has(blocks, func(c *session.Content) bool { return c.Raw != nil })
}

// HasMedia reports whether there is an image, a recording or a file.
func HasMedia(blocks []session.Content) bool {
	return has(blocks, func(c *session.Content) bool { return c.Source() != nil })
}

// HasEmpty reports whether there is an empty text.
func HasEmpty(blocks []session.Content) bool {
	return has(blocks, func(c *session.Content) bool { return c.Text != nil && c.Text.Content == "" })
}

func has(blocks []session.Content, is func(c *session.Content) bool) bool {
	for i := range blocks {
		c := &blocks[i]
		if is(c) || c.ToolResult != nil && has(c.ToolResult.Parts, is) {
			return true
		}
	}
	return false
}
