package session

import (
	"bytes"

	"github.com/coppice-dev/coppice/store"
)

// MaxBlocks is the most blocks that the content of an entry can have and, counted apart, the
// most parts that the results in it can have. A longer list is read as an unknown member: it
// is kept as it is, and its blocks are not visible. A block takes two bytes in a line and a
// hundred times as much in memory, so a line must not decide how many there are.
const MaxBlocks = 100_000

// contents reads the content of an entry: a list of blocks, or a bare string, which is
// one block of text.
func (d *decoder) contents(into *[]Content) decoding {
	d.listed, d.parts = 0, 0
	return d.list(into, &d.listed)
}

// list reads a list of blocks and counts them.
func (d *decoder) list(into *[]Content, count *int) decoding {
	kind := d.r.Kind()
	if kind != '"' && kind != '[' {
		return decoding(d.r.Null())
	}
	blocks := d.blocks
	if d.blocks = nil; blocks == nil {
		blocks = []Content{}
	}
	if kind == '"' {
		*into = append(blocks, Content{})
		d.content(&(*into)[0])
		return known
	}
	for more := d.r.Open('['); more; more = d.r.More(']') {
		if *count++; *count > MaxBlocks {
			return unknown
		}
		blocks = append(blocks, Content{})
		d.content(&blocks[len(blocks)-1])
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

// content reads a block into an empty one; a bare string is one of text.
func (d *decoder) content(c *Content) {
	switch d.r.Kind() {
	case '{':
		text, ok := d.r.Framed(`{"type":"text","text":{"content":`, `}}`, 2) // as we write it
		if !ok {
			d.block(c, false)
			return
		}
		c.Type, c.Text = ContentTypeText, d.newText()
		c.Text.Content = d.keep(text)
	case '"':
		c.Type, c.Text = ContentTypeText, d.newText()
		d.str(&c.Text.Content)
	default:
		c.Raw = bytes.Clone(d.r.Raw())
	}
}

// block reads a block. One whose type is unknown, or whose payload is not what
// its type promises, is kept whole. The payload is read on the way if the type is
// known by then, unless late: then it is read when all members are known.
func (d *decoder) block(c *Content, late bool) {
	begin := d.r.Mark()
	var as ContentType // the type that the payload was read as
	var fields Fields  // the other members; slices of the line
	for more := d.r.Open('{'); more; more = d.r.More('}') {
		key := d.r.Key()
		mark := d.r.Mark()
		if string(key) == "type" {
			if d.word((*string)(&c.Type)) == known {
				continue
			}
		} else if as == "" && !late && string(key) == string(c.Type) && !fields.has(string(c.Type)) && d.payload(c) {
			as = c.Type
			continue
		}
		d.r.Rewind(mark)
		fields = append(fields, Field{Name: string(key), Value: d.r.Raw()})
	}
	if as != "" && as != c.Type { // a second type, after the payload of the first
		*c = Content{}
		d.r.Rewind(begin)
		d.block(c, true)
		return
	}
	if as == "" {
		payload, rest, _ := fields.take(string(c.Type))
		if !d.payloadOf(payload, c) {
			*c = Content{Type: c.Type, Raw: bytes.Clone(d.r.Since(begin))}
			return
		}
		fields = rest
	}
	c.Extra = fields.clone()
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
	k := c.Type.kind()
	switch k {
	case blockOther:
		return false
	case blockText:
		c.Text = d.newText()
		d.object(c.Text, &c.Text.Extra)
	default:
		p := blockKinds[k].set(c)
		d.object(p, p.extra())
	}
	return true
}

func (t *TextContent) extra() *Fields { return &t.Extra }

func (t *TextContent) field(d *decoder, key []byte) decoding {
	if string(key) == "content" {
		return d.str(&t.Content)
	}
	return unknown
}

func (i *ImageContent) extra() *Fields { return &i.Extra }

func (i *ImageContent) field(d *decoder, key []byte) decoding {
	return d.sourceField(key, &i.Source)
}

func (a *AudioContent) extra() *Fields { return &a.Extra }

func (a *AudioContent) field(d *decoder, key []byte) decoding {
	return d.sourceField(key, &a.Source)
}

func (f *FileContent) extra() *Fields { return &f.Extra }

func (f *FileContent) field(d *decoder, key []byte) decoding {
	if string(key) == "name" {
		return d.str(&f.Name)
	}
	return d.sourceField(key, &f.Source)
}

func (t *ThinkingContent) extra() *Fields { return &t.Extra }

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

func (t *ToolUseContent) extra() *Fields { return &t.Extra }

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

func (r *ToolResultContent) extra() *Fields { return &r.Extra }

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
		if d.list(&r.Parts, &d.parts) == unknown {
			return unknown
		}
		r.Content = TextOf(r.Parts)
		return known
	case "parts":
		return d.list(&r.Parts, &d.parts)
	}
	return d.blobField(key, &r.Blob, &r.Size)
}
