package home

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// shortened returns an entry with at most limit bytes of text, and whether it had more. Images and
// files keep only their sizes. The content of the entry that is given stays as it is.
func shortened(e session.Entry, limit int) (_ session.Entry, isCut bool) {
	s := shortening{room: limit}
	switch {
	case e.Message != nil:
		m := *e.Message
		m.Content, m.Metadata, m.Extra, e.Message = s.blocks(m.Content), s.object(m.Metadata), s.fields(m.Extra), &m
	case e.Compaction != nil:
		c := *e.Compaction
		c.Summary, e.Compaction = s.text(c.Summary), &c
	case e.BranchSummary != nil:
		b := *e.BranchSummary
		b.Summary, e.BranchSummary = s.text(b.Summary), &b
	case e.Merge != nil:
		m := *e.Merge
		m.Summary, e.Merge = s.text(m.Summary), &m
	case e.Custom != nil:
		c := *e.Custom
		c.Data, e.Custom = s.object(c.Data), &c
	case e.ContextEdit != nil && e.ContextEdit.Replacement != nil:
		c := *e.ContextEdit
		c.Replacement, e.ContextEdit = s.blocks(c.Replacement), &c
	}
	return e, s.isCut
}

// shortening cuts texts until the room for them is used up.
type shortening struct {
	room  int
	isCut bool
}

func (s *shortening) text(text string) string {
	if len(text) > s.room {
		s.isCut = true
		text = text[:s.room]
		for cut := 0; cut < utf8.UTFMax && !utf8.ValidString(text[max(len(text)-utf8.UTFMax, 0):]) && len(text) > 0; cut++ {
			text = text[:len(text)-1]
		}
		text = strings.ToValidUTF8(text, "")
	}
	s.room -= len(text)
	return text
}

func (s *shortening) blocks(blocks []session.Content) []session.Content {
	blocks = slices.Clone(blocks)
	for i := range blocks {
		s.block(&blocks[i])
	}
	return blocks
}

func (s *shortening) block(c *session.Content) {
	switch {
	case c.Text != nil:
		t := *c.Text
		t.Content, c.Text = s.text(t.Content), &t
	case c.Thinking != nil:
		t := *c.Thinking
		t.Content, t.Signature, t.Redacted, c.Thinking = s.text(t.Content), "", "", &t // those are for the provider
	case c.ToolUse != nil:
		c.ToolUse = &session.ToolUseContent{ID: c.ToolUse.ID, Name: c.ToolUse.Name, Input: s.object(c.ToolUse.Input)}
	case c.ToolResult != nil:
		t := *c.ToolResult
		t.Content, t.Parts, c.ToolResult = s.text(t.Content), s.blocks(t.Parts), &t
	case c.Image != nil:
		c.Image = &session.ImageContent{Source: sizeOnly(c.Image.Source)}
	case c.Audio != nil:
		c.Audio = &session.AudioContent{Source: sizeOnly(c.Audio.Source)}
	case c.File != nil:
		c.File = &session.FileContent{Name: c.File.Name, Source: sizeOnly(c.File.Source)}
	case len(c.Raw) > s.room:
		s.isCut = true
		c.Raw, _ = json.Marshal(map[string]string{"type": string(c.Type)}) // strings always can be
	default:
		s.room -= len(c.Raw)
	}
	c.Extra = s.fields(c.Extra)
}

// fields leaves out members that this version does not know if there is no room for them.
func (s *shortening) fields(fields session.Fields) session.Fields {
	size := 0
	for i := range fields {
		size += len(fields[i].Name) + len(fields[i].Value)
	}
	if size > s.room {
		s.isCut = true
		return nil
	}
	s.room -= size
	return fields
}

// sizeOnly returns a source without its content. An address on the web is no content.
func sizeOnly(source *session.Source) *session.Source {
	if source == nil || source.Type == "url" {
		return source
	}
	return &session.Source{Type: source.Type, MediaType: source.MediaType, Blob: source.Blob, Size: render.SourceSize(source)}
}

// object cuts the texts in an object, in the order of their names. What comes after the room is
// used up stays, as an empty text: a reader still sees which members there are.
func (s *shortening) object(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	short := make(map[string]any, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		short[key] = s.value(object[key])
	}
	return short
}

func (s *shortening) value(v any) any {
	switch v := v.(type) {
	case string:
		return s.text(v)
	case map[string]any:
		return s.object(v)
	case []any:
		short := make([]any, 0, len(v))
		for i := range v {
			if s.room <= 0 {
				s.isCut = true
				break
			}
			short = append(short, s.value(v[i]))
		}
		return short
	case json.RawMessage: // a large one, which was not decoded
		return s.text(string(v))
	}
	return v
}
