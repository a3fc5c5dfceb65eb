package session

import (
	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// contents reads a list of blocks; a bare string is one block of text.
func contents(value []byte, into *[]Content) decoding {
	switch kindOf(value) {
	case '"':
		s, _ := rawjson.String(value)
		*into = []Content{Text(s)}
		return known
	case '[':
		blocks := []Content{}
		err := rawjson.Array(value, func(block []byte) error {
			c, err := decodeContent(block)
			blocks = append(blocks, c)
			return err
		})
		*into = blocks
		return decoding(err == nil)
	}
	return decoding(rawjson.IsNull(value))
}

// decodeContent reads a block. A block whose type is unknown, or whose payload
// is not what its type promises, is kept whole.
func decodeContent(raw []byte) (Content, error) {
	if s, ok := rawjson.String(raw); ok {
		return Text(s), nil
	}
	if kindOf(raw) != '{' {
		return Content{Raw: raw}, nil
	}
	var c Content
	var fields Fields
	err := decodeObject("content", raw, &fields, func(key string, value []byte) decoding {
		if key == "type" {
			return str(value, (*string)(&c.Type))
		}
		return unknown
	})
	if err != nil {
		return c, err
	}
	payload, rest, _ := fields.take(string(c.Type))
	c.Extra = rest
	if !c.payload(payload) {
		return Content{Type: c.Type, Raw: raw}, nil
	}
	return c, nil
}

// payload reads the block's payload and reports whether it is of the right form.
func (c *Content) payload(raw []byte) bool {
	if c.Type == ContentTypeText && kindOf(raw) == '"' {
		s, ok := rawjson.String(raw)
		c.Text = &TextContent{Content: s}
		return ok
	}
	if kindOf(raw) != '{' {
		return false
	}
	var extra *Fields
	var field func(key string, value []byte) decoding
	switch c.Type {
	case ContentTypeText:
		c.Text = &TextContent{}
		extra, field = &c.Text.Extra, func(key string, value []byte) decoding {
			return pick(key, value, "content", &c.Text.Content, "", nil)
		}
	case ContentTypeImage:
		c.Image = &ImageContent{}
		extra, field = &c.Image.Extra, sourceField(&c.Image.Source)
	case ContentTypeAudio:
		c.Audio = &AudioContent{}
		extra, field = &c.Audio.Extra, sourceField(&c.Audio.Source)
	case ContentTypeFile:
		c.File = &FileContent{}
		inner := sourceField(&c.File.Source)
		extra, field = &c.File.Extra, func(key string, value []byte) decoding {
			if key == "name" {
				return str(value, &c.File.Name)
			}
			return inner(key, value)
		}
	case ContentTypeThinking:
		c.Thinking = &ThinkingContent{}
		extra, field = &c.Thinking.Extra, func(key string, value []byte) decoding {
			if key == "redacted" {
				return str(value, &c.Thinking.Redacted)
			}
			return pick(key, value, "content", &c.Thinking.Content, "signature", &c.Thinking.Signature)
		}
	case ContentTypeToolUse:
		c.ToolUse = &ToolUseContent{}
		extra, field = &c.ToolUse.Extra, c.ToolUse.field
	case ContentTypeToolResult:
		c.ToolResult = &ToolResultContent{}
		extra, field = &c.ToolResult.Extra, c.ToolResult.field
	default:
		return false
	}
	return decodeObject(string(c.Type), raw, extra, field) == nil
}

func sourceField(into **Source) func(key string, value []byte) decoding {
	return func(key string, value []byte) decoding {
		if key != "source" || kindOf(value) != '{' {
			return decoding(key == "source" && rawjson.IsNull(value))
		}
		s := &Source{}
		*into = s
		return decoding(decodeObject("source", value, &s.Extra, s.field) == nil)
	}
}

func (s *Source) field(key string, value []byte) decoding {
	switch key {
	case "type":
		return str(value, &s.Type)
	case "media_type":
		return str(value, &s.MediaType)
	case "data":
		return str(value, &s.Data)
	}
	return blobField(key, value, &s.Blob, &s.Size)
}

// blobField reads a reference to a blob.
func blobField(key string, value []byte, ref *store.Ref, size *int64) decoding {
	switch key {
	case "blob":
		return str(value, (*string)(ref))
	case "size":
		n, ok := rawjson.Int(value)
		*size = n
		return decoding(ok)
	}
	return unknown
}

func (t *ToolUseContent) field(key string, value []byte) decoding {
	if key == "input" {
		return object(value, &t.Input, &t.rawInput)
	}
	return pick(key, value, "id", &t.ID, "name", &t.Name)
}

func (r *ToolResultContent) field(key string, value []byte) decoding {
	switch key {
	case "tool_use_id":
		return str(value, &r.ToolUseID)
	case "is_error":
		v, ok := rawjson.Bool(value)
		r.IsError = v
		return decoding(ok || rawjson.IsNull(value))
	case "content":
		if kindOf(value) != '[' {
			return str(value, &r.Content)
		}
		if contents(value, &r.Parts) == unknown {
			return unknown
		}
		r.Content = TextOf(r.Parts)
		return known
	case "parts":
		return contents(value, &r.Parts)
	}
	return blobField(key, value, &r.Blob, &r.Size)
}
