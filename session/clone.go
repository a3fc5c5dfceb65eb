package session

import (
	"encoding/json"
	"maps"
	"slices"
)

// Clone returns a copy that shares nothing changeable with the entry.
func (e Entry) Clone() Entry { return e.clone() }

// clone returns a copy that shares nothing that the caller could change. Strings, and raw
// bytes that the caller cannot see, are shared: they are never written to. Raw bytes that
// the caller can see are copied.
func (e *Entry) clone() Entry { return e.cloneInto(nil) }

// cloneInto is clone with memory for a message from room, if that is not nil: nearly all
// entries are messages.
func (e *Entry) cloneInto(room *cloneRoom) Entry {
	if e.Message == nil {
		return e.cloneRare()
	}
	c := *e
	c.Extra = e.Extra.clone()
	p := room.next(e.Message)
	if e.ParentID != nil {
		p.parent = *e.ParentID
		c.ParentID = &p.parent
	}
	c.Message = e.Message.cloneInto(p)
	return c
}

// cloneRare is clone for everything but messages. (It is a separate function because what
// the table is asked about escapes to the heap.)
func (e *Entry) cloneRare() Entry {
	c := *e
	c.Extra = e.Extra.clone()
	if e.ParentID != nil {
		c.ParentID = shallow(e.ParentID)
	}
	if k, p := e.payload(); p != nil {
		own(kinds[k].copy(&c))
	}
	return c
}

// cloneRoom is memory for the clones of many entries, as sharedRoom is for decoded ones. A
// nil cloneRoom has none.
type cloneRoom struct {
	parts []messageParts // those that were not taken yet
}

// next returns the memory for a message.
func (r *cloneRoom) next(m *MessageEntry) *messageParts {
	if r == nil || len(m.Content) != 1 || m.Content[0].Text == nil || len(m.Content[0].Text.Content) > maxSharedText {
		return &messageParts{}
	}
	if len(r.parts) == 0 {
		r.parts = make([]messageParts, roomMessages)
	}
	p := &r.parts[0]
	r.parts = r.parts[1:]
	return p
}

func shallow[T any](p *T) *T {
	v := *p
	return &v
}

func (f Fields) clone() Fields {
	if f == nil {
		return nil
	}
	c := make(Fields, len(f))
	for i := range f {
		c[i] = Field{Name: f[i].Name, Value: slices.Clone(f[i].Value)}
	}
	return c
}

func (m *MessageEntry) clone() *MessageEntry { return m.cloneInto(&messageParts{}) }

// cloneInto uses the given memory as far as it goes.
func (m *MessageEntry) cloneInto(p *messageParts) *MessageEntry {
	c := &p.message
	*c = *m
	if len(m.Content) == 1 && m.Content[0].Text != nil {
		p.blocks[0], p.text = m.Content[0], *m.Content[0].Text
		p.blocks[0].Text = &p.text
		p.blocks[0].Raw = slices.Clone(m.Content[0].Raw)
		p.blocks[0].Extra, p.text.Extra = m.Content[0].Extra.clone(), p.text.Extra.clone()
		c.Content = p.blocks[:]
	} else {
		c.Content = cloneContents(m.Content)
	}
	c.detachRest()
	c.Extra = m.Extra.clone()
	return c
}

func (m *MessageEntry) detach() {
	m.Content = cloneContents(m.Content)
	m.detachRest()
}

// detachRest is detach for all but the content.
func (m *MessageEntry) detachRest() {
	m.Metadata = cloneMap(m.Metadata)
	if m.Tokens != nil {
		m.Tokens = shallow(m.Tokens)
	}
	if m.Usage != nil {
		m.Usage = shallow(m.Usage)
		m.Usage.Extra = m.Usage.Extra.clone()
	}
}

func (m *ModelChangeEntry) detach() {}

func (t *ThinkingLevelEntry) detach() {}

func (l *LabelEntry) detach() {}

func (s *SessionInfoEntry) detach() {}

func (c *CompactionEntry) detach() {
	if c.State != nil {
		c.State = shallow(c.State)
		c.State.Extra = c.State.Extra.clone()
		c.State.Kept = slices.Clone(c.State.Kept)
	}
}

func (b *BranchSummaryEntry) detach() {}

func (c *CustomEntry) detach() { c.Data = cloneMap(c.Data) }

func (l *LeafEntry) detach() {}

func (e *ContextEditEntry) detach() { e.Replacement = cloneContents(e.Replacement) }

func (r *RevertEntry) detach() {}

func (m *MergeEntry) detach() { m.EntryIDs = slices.Clone(m.EntryIDs) }

func (c *ContinuesEntry) detach() {}

func cloneContents(blocks []Content) []Content {
	c := slices.Clone(blocks)
	for i := range c {
		c[i].own()
	}
	return c
}

// own makes a copied block share nothing with the original that a caller could change.
func (c *Content) own() {
	c.Raw = slices.Clone(c.Raw)
	c.Extra = c.Extra.clone()
	if k, p := c.payload(); p != nil {
		own(blockKinds[k].copy(c))
	}
}

func (t *TextContent) detach() {}

func (i *ImageContent) detach() { i.Source = i.Source.clone() }

func (a *AudioContent) detach() { a.Source = a.Source.clone() }

func (f *FileContent) detach() { f.Source = f.Source.clone() }

func (t *ToolUseContent) detach() { t.Input = cloneMap(t.Input) }

func (r *ToolResultContent) detach() { r.Parts = cloneContents(r.Parts) }

func (t *ThinkingContent) detach() {}

func (s *Source) clone() *Source {
	if s == nil {
		return nil
	}
	c := *s
	c.Extra = s.Extra.clone()
	return &c
}

// cloneMap copies an object as encoding/json decodes it.
func cloneMap(m map[string]any) map[string]any {
	c := maps.Clone(m)
	for key, value := range c {
		c[key] = cloneAny(value)
	}
	return c
}

func cloneAny(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return cloneMap(v)
	case []any:
		c := make([]any, len(v))
		for i := range v {
			c[i] = cloneAny(v[i])
		}
		return c
	case json.RawMessage:
		return slices.Clone(v)
	}
	return v
}
