package render

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/typed"
	"github.com/coppice-dev/coppice/session"
)

// KindWidth is the width of most words that [Kind] returns.
const KindWidth = len("compaction")

// Kind returns the word for the kind of an entry: the role of a message, or a short name for its
// type.
func Kind(e *session.Entry) string {
	switch e.Type {
	case session.TypeMessage:
		if e.Message == nil || e.Message.Role == "" {
			return "message"
		}
		if e.Message.Role == session.RoleBashExecution {
			return "command"
		}
		if _, isNote := e.NoteBy(); isNote {
			return "note"
		}
		return OneLine(e.Message.Role, 0)
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
	return OneLine(string(e.Type), 0)
}

// Gist returns what an entry says, on one line of at most width columns; 0 means no limit.
func Gist(e *session.Entry, width int) string {
	return GistNaming(e, width, func(id string) string { return OneLine(id, 0) })
}

// GistNaming is [Gist] with a way to name the other entries that one refers to.
func GistNaming(e *session.Entry, width int, name func(id string) string) string {
	text := wholeGist(e, width, name)
	if width > 0 {
		return OneLine(text, width)
	}
	return text
}

// wholeGist may return more than n columns, but does not look at all of a long text.
func wholeGist(e *session.Entry, n int, name func(id string) string) string {
	if text, ok := e.NoteText(); ok {
		by, _ := e.NoteBy()
		return OneLine(by, 0) + ": " + collapsed(text, n)
	}
	switch {
	case e.Message != nil:
		return messageGist(e.Message, n)
	case e.ModelChange != nil:
		return ModelName(e.ModelChange.Provider, e.ModelChange.ModelID)
	case e.ThinkingLevel != nil:
		return OneLine(e.ThinkingLevel.ThinkingLevel, 0)
	case e.SessionInfo != nil:
		return OneLine(e.SessionInfo.Name, 0)
	case e.Compaction != nil:
		return collapsed(e.Compaction.Summary, n)
	case e.BranchSummary != nil:
		return collapsed(e.BranchSummary.Summary, n)
	case e.Custom != nil:
		return customGist(e.Custom)
	}
	return pointerGist(e, n, name)
}

// messageGist ends with why the turn ended, if it did not end normally.
func messageGist(m *session.MessageEntry, n int) string {
	return joined(contentGist(m.Content, n), inBrackets(StopWords(m)))
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return "[" + text + "]"
}

// joined puts a space between the texts that are not empty.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), " ")
}

// pointerGist describes an entry that is about another entry.
func pointerGist(e *session.Entry, n int, name func(id string) string) string {
	switch {
	case e.Label != nil && e.Label.Label == "":
		return "none for " + name(e.Label.TargetID)
	case e.Label != nil:
		return OneLine(e.Label.Label, 0) + " for " + name(e.Label.TargetID)
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
	case e.Continues != nil:
		return continuesGist(e.Continues)
	case e.Type == session.TypeGap:
		return "(missing or damaged)"
	}
	return ""
}

// continuesGist says which session this one continues. A count of 0 may also mean unknown.
func continuesGist(c *session.ContinuesEntry) string {
	text := "session " + OneLine(c.Session, 0)
	if c.Messages > 0 {
		text += " (" + Counted(c.Messages, "message", "messages") + " before)"
	}
	return text
}

func mergeGist(m *session.MergeEntry, name func(id string) string) string {
	text := "from " + name(m.FromID)
	if m.FromSession != "" {
		text += " of session " + OneLine(m.FromSession, 0)
	}
	if n := len(m.EntryIDs); n > 0 {
		text += ", " + Counted(n, "entry", "entries")
	}
	if m.Summary != "" {
		text += ": " + OneLine(m.Summary, 0)
	}
	return text
}

// tellingKeys are the members of a custom entry's data that say most, such as why a turn was
// aborted.
var tellingKeys = []string{"reason", "message", "error", "text", "content"}

func customGist(c *session.CustomEntry) string {
	parts := []string{OneLine(c.CustomType, 0)}
	var rest []string
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		if slices.Contains(tellingKeys, key) {
			parts = append(parts, argument(key, c.Data[key]))
		} else {
			rest = append(rest, argument(key, c.Data[key]))
		}
	}
	return strings.Join(append(parts, rest...), " ")
}

// contentGist looks at no more of a text than n columns.
func contentGist(blocks []session.Content, n int) string {
	var parts []string
	for i := range blocks {
		if part := blockGist(&blocks[i], n); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

// blockGist leaves out thinking, because what follows from it says more.
func blockGist(c *session.Content, n int) string {
	switch {
	case c.Text != nil:
		return textGist(c.Text.Content, n)
	case c.Thinking != nil:
		return ""
	case c.ToolUse != nil:
		return "→ " + CallGist(c.ToolUse)
	case c.ToolResult != nil:
		text := cmp.Or(collapsed(c.ToolResult.Content, n), contentGist(c.ToolResult.Parts, n))
		if c.ToolResult.IsError {
			text = "error: " + text
		}
		return text
	}
	return MediaGist(c)
}

// textGist shows a command as it was typed, and its output without the wrapping.
func textGist(text string, n int) string {
	if !typed.IsWrapped(text) {
		return collapsed(text, n)
	}
	var parts []string
	for _, p := range Passages(text) {
		parts = append(parts, collapsed(p.Text, n))
	}
	return strings.Join(parts, " ")
}

// Passages splits the text of a message into what a person typed as a command, what
// the command printed, and the rest. Nearly all text is one passage of prose. What a
// command printed has no escape sequences, and is never empty.
func Passages(text string) []typed.Part {
	parts := typed.Read(text)
	for i := range parts {
		if parts[i].Kind == typed.Output {
			parts[i].Text = plain.Strip(parts[i].Text)
		}
	}
	if len(parts) == 0 {
		return []typed.Part{{Kind: typed.Output, Text: "(no output)"}}
	}
	return parts
}

// MediaGist describes an image, a recording or a file by its name or type and its
// size, in brackets; a block of an unknown type by its members.
func MediaGist(c *session.Content) string {
	if c.Raw != nil {
		return unknownGist(c)
	}
	name, source := string(c.Type), c.Source()
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
		name += " " + Bytes(SourceSize(source))
	}
	return "[" + OneLine(name, 0) + "]"
}

// unknownGist shows the beginning of a block that this version does not know.
func unknownGist(c *session.Content) string {
	const maxWidth = 160
	parts := []string{string(c.Type)}
	var members map[string]any
	if json.Unmarshal(c.Raw, &members) == nil {
		for _, key := range slices.Sorted(maps.Keys(members)) {
			if key != "type" {
				parts = append(parts, argument(key, members[key]))
			}
		}
	}
	return "[" + OneLine(strings.Join(parts, " "), maxWidth) + "]"
}

// SourceSize is how many bytes a source has, decoded.
func SourceSize(s *session.Source) int64 {
	if s.Data == "" {
		return s.Size
	}
	padding := len(s.Data) - len(strings.TrimRight(s.Data, "="))
	return int64(base64.StdEncoding.DecodedLen(len(s.Data)) - padding)
}

// ModelName is provider and model in one word.
func ModelName(provider, model string) string {
	if provider == "" {
		return OneLine(model, 0)
	}
	return OneLine(provider+"/"+model, 0)
}

// MessageFacts returns what is known about a message in addition to its content: the model,
// the cost, and why it ended, if not normally.
func MessageFacts(m *session.MessageEntry) []string {
	facts := []string{OneLine(m.Model, 0)}
	if m.Usage != nil && m.Usage.Output > 0 {
		facts = append(facts, Counted(m.Usage.Output, "token", "tokens"))
	} else if m.Tokens != nil {
		facts = append(facts, Counted(*m.Tokens, "token", "tokens"))
	}
	if m.Usage != nil && m.Usage.CostMicroUSD > 0 {
		facts = append(facts, Money(m.Usage.CostMicroUSD))
	}
	return slices.DeleteFunc(facts, func(fact string) bool { return fact == "" })
}

// StopWords says why a turn ended early, such as "aborted" or "failed: overloaded"; "" if it
// did not.
func StopWords(m *session.MessageEntry) string {
	words, failure := "", Failure(m)
	switch strings.ToLower(m.StopReason) {
	case "", "end_turn", "tool_use", "stop_sequence", "pause_turn": // the normal reasons, as importers write them
	case "stop", "tool-calls", "tool_calls", "tooluse", "function_call", "completed", "complete", "finished", "unknown", "other":
	case "error", "failed":
		words = "failed"
	case "aborted", "cancelled", "canceled", "interrupted":
		words = "aborted"
	case "max_tokens", "length", "max_output_tokens":
		words = "cut off at the token limit"
	case "refusal", "content_filter", "content-filter", "safety":
		words = "refused"
	case session.StopDraft:
		words = "not complete"
	case session.StopQueued:
		words = "queued"
	default:
		words = "stopped: " + OneLine(m.StopReason, 0)
	}
	if failure != "" {
		words = cmp.Or(words, "failed") + ": " + failure
	}
	return words
}

// Failure is the error that a turn ended with, on one line; "" if there is none.
func Failure(m *session.MessageEntry) string { return OneLine(errorText(m.Metadata["error"], 0), 0) }

// errorText finds the text in an error, which programs wrap in objects.
func errorText(v any, depth int) string {
	const maxDepth = 4
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		for _, key := range []string{"message", "data", "error"} {
			if text := errorText(v[key], depth+1); text != "" && depth < maxDepth {
				return text
			}
		}
		name, _ := v["name"].(string)
		return name
	case nil, json.RawMessage:
		return ""
	}
	return fmt.Sprint(v)
}

// SubagentKey returns the key of the session of a subagent whose answer is a message, if the
// message names it, or "". key is that of the session with the message: both were imported
// from the same program.
func SubagentKey(key string, m *session.MessageEntry) string {
	program, _, ok := strings.Cut(key, ":")
	agent, isText := m.Metadata["subagent"].(string)
	if !ok || !isText || agent == "" {
		return ""
	}
	return program + ":" + agent
}
