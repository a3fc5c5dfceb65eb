package session

import (
	"bytes"

	"github.com/coppice-dev/coppice/store"
)

// contents reads a list of blocks; a bare string is one block of text.
func (d *decoder) contents(into *[]Content) decoding {
	kind := d.r.Kind()
	if kind != '"' && kind != '[' {
		return decoding(d.r.Null())
	}
	blocks := d.blocks
	if d.blocks = nil; blocks == nil {
		blocks = []Content{}
	}
	if kind == '"' {
		*into = append(blocks, d.content())
		return known
	}
	for more := d.r.Open('['); more; more = d.r.More(']') {
		blocks = append(blocks, d.content())
	}
	*into = blocks
	return known
}

// newText returns a text to be filled in.
func (d *decoder) newText() *TextContent {
	t := d.text
	if d.text = nil; t == nil {
		t = &TextContent{}
	}
	return t
}

// content reads a block; a bare string is one of text.
func (d *decoder) content() Content {
	switch d.r.Kind() {
	case '{':
		return d.block(false)
	case '"':
		t := d.newText()
		d.str(&t.Content)
		return Content{Type: ContentTypeText, Text: t}
	}
	return Content{Raw: bytes.Clone(d.r.Raw())}
}

// block reads a block. One whose type is unknown, or whose payload is not what
// its type promises, is kept whole. The payload is read on the way if the type is
// known by then, unless late: then it is read when all members are known.
func (d *decoder) block(late bool) Content {
	begin := d.r.Mark()
	var c Content
	var as ContentType // what the payload was read as
	var fields Fields  // the other members; slices of the line
	for more := d.r.Open('{'); more; more = d.r.More('}') {
		key := d.r.Key()
		mark := d.r.Mark()
		if string(key) == "type" {
			if d.word((*string)(&c.Type)) == known {
				continue
			}
		} else if as == "" && !late && string(key) == string(c.Type) && !fields.has(key) && d.payload(&c) {
			as = c.Type
			continue
		}
		d.r.Rewind(mark)
		fields = append(fields, Field{Name: string(key), Value: d.r.Raw()})
	}
	if as != "" && as != c.Type { // a second type, after the payload of the first
		d.r.Rewind(begin)
		return d.block(true)
	}
	if as == "" {
		payload, rest, _ := fields.take(string(c.Type))
		if !d.payloadOf(payload, &c) {
			return Content{Type: c.Type, Raw: bytes.Clone(d.r.Since(begin))}
		}
		fields = rest
	}
	c.Extra = fields.clone()
	return c
}

// payloadOf reads a block's payload that was passed by already.
func (d *decoder) payloadOf(raw []byte, c *Content) bool {
	outer := d.r
	d.r.Reset(raw)
	ok := d.payload(c)
	d.r = outer
	return ok
}

// payload reads the block's payload and reports whether it is of the right form.
func (d *decoder) payload(c *Content) bool {
	if c.Type == ContentTypeText && d.r.Kind() == '"' {
		c.Text = d.newText()
		return d.str(&c.Text.Content) == known
	}
	if d.r.Kind() != '{' {
		return false
	}
	switch c.Type {
	case ContentTypeText:
		c.Text = d.newText()
		d.object(c.Text, &c.Text.Extra)
	case ContentTypeImage:
		c.Image = &ImageContent{}
		d.object(c.Image, &c.Image.Extra)
	case ContentTypeAudio:
		c.Audio = &AudioContent{}
		d.object(c.Audio, &c.Audio.Extra)
	case ContentTypeFile:
		c.File = &FileContent{}
		d.object(c.File, &c.File.Extra)
	case ContentTypeThinking:
		c.Thinking = &ThinkingContent{}
		d.object(c.Thinking, &c.Thinking.Extra)
	case ContentTypeToolUse:
		c.ToolUse = &ToolUseContent{}
		d.object(c.ToolUse, &c.ToolUse.Extra)
	case ContentTypeToolResult:
		c.ToolResult = &ToolResultContent{}
		d.object(c.ToolResult, &c.ToolResult.Extra)
	default:
		return false
	}
	return true
}

func (t *TextContent) field(d *decoder, key []byte) decoding {
	if string(key) == "content" {
		return d.str(&t.Content)
	}
	return unknown
}

func (i *ImageContent) field(d *decoder, key []byte) decoding {
	return d.sourceField(key, &i.Source)
}

func (a *AudioContent) field(d *decoder, key []byte) decoding {
	return d.sourceField(key, &a.Source)
}

func (f *FileContent) field(d *decoder, key []byte) decoding {
	if string(key) == "name" {
		return d.str(&f.Name)
	}
	return d.sourceField(key, &f.Source)
}

func (t *ThinkingContent) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "content":
		return d.str(&t.Content)
	case "signature":
		return d.str(&t.Signature)
	case "redacted":
		return d.str(&t.Redacted)
	}
	return unknown
}

func (d *decoder) sourceField(key []byte, into **Source) decoding {
	if string(key) != "source" || d.r.Kind() != '{' {
		return decoding(string(key) == "source" && d.r.Null())
	}
	*into = &Source{}
	return d.inner(*into, &(*into).Extra)
}

func (s *Source) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "type":
		return d.word(&s.Type)
	case "media_type":
		return d.word(&s.MediaType)
	case "data":
		return d.str(&s.Data)
	}
	return d.blobField(key, &s.Blob, &s.Size)
}

// blobField reads a reference to a blob.
func (d *decoder) blobField(key []byte, ref *store.Ref, size *int64) decoding {
	switch string(key) {
	case "blob":
		return d.str((*string)(ref))
	case "size":
		n, ok := d.r.Int()
		*size = n
		return decoding(ok)
	}
	return unknown
}

func (t *ToolUseContent) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "id":
		return d.str(&t.ID)
	case "name":
		return d.word(&t.Name)
	case "input":
		return d.anyObject(&t.Input, &t.rawInput)
	}
	return unknown
}

func (r *ToolResultContent) field(d *decoder, key []byte) decoding {
	switch string(key) {
	case "tool_use_id":
		return d.str(&r.ToolUseID)
	case "is_error":
		v, ok := d.r.Bool()
		r.IsError = v
		return decoding(ok || d.r.Null())
	case "content":
		if d.r.Kind() != '[' {
			return d.str(&r.Content)
		}
		d.contents(&r.Parts)
		r.Content = TextOf(r.Parts)
		return known
	case "parts":
		return d.contents(&r.Parts)
	}
	return d.blobField(key, &r.Blob, &r.Size)
}
