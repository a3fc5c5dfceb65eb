package cli

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// What an entry is and says, in a word and in a line. tree, follow, context and
// the branch marks of show tell entries this way.

// kindWidth is how wide most of the words are for what an entry is.
const kindWidth = len("compaction")

// kindOf is the word for what an entry is: the role of a message, else a short
// name for its type.
func kindOf(e *session.Entry) string {
	switch e.Type {
	case session.TypeMessage:
		if e.Message.Role == "" {
			return "message"
		}
		return oneLine(e.Message.Role, 0)
	case session.TypeModelChange:
		return "model"
	case session.TypeThinkingLevel:
		return "thinking"
	case session.TypeSessionInfo:
		return "name"
	case session.TypeCompaction:
		return "compaction"
	case session.TypeBranchSummary:
		return "summary"
	case session.TypeContextEdit:
		return "edit"
	}
	return oneLine(string(e.Type), 0)
}

// kindColour is the colour of that word.
func kindColour(kind string) colour {
	switch kind {
	case session.RoleUser, session.RoleBashExecution:
		return green
	case session.RoleAssistant:
		return cyan
	case session.RoleTool:
		return yellow
	case session.RoleSystem, "compaction", "summary", "merge":
		return blue
	case "gap":
		return red
	}
	return dim
}

// gist is what an entry says, in one line of any length.
func gist(e *session.Entry) string { return gistWithin(e, 0) }

// gistWithin is gist in at most n columns; 0 stands for any number.
func gistWithin(e *session.Entry, n int) string {
	return gistNaming(e, n, func(id string) string { return oneLine(id, 0) })
}

// gistNaming is gistWithin with a way to name other entries.
func gistNaming(e *session.Entry, n int, name func(id string) string) string {
	text := wholeGist(e, n, name)
	if n > 0 {
		return oneLine(text, n)
	}
	return text
}

// wholeGist may be longer than n columns, but has no more of a long text.
func wholeGist(e *session.Entry, n int, name func(id string) string) string {
	switch {
	case e.Message != nil:
		return contentGist(e.Message.Content, n)
	case e.ModelChange != nil:
		return modelName(e.ModelChange.Provider, e.ModelChange.ModelID)
	case e.ThinkingLevel != nil:
		return oneLine(e.ThinkingLevel.ThinkingLevel, 0)
	case e.SessionInfo != nil:
		return oneLine(e.SessionInfo.Name, 0)
	case e.Compaction != nil:
		return collapsed(e.Compaction.Summary, n)
	case e.BranchSummary != nil:
		return collapsed(e.BranchSummary.Summary, n)
	case e.Custom != nil:
		return customGist(e.Custom)
	}
	return pointerGist(e, n, name)
}

// pointerGist is for entries that say something about another entry.
func pointerGist(e *session.Entry, n int, name func(id string) string) string {
	switch {
	case e.Label != nil && e.Label.Label == "":
		return "none for " + name(e.Label.TargetID)
	case e.Label != nil:
		return oneLine(e.Label.Label, 0) + " for " + name(e.Label.TargetID)
	case e.Leaf != nil && e.ParentID == nil:
		return "to the beginning"
	case e.Leaf != nil:
		return "to " + name(*e.ParentID)
	case e.ContextEdit != nil && e.ContextEdit.Replacement == nil:
		return "cleared " + name(e.ContextEdit.TargetID)
	case e.ContextEdit != nil:
		return "replaced " + name(e.ContextEdit.TargetID) + " by: " + contentGist(e.ContextEdit.Replacement, n)
	case e.Revert != nil:
		return "of " + name(e.Revert.TargetID)
	case e.Merge != nil:
		return mergeGist(e.Merge, name)
	case e.Type == session.TypeGap:
		return "(missing or damaged)"
	}
	return ""
}

func mergeGist(m *session.MergeEntry, name func(id string) string) string {
	text := "from " + name(m.FromID)
	if n := len(m.EntryIDs); n > 0 {
		text += ", " + counted(n, "entry", "entries")
	}
	if m.Summary != "" {
		text += ": " + oneLine(m.Summary, 0)
	}
	return text
}

func customGist(c *session.CustomEntry) string {
	var text strings.Builder
	text.WriteString(c.CustomType)
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		fmt.Fprintf(&text, " %s=%v", key, c.Data[key])
	}
	return oneLine(text.String(), 0)
}

// contentGist has no more of a text than is more than n columns wide.
func contentGist(blocks []session.Content, n int) string {
	var parts []string
	for i := range blocks {
		if part := blockGist(&blocks[i], n); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

// blockGist leaves thinking out where there is anything else to tell.
func blockGist(c *session.Content, n int) string {
	switch {
	case c.Text != nil:
		return collapsed(c.Text.Content, n)
	case c.Thinking != nil:
		return ""
	case c.ToolUse != nil:
		return "→ " + callGist(c.ToolUse)
	case c.ToolResult != nil:
		text := collapsed(c.ToolResult.Content, n)
		if text == "" {
			text = contentGist(c.ToolResult.Parts, n)
		}
		if c.ToolResult.IsError {
			text = "error: " + text
		}
		return text
	}
	return mediaGist(c)
}

// mediaGist tells an image, a recording or a file by its type and size.
func mediaGist(c *session.Content) string {
	name, source := string(c.Type), (*session.Source)(nil)
	switch {
	case c.Image != nil:
		source = c.Image.Source
	case c.Audio != nil:
		source = c.Audio.Source
	case c.File != nil:
		source = c.File.Source
	}
	if source != nil && source.MediaType != "" {
		name = source.MediaType
	}
	if c.File != nil && c.File.Name != "" {
		name = c.File.Name
	}
	switch {
	case source == nil:
	case source.Type == "url":
		name += " " + source.Data
	default:
		name += " " + humanBytes(sourceSize(source))
	}
	return "[" + oneLine(name, 0) + "]"
}

// sourceSize is how many bytes a source has, decoded.
func sourceSize(s *session.Source) int64 {
	if s.Data == "" {
		return s.Size
	}
	padding := len(s.Data) - len(strings.TrimRight(s.Data, "="))
	return int64(base64.StdEncoding.DecodedLen(len(s.Data)) - padding)
}

// mainArguments are the arguments that say most about a call, and need no name.
var mainArguments = []string{"command", "file_path", "path", "pattern", "query", "url"}

// callGist tells a tool call as a person would: the tool, what it works on, and
// the other arguments.
func callGist(t *session.ToolUseContent) string {
	parts := []string{oneLine(t.Name, 0)}
	main := ""
	for _, key := range mainArguments {
		if text, ok := t.Input[key].(string); ok {
			main = key
			parts = append(parts, oneLine(text, 0))
			break
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.Input)) {
		if key != main {
			parts = append(parts, oneLine(fmt.Sprintf("%s=%v", key, t.Input[key]), 0))
		}
	}
	return strings.Join(parts, " ")
}

// modelName is provider and model in one word.
func modelName(provider, model string) string {
	if provider == "" {
		return oneLine(model, 0)
	}
	return oneLine(provider+"/"+model, 0)
}

// counted is a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}

// thousands writes a number with separators: 12,345.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}
