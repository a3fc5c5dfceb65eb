package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// The library keeps what it does not understand, because a log must never lose
// anything. What a person types is another matter: a role that is a number, or a
// label of nothing, is a mistake, and is said to be one before it is written.

// parseEntry reads an entry that a person gave.
func parseEntry(text []byte) (session.Entry, error) {
	var e session.Entry
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return e, syntaxError(text, err)
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, syntaxError(text, err)
	}
	if e.Type == "" {
		return e, errors.New(`"type" is missing or not a string; such as "message"`)
	}
	if e.Type == session.TypeSession || e.Type == session.TypeGap {
		return e, fmt.Errorf("an entry cannot have the type %q", e.Type)
	}
	names := []string{"id", "parent_id", "timestamp"}
	if isKnownEntry(e.Type) {
		names = append(names, string(e.Type))
	}
	if name := wrongKind(e.Extra, names...); name != "" {
		return e, fmt.Errorf("%q has the wrong kind of value", name)
	}
	return e, checkPayload(&e)
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
func wrongKind(extra session.Fields, names ...string) string {
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

func checkPayload(e *session.Entry) error {
	switch {
	case e.Message != nil:
		return checkMessage(e.Message)
	case e.ModelChange != nil:
		return missing(required{"model_change.model_id", e.ModelChange.ModelID})
	case e.ThinkingLevel != nil:
		return missing(required{"thinking_level.thinking_level", e.ThinkingLevel.ThinkingLevel})
	case e.Label != nil:
		return missing(required{"label.target_id", e.Label.TargetID})
	case e.Compaction != nil:
		return missing(required{"compaction.summary", e.Compaction.Summary})
	case e.BranchSummary != nil:
		return missing(required{"branch_summary.summary", e.BranchSummary.Summary})
	case e.Custom != nil:
		return missing(required{"custom.custom_type", e.Custom.CustomType})
	case e.ContextEdit != nil:
		if err := missing(required{"context_edit.target_id", e.ContextEdit.TargetID}); err != nil {
			return err
		}
		return checkBlocks("context_edit.replacement", e.ContextEdit.Replacement)
	case e.Revert != nil:
		return missing(required{"revert.target_id", e.Revert.TargetID})
	case e.Merge != nil:
		return missing(required{"merge.from_id", e.Merge.FromID})
	}
	return nil
}

func checkMessage(m *session.MessageEntry) error {
	if err := missing(required{"message.role", m.Role}); err != nil {
		return err
	}
	name := wrongKind(m.Extra, "content", "model", "provider", "category", "tokens", "usage", "stop_reason", "response_id", "metadata")
	if name != "" {
		return fmt.Errorf("%q has the wrong kind of value", "message."+name)
	}
	if len(m.Content) == 0 {
		return errors.New(`"message.content" is missing or empty; a list of blocks or a text is needed`)
	}
	return checkBlocks("message.content", m.Content)
}

func checkBlocks(where string, blocks []session.Content) error {
	for i := range blocks {
		if err := checkBlock(&blocks[i]); err != nil {
			return fmt.Errorf("%s[%d]: %w", where, i, err)
		}
	}
	return nil
}

func checkBlock(c *session.Content) error {
	switch {
	case c.Raw != nil:
		var head struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(c.Raw, &head) != nil || head.Type == "" {
			return errors.New(`a block needs a "type", such as "text"`)
		}
		if isKnownBlock(head.Type) {
			return fmt.Errorf("a block of type %q needs an object %q", head.Type, head.Type)
		}
	case c.Text != nil:
		if wrongKind(c.Text.Extra, "content") != "" {
			return errors.New(`"text.content" is not a string`)
		}
	case c.ToolUse != nil:
		return missing(required{"tool_use.id", c.ToolUse.ID}, required{"tool_use.name", c.ToolUse.Name})
	case c.ToolResult != nil:
		return missing(required{"tool_result.tool_use_id", c.ToolResult.ToolUseID})
	}
	return nil
}

func isKnownEntry(name session.EntryType) bool {
	switch name {
	case session.TypeMessage, session.TypeModelChange, session.TypeThinkingLevel, session.TypeLabel, session.TypeSessionInfo,
		session.TypeCompaction, session.TypeBranchSummary, session.TypeCustom, session.TypeLeaf, session.TypeContextEdit,
		session.TypeRevert, session.TypeMerge:
		return true
	}
	return false
}

func isKnownBlock(name string) bool {
	switch session.ContentType(name) {
	case session.ContentTypeText, session.ContentTypeImage, session.ContentTypeToolUse, session.ContentTypeToolResult,
		session.ContentTypeThinking, session.ContentTypeAudio, session.ContentTypeFile:
		return true
	}
	return false
}

// checkPlace makes sure that an entry fits where it will stand: its parent is
// the leaf, and what it refers to exists.
func checkPlace(s *session.Session, e *session.Entry) error {
	leaf := s.LeafID()
	if e.ParentID != nil && e.Type != session.TypeLeaf && *e.ParentID != leaf {
		return usageError{fmt.Errorf("parent_id is %q, but the leaf is %q; leave it out, or go there first with coppice branch", *e.ParentID, leaf)}
	}
	for _, id := range refersTo(e) {
		if _, err := s.Entry(id); err != nil {
			return err
		}
	}
	if e.Compaction == nil {
		return nil
	}
	return checkCompaction(s, e.Compaction)
}

// refersTo returns the ids of the entries that an entry speaks of.
func refersTo(e *session.Entry) []string {
	switch {
	case e.Label != nil:
		return []string{e.Label.TargetID}
	case e.ContextEdit != nil:
		return []string{e.ContextEdit.TargetID}
	case e.Revert != nil:
		return []string{e.Revert.TargetID}
	case e.Merge != nil:
		return append([]string{e.Merge.FromID}, e.Merge.EntryIDs...)
	case e.Leaf != nil && e.ParentID != nil:
		return []string{*e.ParentID}
	}
	return nil
}

func checkCompaction(s *session.Session, c *session.CompactionEntry) error {
	if c.FirstKeptEntryID == "" {
		return nil
	}
	path, err := pathTo(s, s.LeafID())
	if err != nil {
		return err
	}
	if err := session.CheckCut(path, c.FirstKeptEntryID); err != nil {
		return usageError{errors.New(strings.TrimSpace(err.Error()))}
	}
	return nil
}
