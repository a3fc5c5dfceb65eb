package codex

import (
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// turnItem turns an item as it is shown into messages: in item_completed events (UserMessage,
// CommandExecution) and in the output of "codex exec --json" (agent_message,
// command_execution), which differ in little but the names.
func turnItem(v loose.Value) []session.Entry {
	id := v.Get("id").Text()
	failed := v.Get("status").Text() == "failed" || v.Get("status").Text() == "declined"
	switch strings.ToLower(strings.ReplaceAll(v.Get("type").Text(), "_", "")) {
	case "usermessage":
		return message(session.RoleUser, textBlocks(v.Get("content"))...)
	case "agentmessage":
		if text := v.Get("text"); text.IsString() {
			return message(session.RoleAssistant, session.Text(text.Text()))
		}
		return message(session.RoleAssistant, textBlocks(v.Get("content"))...)
	case "reasoning":
		return message(session.RoleAssistant, session.Thinking(reasoningText(v), ""))
	case "commandexecution":
		exit := v.Get("exit_code")
		return called(id, "shell", only("command", v.Get("command")), blocks.Plain(v.Get("aggregated_output")), failed || exit.Int() != 0)
	case "filechange":
		return called(id, "apply_patch", only("changes", v.Get("changes")), v.Get("status").Text(), failed)
	case "mcptoolcall":
		output := v.Get("result")
		if !output.Exists() {
			output = v.Get("error")
		}
		return called(id, v.Get("server").Text()+"."+v.Get("tool").Text(), objectOf(v.Get("arguments")), blocks.Plain(output), failed || v.Has("error"))
	case "websearch":
		return called(id, "web_search", only("query", v.Get("query")), "", failed)
	}
	return nil
}

func reasoningText(v loose.Value) string {
	if text := v.Get("text"); text.IsString() {
		return text.Text()
	}
	var texts []string
	for text := range v.Get("summary_text").Items() {
		texts = append(texts, text.Text())
	}
	return strings.Join(texts, "\n\n")
}

// stream reads a line of the output of "codex exec --json".
func (r *reader) stream(l line) error {
	switch l.kind {
	case "turn.completed":
		r.to.Count(l.kind+" line", "usage", 1)
		return r.count(l.payload, &l)
	case "turn.failed":
		return r.custom(l, "error", "custom entry")
	case "item.completed":
		item := l.payload.Get("item")
		if entries := turnItem(item); entries != nil {
			r.to.Count(item.Get("type").Text()+" item", "message", 1)
			return r.addTexts(entries, &l)
		}
		kind := item.Get("type").Text()
		return r.custom(line{kind: l.kind, payload: item, time: l.time, from: l.from}, kind, "custom entry")
	}
	r.to.Count(l.kind+" line", transcript.OnlyKept, 1)
	return nil
}
