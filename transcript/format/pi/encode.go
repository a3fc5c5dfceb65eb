package pi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// isoTime is how JavaScript writes a time.
const isoTime = "2006-01-02T15:04:05.000Z"

// encodeEntry turns an entry into a line, without the residue. tools are the names of the
// tools by the ids of their calls.
func encodeEntry(e session.Entry, tools map[string]string) json.RawMessage {
	var o residue.Object
	o.Set("type", string(e.Type))
	o.Set("id", e.ID)
	o.Set("parentId", e.ParentID)
	o.Set("timestamp", e.Timestamp.UTC().Format(isoTime))
	switch {
	case e.Message != nil:
		encodeMessageEntry(&o, &e, tools)
	case e.ModelChange != nil:
		o.Set("provider", e.ModelChange.Provider)
		o.Set("modelId", e.ModelChange.ModelID)
	case e.ThinkingLevel != nil:
		o.Set("type", typeThinking)
		o.Set("thinkingLevel", e.ThinkingLevel.ThinkingLevel)
	case e.Compaction != nil:
		o.Set("summary", e.Compaction.Summary)
		o.Set("firstKeptEntryId", e.Compaction.FirstKeptEntryID)
		o.Set("tokensBefore", e.Compaction.TokensBefore)
	case e.BranchSummary != nil:
		o.Set("fromId", e.BranchSummary.FromID)
		o.Set("summary", e.BranchSummary.Summary)
	case e.Label != nil:
		o.Set("targetId", e.Label.TargetID)
		o.SetText("label", e.Label.Label)
	case e.SessionInfo != nil:
		o.Set("name", e.SessionInfo.Name)
	case e.ContextEdit != nil:
		o.Set("targetId", e.ContextEdit.TargetID)
		o.Set("replacement", encodeReplacement(e.ContextEdit.Replacement))
	case e.Custom != nil:
		encodeCustom(&o, &e)
	}
	return o.JSON()
}

func encodeReplacement(blocks []session.Content) json.RawMessage {
	if blocks == nil {
		return json.RawMessage("null")
	}
	var o residue.Object
	o.Set("content", encodeBlocks(blocks))
	return o.JSON()
}

// encodeCustom writes an extension's entry, or one of pi's own that Coppice does
// not know.
func encodeCustom(o *residue.Object, e *session.Entry) {
	data := dataOf(e)
	kind, own := strings.CutPrefix(e.Custom.CustomType, foreign)
	switch {
	case e.Custom.CustomType == hiddenBash:
		o.Set("type", string(session.TypeMessage))
		o.Set("message", data.Raw())
	case own && kind != "" && !strings.Contains(kind, "."):
		o.Set("type", kind)
		for member, value := range data.Members() {
			o.Set(member, value.Raw())
		}
	default:
		o.Set("customType", strings.TrimPrefix(e.Custom.CustomType, foreignCustom))
		if data.Exists() {
			o.Set("data", data.Raw())
		}
	}
}

// dataOf returns the data of a custom entry with every digit that it had when it
// was read.
func dataOf(e *session.Entry) loose.Value {
	text, err := json.Marshal(session.Entry{Type: e.Type, Custom: e.Custom})
	if err != nil {
		return nil
	}
	return loose.Value(text).Get("custom", "data")
}

// encodeMessageEntry writes a message. A message of an extension is an entry of another type.
func encodeMessageEntry(o *residue.Object, e *session.Entry, tools map[string]string) {
	if e.Message.Role != session.RoleCustom {
		o.Set("message", encodeMessage(e, tools))
		return
	}
	o.Set("type", typeCustomMessage)
	o.Set("customType", "coppice")
	o.Set("content", encodeBlocks(e.Message.Content))
	o.Set("display", true)
}

func encodeMessage(e *session.Entry, tools map[string]string) json.RawMessage {
	var o residue.Object
	m := e.Message
	o.Set("role", m.Role)
	switch m.Role {
	case session.RoleAssistant:
		encodeAssistant(&o, m)
	case session.RoleTool:
		encodeResult(&o, m, tools)
	case session.RoleBashExecution:
		encodeBash(&o, m)
	case session.RoleBranchSummary, session.RoleCompactionSummary:
		o.Set("summary", session.TextOf(m.Content))
	case session.RoleSystem:
		o.Set("content", session.TextOf(m.Content))
	default:
		o.Set("content", encodeBlocks(m.Content))
	}
	o.Set("timestamp", e.Timestamp.UnixMilli())
	return o.JSON()
}

// encodeAssistant writes the members that pi requires in a reply: it reads each reply's usage
// without checking that there is one.
func encodeAssistant(o *residue.Object, m *session.MessageEntry) {
	o.Set("content", encodeBlocks(m.Content))
	o.Set("api", apiOf(m.Provider))
	o.Set("provider", m.Provider)
	o.Set("model", m.Model)
	u := m.Usage
	if u == nil {
		u = &session.Usage{}
	}
	o.Set("usage", encodeUsage(u))
	o.Set("stopReason", encodeStop(m))
	o.SetText("responseId", m.ResponseID)
	failed, _ := m.Metadata[errorKey].(string)
	o.SetText("errorMessage", failed)
}

// apiOf returns the wire format that pi speaks with a provider.
func apiOf(provider string) string {
	switch {
	case strings.HasPrefix(provider, "anthropic"):
		return "anthropic-messages"
	case strings.HasPrefix(provider, "google"):
		return "google-generative-ai"
	case strings.HasPrefix(provider, "openai"):
		return "openai-responses"
	}
	return "openai-completions"
}

func encodeUsage(u *session.Usage) json.RawMessage {
	var o, cost residue.Object
	o.Set("input", u.Input)
	o.Set("output", u.Output)
	o.Set("cacheRead", u.CacheRead)
	o.Set("cacheWrite", u.CacheWrite)
	if u.Reasoning > 0 {
		o.Set("reasoning", u.Reasoning)
	}
	o.Set("totalTokens", u.Context())
	for _, part := range []string{"input", "output", "cacheRead", "cacheWrite"} {
		cost.Set(part, 0)
	}
	cost.Set("total", json.Number(dollars(u.CostMicroUSD)))
	o.Set("cost", cost.JSON())
	return o.JSON()
}

// dollars writes an amount without the noise of binary fractions.
func dollars(micro int) string {
	text := fmt.Sprintf("%d.%06d", micro/1e6, micro%1e6)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// encodeStop returns one of the reasons that pi knows.
func encodeStop(m *session.MessageEntry) string {
	for _, s := range stops {
		if s[1] == m.StopReason {
			return s[0]
		}
	}
	switch m.StopReason {
	case "pending", "error", "aborted", "deferred":
		return m.StopReason
	}
	for _, c := range m.Content {
		if c.ToolUse != nil {
			return "toolUse"
		}
	}
	return "stop"
}

func encodeResult(o *residue.Object, m *session.MessageEntry, tools map[string]string) {
	o.Set("role", roleToolResult)
	result := &session.ToolResultContent{}
	for _, c := range m.Content {
		if c.ToolResult != nil {
			result = c.ToolResult
			break
		}
	}
	parts := result.Parts
	if len(parts) == 0 && result.Content != "" {
		parts = []session.Content{session.Text(result.Content)}
	}
	o.Set("toolCallId", result.ToolUseID)
	o.Set("toolName", tools[result.ToolUseID])
	o.Set("content", encodeBlocks(parts))
	o.Set("isError", result.IsError)
	if m.Usage != nil {
		o.Set("usage", encodeUsage(m.Usage))
	}
}

func encodeBash(o *residue.Object, m *session.MessageEntry) {
	var command, output string
	for i, c := range m.Content {
		switch {
		case c.Text == nil:
		case i == 0:
			command = strings.TrimPrefix(c.Text.Content, bashPrompt)
		default:
			output += c.Text.Content
		}
	}
	o.Set("command", command)
	o.Set("output", output)
	o.Set("cancelled", false)
	o.Set("truncated", false)
}

func encodeBlocks(blocks []session.Content) json.RawMessage {
	var list []json.RawMessage
	for i := range blocks {
		if b := encodeBlock(&blocks[i]); b != nil {
			list = append(list, b)
		}
	}
	return residue.List(list)
}

// encodeBlock writes a block. A block that pi has no type for becomes a text that says what
// is missing; unfit describes it for the user.
func encodeBlock(c *session.Content) json.RawMessage {
	var o residue.Object
	switch {
	case c.Text != nil:
		o.Set("type", "text")
		o.Set("text", c.Text.Content)
	case c.Thinking != nil:
		o.Set("type", "thinking")
		o.Set("thinking", c.Thinking.Content)
		o.SetText("thinkingSignature", c.Thinking.Signature)
		if c.Thinking.Redacted != "" {
			o.Set("thinkingSignature", c.Thinking.Redacted)
			o.Set("redacted", true)
		}
	case c.ToolUse != nil:
		input, err := c.ToolUse.InputJSON()
		if err != nil || c.ToolUse.Input == nil {
			input = json.RawMessage("{}")
		}
		o.Set("type", "toolCall")
		o.Set("id", c.ToolUse.ID)
		o.Set("name", c.ToolUse.Name)
		o.Set("arguments", input)
	case c.Image != nil && c.Image.Source != nil && c.Image.Source.Type == "base64":
		o.Set("type", "image")
		o.Set("data", c.Image.Source.Data)
		o.Set("mimeType", c.Image.Source.MediaType)
	case c.Raw != nil:
		return c.Raw
	default:
		o.Set("type", "text")
		o.Set("text", describeUnfit(c))
	}
	return o.JSON()
}

// describeUnfit describes a block that pi cannot hold, and is "" for one that it can.
func describeUnfit(c *session.Content) string {
	source := c.Source()
	if c.Image == nil && c.Audio == nil && c.File == nil || c.Image != nil && source != nil && source.Type == "base64" {
		return ""
	}
	what := string(c.Type)
	if source != nil && source.Type == "url" {
		what += " " + source.Data
	} else if source != nil {
		what += " " + source.MediaType
	}
	return "[" + strings.TrimSpace(what) + "]"
}

// created returns the time at which a conversation began.
func created(h session.Header, now time.Time) time.Time {
	return cmp.Or(h.CreatedAt, now).UTC()
}
