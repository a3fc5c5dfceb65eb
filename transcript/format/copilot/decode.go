package copilot

import (
	"cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// decode turns an event into an entry, and says what it became.
func (t *thread) decode(kind string, data loose.Value) (session.Entry, string) {
	switch kind {
	case "user.message":
		return message(session.RoleUser, userMetadata(data), session.Text(data.Get("content").Text())), "message"
	case "system.message":
		return message(session.RoleSystem, nil, session.Text(data.Get("content").Text())), "message"
	case "system.notification":
		return message(session.RoleUser, map[string]any{session.MetaInjected: true}, session.Text(data.Get("content").Text())), "message"
	case "assistant.message":
		return t.answer(data), "message"
	case "assistant.reasoning":
		e := message(session.RoleAssistant, nil, session.Thinking(data.Get("content").Text(), ""))
		e.Message.Model = t.model
		return e, "message"
	case "tool.execution_complete":
		return message(session.RoleTool, nil, result(data)), "message"
	case "session.start", "session.resume":
		return t.changeModel(data.Get("selectedModel").Text())
	case "session.model_change":
		return t.changeModel(data.Get("newModel").Text())
	case "session.compaction_complete":
		if summary := data.Get("summaryContent").Text(); summary != "" && data.Get("success").Bool() {
			return session.Compaction(summary, "", data.Get("preCompactionTokens").Int()), "compaction"
		}
	case "session.error", "session.warning", "session.info", "session.truncation", "session.shutdown", "abort", "subagent.started", "subagent.completed", "subagent.failed":
		return session.Custom(name+"."+kind, data.Map()), "custom entry"
	}
	return session.Entry{}, transcript.OnlyKept
}

func message(role session.MessageRole, metadata map[string]any, blocks ...session.Content) session.Entry {
	return session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: role, Content: blocks, Metadata: metadata}}
}

// userMetadata names the files attached to a prompt; their content is not in the log.
func userMetadata(data loose.Value) map[string]any {
	var files []any
	for a := range data.Get("attachments").Items() {
		if path := a.Get("path").Text(); path != "" {
			files = append(files, path)
		}
	}
	if files == nil {
		return nil
	}
	return map[string]any{"attachments": files}
}

// answer reads a reply. It gives only the output tokens of the cost.
func (t *thread) answer(data loose.Value) session.Entry {
	e := message(session.RoleAssistant, nil)
	m := e.Message
	if text, opaque := data.Get("reasoningText").Text(), data.Get("reasoningOpaque").Text(); text != "" || opaque != "" {
		m.Content = append(m.Content, session.Thinking(text, opaque))
	}
	m.Content = append(m.Content, blocks.Text(data.Get("content").Text())...)
	m.Content = append(m.Content, blocks.Calls(data.Get("toolRequests"), "toolCallId", "arguments")...)
	m.Model = cmp.Or(data.Get("model").Text(), t.model)
	if output := data.Get("outputTokens").Int(); output > 0 {
		m.Usage = &session.Usage{Output: output}
	}
	m.ResponseID = cmp.Or(data.Get("apiCallId").Text(), data.Get("requestId").Text(), data.Get("messageId").Text())
	return e
}

func result(data loose.Value) session.Content {
	text := cmp.Or(data.Get("result", "content").Text(), data.Get("error", "message").Text())
	return session.ToolResult(data.Get("toolCallId").Text(), text, !data.Get("success").Bool())
}

// changeModel says which model answers from here on, if the log does. The provider is always
// Copilot: the log does not name the model's own.
func (t *thread) changeModel(model string) (session.Entry, string) {
	if model == "" || model == t.model {
		return session.Entry{}, transcript.OnlyKept
	}
	t.model = model
	return session.ModelChange("github-copilot", model), "model change"
}
