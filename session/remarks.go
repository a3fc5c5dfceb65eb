package session

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
)

// The custom entries that organise a session. They apply whatever branch they are on, in the
// order of the log.
const (
	// CustomTags has the data {"tags": ["a", "b"]}, which are then all tags, or
	// {"add": ["a"], "remove": ["b"]}, which leaves other tags as they are: so
	// two programs that change tags at the same time both get what they want.
	CustomTags = "coppice.tags"
	// CustomPinned has the data {"pinned": true}. The latest counts.
	CustomPinned = "coppice.pinned"
)

// The custom entries that an import leaves in a session: see package transcript, which writes
// them. They are not part of the conversation.
const (
	// CustomImport has a piece of the file from which a session was imported,
	// compressed: in a blob that it names, or in base64.
	CustomImport = "coppice.import"
	// CustomFidelity says what the import made of the source's records.
	CustomFidelity = "coppice.fidelity"
	// CustomKeyed names the file of picoclaw from which package keyed took the messages
	// before it.
	CustomKeyed = "coppice.keyed.import"
)

// FieldKeyed is the unknown member of an entry, a payload or a block of content in which package
// keyed keeps what only it knows: of a message or a call, an object with its other members.
const FieldKeyed = "keyed"

// CustomGap takes the place of a lost entry in a copy of a session, so that the entries below
// it stay where they were.
const CustomGap = "coppice.gap"

// The custom entries in which an agent records what it does: see package agent, which writes
// and reads them. They are not part of the conversation.
const (
	// CustomAsking says that a model is asked next. The CustomRequest that names it says
	// what came of that.
	CustomAsking = "coppice.asking"
	// CustomRequest says what a model was asked, and how.
	CustomRequest = "coppice.request"
	// CustomTools has the tools that a model was offered.
	CustomTools = "coppice.tools"
	// CustomCalls says how far calls of tools have come.
	CustomCalls = "coppice.calls"
	// CustomDraft has a piece of an answer that was still arriving.
	CustomDraft = "coppice.draft"
)

// IsAside reports whether an entry is about the session rather than part of the
// conversation: a label, a name, a move of the leaf, tags and pins, what an import
// or an agent notes, and what a response cost. People are not shown these among what was
// said, and do not mean one of them when they speak of the last entry. Data of extensions
// may be part of the conversation, so it is not an aside.
func (e *Entry) IsAside() bool {
	if e.Type != TypeCustom {
		return e.Type.kind().isAside()
	}
	if e.Custom == nil {
		return false
	}
	switch e.Custom.CustomType {
	case CustomTags, CustomPinned, CustomImport, CustomFidelity, CustomUsage,
		CustomAsking, CustomRequest, CustomTools, CustomCalls, CustomDraft, CustomQueued:
		return true
	}
	return false
}

// TagChange changes some of a session's tags and leaves the others as they are.
type TagChange struct {
	Add, Remove []string // a tag in both lists is removed
	Note        string   // why, if there is more to say
	About       string   // the entry that the note is about; "" means the whole session
}

// Entry returns an entry that changes the tags.
func (c TagChange) Entry() Entry {
	data := make(map[string]any)
	for name, tags := range map[string][]string{"add": c.Add, "remove": c.Remove} {
		if list := tagList(tags); len(list) > 0 {
			data[name] = list
		}
	}
	for name, text := range map[string]string{"note": c.Note, "about": c.About} {
		if text != "" {
			data[name] = text
		}
	}
	return Custom(CustomTags, data)
}

// tagList returns tags as they are written: sorted, and each once.
func tagList(tags []string) []any {
	var clean []string
	for _, tag := range tags {
		if tag = strings.TrimSpace(tag); tag != "" {
			clean = append(clean, tag)
		}
	}
	slices.Sort(clean)
	list := []any{}
	for _, tag := range slices.Compact(clean) {
		list = append(list, tag)
	}
	return list
}

// Remarks says how a session was organised.
type Remarks struct {
	Tags   []string  // sorted
	Notes  []TagNote // with which tags were changed, the latest first
	Pinned bool      // retention leaves pinned sessions alone
}

// TagNote is why the tags of a session were changed, such as why it was rated.
type TagNote struct {
	Entry string   // that has the note
	Tags  []string // that it sets or adds
	About string   // the entry that it is about; "" means the whole session
	Text  string
}

// Remarks returns the session's tags, the notes about them, and whether it is pinned. See
// also Name and Labels.
func (s *Session) Remarks() (Remarks, error) {
	var found Remarks
	var changes []*CustomEntry // of tags, the latest first; nothing before the first counts
	tagsSet, pinSet := false, false
	for e, err := range s.customs() {
		if err != nil {
			return Remarks{}, err
		}
		switch c := e.Custom; c.CustomType {
		case CustomTags:
			if !tagsSet {
				changes = append(changes, c)
			}
			tagsSet = tagsSet || c.setsTags()
			if text := c.TagNote(); text != "" {
				about, _ := c.Data["about"].(string)
				found.Notes = append(found.Notes, TagNote{Entry: e.ID, Tags: c.Tags(), About: about, Text: text})
			}
		case CustomPinned:
			if !pinSet {
				found.Pinned, _ = c.Data["pinned"].(bool)
			}
			pinSet = true
		}
	}
	var tags TagSet
	for _, c := range slices.Backward(changes) {
		tags.Apply(c)
	}
	found.Tags = tags.Sorted()
	return found, nil
}

// customs yields the custom entries, the latest first. What cannot be read says
// nothing.
func (s *Session) customs() iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		nodes, err := s.snapshot()
		if err != nil {
			yield(nil, err)
			return
		}
		var customs []node
		for _, n := range slices.Backward(nodes) {
			if n.kind == kindCustom {
				customs = append(customs, n)
			}
		}
		slices.SortFunc(customs, func(a, b node) int { return cmp.Compare(b.pos, a.pos) }) // one may have filled a gap
		s.nearestFirst(s.context(), customs, kindCustom)(yield)
	}
}

// TagSet is a session's tags while entries of type CustomTags are applied to them
// one after the other. The zero TagSet has none.
type TagSet struct{ has map[string]bool }

// Add adds tags.
func (t *TagSet) Add(tags ...string) {
	if t.has == nil {
		t.has = make(map[string]bool)
	}
	for _, tag := range tags {
		t.has[tag] = true
	}
}

// Apply does what an entry of type CustomTags says. The cost depends on the entry, not on how
// many tags there are.
func (t *TagSet) Apply(c *CustomEntry) {
	if c.setsTags() {
		t.has = nil
	}
	t.Add(c.Tags()...)
	for _, tag := range c.strings("remove") {
		delete(t.has, tag)
	}
}

// Sorted returns the tags in order.
func (t *TagSet) Sorted() []string { return slices.Sorted(maps.Keys(t.has)) }

// setsTags reports whether the entry says which tags there are, all of them. What
// is not a list says nothing.
func (c *CustomEntry) setsTags() bool {
	_, all := c.Data["tags"].([]any)
	return all
}

// Tags returns the tags that an entry of type CustomTags sets or adds.
func (c *CustomEntry) Tags() []string { return append(c.strings("tags"), c.strings("add")...) }

// TagNote returns the note of an entry of type CustomTags, or "".
func (c *CustomEntry) TagNote() string {
	if c.CustomType != CustomTags {
		return ""
	}
	note, _ := c.Data["note"].(string)
	return note
}

// strings returns the strings of a list in the entry's data.
func (c *CustomEntry) strings(name string) []string {
	list, _ := c.Data[name].([]any)
	var found []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			found = append(found, s)
		}
	}
	return found
}
