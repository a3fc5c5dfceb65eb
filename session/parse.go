package session

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/coppice-dev/coppice/store"
)

// ParseEntry reads an entry in the form of the log that a person or a program wants to append.
// Reading a log keeps what it does not understand, because a log must never lose anything.
// ParseEntry is stricter: a role that is a number, or a label of nothing, is a mistake, and
// its errors say so. They match ErrInvalid.
func ParseEntry(text []byte) (Entry, error) {
	e, err := parseEntry(text)
	if err != nil {
		return Entry{}, invalid{err}
	}
	return e, nil
}

// Invalidf returns an error that matches ErrInvalid and has only the given words:
// "invalid argument" in front of a sentence that says why adds nothing.
func Invalidf(format string, args ...any) error { return invalid{fmt.Errorf(format, args...)} }

// invalid is what Invalidf returns.
type invalid struct{ error }

func (e invalid) Unwrap() []error { return []error{ErrInvalid, e.error} }

func parseEntry(text []byte) (Entry, error) {
	var e Entry
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return e, syntaxError(text, err)
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, syntaxError(text, err)
	}
	if err := checkRepeats(text); err != nil {
		return e, err
	}
	if e.Type == "" {
		return e, errors.New(`"type" is missing or not a string; such as "message"`)
	}
	names := []string{"id", "parent_id", "timestamp"}
	if e.Type.IsKnown() {
		names = append(names, string(e.Type))
	}
	if name := wrongKind(e.Extra, names...); name == "timestamp" {
		return e, errors.New(`"timestamp" is not a time as in RFC 3339, such as "2026-03-01T12:00:00Z"`)
	} else if name != "" {
		return e, fmt.Errorf("%q has the wrong kind of value", name)
	}
	for _, f := range e.Extra {
		if EntryType(f.Name).IsKnown() && e.Type.IsKnown() {
			return e, fmt.Errorf("an entry of type %q also has the payload of %q: append one entry for each", e.Type, f.Name)
		}
	}
	if err := e.checkLeading(members); err != nil {
		return e, err
	}
	k, _ := e.payload()
	return e, e.check(kindOf(members[string(e.Type)]) == '{' || kindOf(members[string(kinds[k].older)]) == '{')
}

// CheckEntry checks an entry as ParseEntry does, for a program that has made it itself.
func CheckEntry(e *Entry) error {
	if err := e.check(true); err != nil {
		return invalid{err}
	}
	return nil
}

// check makes sure that an entry can be appended, and by others than the engine. nested says
// whether its payload is a member of its own.
func (e *Entry) check(nested bool) error {
	if err := e.checkOwner(); err != nil {
		return err
	}
	if err := e.checkKinds(nested); err != nil {
		return err
	}
	if _, p := e.payload(); p != nil {
		if err := p.checkMembers(); err != nil {
			return err
		}
	}
	return checkForm(e, false)
}

// checkLeading makes sure that what the members say that all entries have is what
// will be written.
func (e *Entry) checkLeading(members map[string]json.RawMessage) error {
	if _, ok := members["parent_id"]; !ok && e.Type == TypeLeaf {
		return errors.New(`a leaf needs "parent_id", the entry that the leaf moves to; null moves it before the first entry`)
	}
	if _, ok := members["timestamp"]; ok && e.Timestamp.IsZero() { // which would be filled in
		return errors.New(`"timestamp" is in the year 1: leave it out, or give the real time`)
	}
	return nil
}

// checkKinds makes sure that the payload's members have the right kinds of values,
// wherever they are.
func (e *Entry) checkKinds(nested bool) error {
	v := reflect.ValueOf(e).Elem()
	for i := range v.NumField() {
		payload, name := v.Field(i), memberName(v.Type().Field(i))
		if payload.Kind() != reflect.Pointer || payload.IsNil() || payload.Elem().Kind() != reflect.Struct {
			continue
		}
		if !nested {
			if err := checkNames(payload.Elem().Type(), e.Extra, name); err != nil {
				return err
			}
		}
		return checkKinds(payload, name)
	}
	return nil
}

// syntaxError says where JSON is wrong.
func syntaxError(text []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return errors.New("it is empty; a JSON object is needed")
	case errors.As(err, &syntax):
		before := text[:min(int(syntax.Offset), len(text))]
		line := 1 + bytes.Count(before, []byte("\n"))
		column := len(before) - bytes.LastIndexByte(before, '\n') - 1
		return fmt.Errorf("not JSON at line %d, column %d: %w", line, column, err)
	case errors.As(err, &kind):
		return fmt.Errorf("a JSON %s; a JSON object is needed", kind.Value)
	}
	return err
}

// wrongKind returns the first of the names that was kept as unknown, which
// happens when its value is not of the kind that it must be.
func wrongKind(extra Fields, names ...string) string {
	for _, f := range extra {
		if slices.Contains(names, f.Name) {
			return f.Name
		}
	}
	return ""
}

// required is a member that an entry must have.
type required struct{ name, value string }

func missing(members ...required) error {
	for _, m := range members {
		if m.value == "" {
			return fmt.Errorf("%q is missing, empty or not a string", m.name)
		}
	}
	return nil
}

// See payload for what checkMembers does.

func (m *MessageEntry) checkMembers() error {
	if err := missing(required{"message.role", m.Role}); err != nil {
		return err
	}
	if err := CheckRole(m.Role); err != nil {
		return err
	}
	if len(m.Content) == 0 || len(m.Content) == 1 && m.Content[0].Text != nil && m.Content[0].Text.Content == "" {
		return errors.New(`"message.content" is missing or empty; a list of blocks or a text is needed`)
	}
	calls := make(map[string]bool)
	for i := range m.Content {
		c := m.Content[i].ToolUse
		if c != nil && calls[c.ID] {
			return fmt.Errorf("message.content[%d]: the call id %q occurs twice: each call needs its own", i, c.ID)
		}
		if c != nil {
			calls[c.ID] = true
		}
	}
	return blocksHaveMembers("message.content", m.Content)
}

func (m *ModelChangeEntry) checkMembers() error {
	return missing(required{"model_change.model_id", m.ModelID})
}

func (t *ThinkingLevelEntry) checkMembers() error {
	return missing(required{"thinking_level.thinking_level", t.ThinkingLevel})
}

func (l *LabelEntry) checkMembers() error {
	return missing(required{"label.target_id", l.TargetID})
}

func (s *SessionInfoEntry) checkMembers() error { return nil } // an empty name takes the name away

func (c *CompactionEntry) checkMembers() error {
	return missing(required{"compaction.summary", c.Summary})
}

func (b *BranchSummaryEntry) checkMembers() error {
	return missing(required{"branch_summary.summary", b.Summary})
}

func (c *CustomEntry) checkMembers() error {
	return missing(required{"custom.custom_type", c.CustomType})
}

func (l *LeafEntry) checkMembers() error { return nil }

func (e *ContextEditEntry) checkMembers() error {
	if err := missing(required{"context_edit.target_id", e.TargetID}); err != nil {
		return err
	}
	return blocksHaveMembers("context_edit.replacement", e.Replacement)
}

func (r *RevertEntry) checkMembers() error {
	return missing(required{"revert.target_id", r.TargetID})
}

func (m *MergeEntry) checkMembers() error {
	return missing(required{"merge.from_id", m.FromID})
}

func (c *ContinuesEntry) checkMembers() error {
	return missing(required{"continues.session", c.Session})
}

func blocksHaveMembers(where string, blocks []Content) error {
	for i := range blocks {
		if err := blocks[i].checkMembers(); err != nil {
			return fmt.Errorf("%s[%d]: %w", where, i, err)
		}
	}
	return nil
}

func (c *Content) checkMembers() error {
	for _, f := range c.Extra {
		if ContentType(f.Name).isKnown() {
			return fmt.Errorf("a block of type %q also has a %q: give each a block of its own", c.Type, f.Name)
		}
	}
	switch {
	case c.Raw != nil && c.Type == "":
		return errors.New(`a block needs a "type", such as "text"`)
	case c.Raw != nil && c.Type.isKnown():
		return fmt.Errorf("a block of type %q needs an object %q", c.Type, c.Type)
	}
	if _, p := c.payload(); p != nil {
		return p.checkMembers()
	}
	return nil
}

func (t *TextContent) checkMembers() error { return nil }

func (i *ImageContent) checkMembers() error { return i.Source.check() }

func (a *AudioContent) checkMembers() error { return a.Source.check() }

func (f *FileContent) checkMembers() error { return f.Source.check() }

func (t *ToolUseContent) checkMembers() error {
	return missing(required{"tool_use.id", t.ID}, required{"tool_use.name", t.Name})
}

func (r *ToolResultContent) checkMembers() error {
	if err := missing(required{"tool_result.tool_use_id", r.ToolUseID}); err != nil {
		return err
	}
	if err := checkNoBlob(r.Blob); err != nil {
		return err
	}
	return blocksHaveMembers("tool_result.parts", r.Parts)
}

func (t *ThinkingContent) checkMembers() error { return nil }

// checkNoBlob refuses a reference to a blob: blobs are the store's, which makes one
// of whatever is large.
func checkNoBlob(ref store.Ref) error {
	if ref == "" {
		return nil
	}
	return errors.New(`"blob" cannot be set: give the content itself`)
}

// check makes sure that a source has something to send.
func (s *Source) check() error {
	switch {
	case s == nil:
		return errors.New(`"source" is missing`)
	case s.Blob != "":
		return checkNoBlob(s.Blob)
	case s.Data == "":
		return errors.New(`"source.data" is missing, empty or not a string`)
	case s.Type == "url":
		return nil
	case s.Type != "base64":
		return fmt.Errorf(`"source.type" is %q: it must be "base64" or "url"`, s.Type)
	}
	if _, err := base64.StdEncoding.DecodeString(s.Data); err != nil {
		return fmt.Errorf(`"source.data" is not base64: %w`, err)
	}
	return nil
}
