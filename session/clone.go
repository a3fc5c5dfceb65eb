package session

import (
	"maps"
	"slices"
)

// Clone returns a copy that shares nothing with the entry that could be changed.
func (e Entry) Clone() Entry { return e.clone() }

// clone returns a copy that shares nothing the caller could change. Decoding
// gave us strings and raw bytes that nobody writes to: those are shared, except
// that the raw bytes which are visible to the caller are copied.
func (e *Entry) clone() Entry { return e.cloneInto(nil) }

// cloneInto is clone that takes the memory for a message from room, if it is not
// nil: nearly all entries are messages.
func (e *Entry) cloneInto(room *cloneRoom) Entry {
	c := *e
	c.Extra = e.Extra.clone()
	if e.Message != nil {
		p := room.next(e.Message)
		if e.ParentID != nil {
			p.parent = *e.ParentID
			c.ParentID = &p.parent
		}
		c.Message = e.Message.cloneInto(p)
		return c
	}
	if e.ParentID != nil {
		c.ParentID = shallow(e.ParentID)
	}
	switch {
	case e.ModelChange != nil:
		c.ModelChange = shallow(e.ModelChange)
		c.ModelChange.Extra = e.ModelChange.Extra.clone()
	case e.ThinkingLevel != nil:
		c.ThinkingLevel = shallow(e.ThinkingLevel)
		c.ThinkingLevel.Extra = e.ThinkingLevel.Extra.clone()
	case e.Label != nil:
		c.Label = shallow(e.Label)
		c.Label.Extra = e.Label.Extra.clone()
	case e.SessionInfo != nil:
		c.SessionInfo = shallow(e.SessionInfo)
		c.SessionInfo.Extra = e.SessionInfo.Extra.clone()
	case e.Compaction != nil:
		c.Compaction = shallow(e.Compaction)
		c.Compaction.Extra = e.Compaction.Extra.clone()
		if e.Compaction.State != nil {
			c.Compaction.State = shallow(e.Compaction.State)
			c.Compaction.State.Extra = e.Compaction.State.Extra.clone()
			c.Compaction.State.Kept = slices.Clone(e.Compaction.State.Kept)
		}
	case e.BranchSummary != nil:
		c.BranchSummary = shallow(e.BranchSummary)
		c.BranchSummary.Extra = e.BranchSummary.Extra.clone()
	case e.Custom != nil:
		c.Custom = shallow(e.Custom)
		c.Custom.Data = cloneMap(e.Custom.Data)
		c.Custom.Extra = e.Custom.Extra.clone()
	case e.Leaf != nil:
		c.Leaf = shallow(e.Leaf)
		c.Leaf.Extra = e.Leaf.Extra.clone()
	case e.ContextEdit != nil:
		c.ContextEdit = shallow(e.ContextEdit)
		c.ContextEdit.Replacement = cloneContents(e.ContextEdit.Replacement)
		c.ContextEdit.Extra = e.ContextEdit.Extra.clone()
	case e.Revert != nil:
		c.Revert = shallow(e.Revert)
		c.Revert.Extra = e.Revert.Extra.clone()
	case e.Merge != nil:
		c.Merge = shallow(e.Merge)
		c.Merge.EntryIDs = slices.Clone(e.Merge.EntryIDs)
		c.Merge.Extra = e.Merge.Extra.clone()
	}
	return c
}

// cloneRoom is memory for the clones of many entries, as sharedRoom is for decoded
// ones. Nil is one that has none.
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

// cloneInto uses the given memory, as far as it goes.
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
	c.Metadata = cloneMap(m.Metadata)
	c.Extra = m.Extra.clone()
	if m.Tokens != nil {
		c.Tokens = shallow(m.Tokens)
	}
	if m.Usage != nil {
		c.Usage = shallow(m.Usage)
		c.Usage.Extra = m.Usage.Extra.clone()
	}
	return c
}

func cloneContents(blocks []Content) []Content {
	if blocks == nil {
		return nil
	}
	c := make([]Content, len(blocks))
	for i := range blocks {
		c[i] = blocks[i].clone()
	}
	return c
}

func (c Content) clone() Content {
	c.Raw = slices.Clone(c.Raw)
	c.Extra = c.Extra.clone()
	switch {
	case c.Text != nil:
		c.Text = shallow(c.Text)
		c.Text.Extra = c.Text.Extra.clone()
	case c.Image != nil:
		c.Image = shallow(c.Image)
		c.Image.Source = c.Image.Source.clone()
		c.Image.Extra = c.Image.Extra.clone()
	case c.Audio != nil:
		c.Audio = shallow(c.Audio)
		c.Audio.Source = c.Audio.Source.clone()
		c.Audio.Extra = c.Audio.Extra.clone()
	case c.File != nil:
		c.File = shallow(c.File)
		c.File.Source = c.File.Source.clone()
		c.File.Extra = c.File.Extra.clone()
	case c.ToolUse != nil:
		c.ToolUse = shallow(c.ToolUse)
		c.ToolUse.Input = cloneMap(c.ToolUse.Input)
		c.ToolUse.Extra = c.ToolUse.Extra.clone()
	case c.ToolResult != nil:
		c.ToolResult = shallow(c.ToolResult)
		c.ToolResult.Parts = cloneContents(c.ToolResult.Parts)
		c.ToolResult.Extra = c.ToolResult.Extra.clone()
	case c.Thinking != nil:
		c.Thinking = shallow(c.Thinking)
		c.Thinking.Extra = c.Thinking.Extra.clone()
	}
	return c
}

func (s *Source) clone() *Source {
	if s == nil {
		return nil
	}
	c := *s
	c.Extra = s.Extra.clone()
	return &c
}

// cloneMap copies what encoding/json makes of an object.
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
	}
	return v
}
