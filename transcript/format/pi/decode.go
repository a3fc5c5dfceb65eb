package pi

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// pi's entry types that have another name in Coppice.
const (
	typeThinking      = "thinking_level_change"
	typeCustomMessage = "custom_message"
)

// pi's roles that have another name in Coppice.
const (
	roleToolResult = "toolResult"
	oldCustomRole  = "hookMessage" // what version 2 calls a custom message
)

// foreign is the prefix of the custom type of an entry that only pi has.
const foreign = "pi."

// foreignCustom is the prefix of the custom type of an entry to which pi gave a type that only
// Coppice itself may write, such as one that an export has left there.
const foreignCustom = foreign + "custom."

// hiddenBash is the custom type of a command whose output the user kept from the
// model: as a message, Coppice would send it.
const hiddenBash = foreign + "hidden_bash_execution"

// decodeEntry turns a line into an entry, depending on its type.
func decodeEntry(v loose.Value, kind, firstKept string) session.Entry {
	e := session.Entry{Type: session.EntryType(kind), Timestamp: v.Get("timestamp").Time(time.UTC)}
	text := func(name string) string { return v.Get(name).Text() }
	switch kind {
	case string(session.TypeMessage):
		decodeMessageEntry(&e, v.Get("message"))
	case typeCustomMessage:
		e.Type = session.TypeMessage
		e.Message = &session.MessageEntry{Role: session.RoleCustom, Content: decodeBlocks(v.Get("content"))}
	case string(session.TypeModelChange):
		e.ModelChange = &session.ModelChangeEntry{Provider: text("provider"), ModelID: text("modelId")}
	case typeThinking:
		e.Type = session.TypeThinkingLevel
		e.ThinkingLevel = &session.ThinkingLevelEntry{ThinkingLevel: text("thinkingLevel")}
	case string(session.TypeCompaction):
		e.Compaction = &session.CompactionEntry{
			Summary: text("summary"), FirstKeptEntryID: firstKept, TokensBefore: v.Get("tokensBefore").Int(),
		}
	case string(session.TypeBranchSummary):
		e.BranchSummary = &session.BranchSummaryEntry{Summary: text("summary"), FromID: text("fromId")}
	case string(session.TypeLabel):
		e.Label = &session.LabelEntry{TargetID: text("targetId"), Label: text("label")}
	case string(session.TypeSessionInfo):
		e.SessionInfo = &session.SessionInfoEntry{Name: text("name")}
	case string(session.TypeContextEdit):
		e.ContextEdit = &session.ContextEditEntry{TargetID: text("targetId")}
		if r := v.Get("replacement"); r.Exists() {
			e.ContextEdit.Replacement = decodeBlocks(r.Get("content"))
		}
	case string(session.TypeCustom):
		e.Custom = &session.CustomEntry{CustomType: text("customType"), Data: v.Get("data").Map()}
		if session.IsReserved(e.Custom.CustomType) {
			e.Custom.CustomType = foreignCustom + e.Custom.CustomType
		}
	default:
		e.Type = session.TypeCustom
		e.Custom = &session.CustomEntry{CustomType: foreign + kind, Data: v.Rest("type", "id", "parentId", "timestamp")}
	}
	return e
}

func decodeMessageEntry(e *session.Entry, v loose.Value) {
	role := v.Get("role").Text()
	if role == session.RoleBashExecution && v.Get("excludeFromContext").Bool() {
		e.Type = session.TypeCustom
		e.Custom = &session.CustomEntry{CustomType: hiddenBash, Data: v.Map()}
		return
	}
	m := &session.MessageEntry{Role: role}
	e.Message = m
	switch role {
	case session.RoleAssistant:
		m.Content = decodeBlocks(v.Get("content"))
		m.Model, m.Provider = v.Get("model").Text(), v.Get("provider").Text()
		m.ResponseID = v.Get("responseId").Text()
		m.StopReason = decodeStop(v.Get("stopReason").Text())
		m.Usage = decodeUsage(v.Get("usage"))
		if failed := v.Get("errorMessage").Text(); failed != "" {
			m.Metadata = map[string]any{errorKey: failed}
		}
	case roleToolResult:
		m.Role = session.RoleTool
		m.Content = []session.Content{decodeResult(v)}
		m.Usage = decodeUsage(v.Get("usage"))
	case session.RoleBashExecution:
		m.Content = []session.Content{session.Text(bashPrompt + v.Get("command").Text()), session.Text(v.Get("output").Text())}
	case session.RoleBranchSummary, session.RoleCompactionSummary:
		m.Content = []session.Content{session.Text(v.Get("summary").Text())}
	case oldCustomRole:
		m.Role = session.RoleCustom
		m.Content = decodeBlocks(v.Get("content"))
	default:
		m.Content = decodeBlocks(v.Get("content"))
	}
}

// errorKey is the member of a message's metadata with the error that ended its turn.
const errorKey = "error"

// bashPrompt begins the text of a command that the user ran.
const bashPrompt = "$ "

func decodeUsage(v loose.Value) *session.Usage {
	u := provider.PiUsage(v)
	if u != nil {
		u.Reasoning = v.Get("reasoning").Int()
	}
	return u
}

// stops are pi's names of why a model stopped, and Coppice's. The others are the
// same in both.
var stops = [][2]string{
	{"stop", provider.StopEndTurn},
	{"length", provider.StopMaxTokens},
	{"toolUse", provider.StopToolUse},
}

func decodeStop(reason string) string {
	for _, s := range stops {
		if s[0] == reason {
			return s[1]
		}
	}
	return reason
}

// decodeBlocks reads a message's content: a text, or a list of blocks.
func decodeBlocks(v loose.Value) []session.Content {
	if v.IsString() {
		return []session.Content{session.Text(v.Text())}
	}
	blocks := []session.Content{}
	for block := range v.Items() {
		blocks = append(blocks, decodeBlock(block))
	}
	return blocks
}

func decodeBlock(v loose.Value) session.Content {
	if v.IsString() {
		return session.Text(v.Text())
	}
	switch kind := v.Get("type").Text(); kind {
	case "text":
		return session.Text(v.Get("text").Text())
	case "thinking":
		thinking := &session.ThinkingContent{Content: v.Get("thinking").Text(), Signature: v.Get("thinkingSignature").Text()}
		if v.Get("redacted").Bool() {
			thinking.Signature, thinking.Redacted = "", thinking.Signature
		}
		return session.Content{Type: session.ContentTypeThinking, Thinking: thinking}
	case "toolCall":
		return session.ToolUseJSON(v.Get("id").Text(), v.Get("name").Text(), v.Get("arguments").Raw())
	case "image":
		return session.Image(v.Get("mimeType").Text(), v.Get("data").Text())
	default:
		return session.Content{Type: session.ContentType(kind), Raw: json.RawMessage(v)}
	}
}

// decodeResult reads a tool's answer. A single text block becomes text; anything more becomes
// parts.
func decodeResult(v loose.Value) session.Content {
	result := session.ToolResult(v.Get("toolCallId").Text(), "", v.Get("isError").Bool())
	parts := decodeBlocks(v.Get("content"))
	var text strings.Builder
	for _, p := range parts {
		if p.Text != nil {
			text.WriteString(p.Text.Content)
		}
	}
	result.ToolResult.Content = text.String()
	if len(parts) > 1 || len(parts) == 1 && result.ToolResult.Content == "" {
		result.ToolResult.Parts = parts
	}
	return result
}
