package codex

import (
	"encoding/json"
	"strings"

	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// items returns entries as the items of the API, in the forms that Codex reads.
func (w *writer) items(entries []session.Entry) ([]json.RawMessage, error) {
	messages, err := openai.EncodeResponsesVerbatim(entries)
	if err != nil {
		return nil, err
	}
	for _, n := range messages.Notes {
		what := "content"
		if strings.HasPrefix(n.What, "thinking") { // the name that compare looks for
			what = "thinking"
		}
		w.Lose(n.Entry, what, n.What)
	}
	id := ""
	if len(entries) > 0 {
		id = entries[0].ID
	}
	var items []json.RawMessage
	for _, f := range messages.Fields {
		v := loose.Value(f.Value)
		switch {
		case f.Name == "instructions":
			items = append(items, textItem("developer", v.Text()))
		case v.IsString():
			items = append(items, textItem(session.RoleUser, v.Text()))
		default:
			for item := range v.Items() {
				if raw := w.accepted(id, item); raw != nil {
					items = append(items, raw)
				}
			}
		}
	}
	return items, nil
}

func textItem(role, text string) json.RawMessage {
	return messageItem(role, []json.RawMessage{textPart("input_text", text)})
}

func messageItem(role string, parts []json.RawMessage) json.RawMessage {
	var o residue.Object
	o.Set("type", "message")
	o.Set("role", role)
	o.Set("content", residue.List(parts))
	return o.JSON()
}

func textPart(kind, text string) json.RawMessage {
	var part residue.Object
	part.Set("type", kind)
	part.Set("text", text)
	return part.JSON()
}

// known are the items that Codex sends to the model when it resumes a thread. It skips
// others, and lines with a member that it does not expect.
var known = map[string]bool{
	"message": true, "agent_message": true, "reasoning": true, "local_shell_call": true, "function_call": true, "function_call_output": true,
	"tool_search_call": true, "tool_search_output": true, "custom_tool_call": true, "custom_tool_call_output": true, "web_search_call": true,
	"image_generation_call": true, "compaction": true, "context_compaction": true,
}

// accepted returns an item in a form that Codex reads, or nil if there is none.
func (w *writer) accepted(id string, item loose.Value) json.RawMessage {
	o := residue.Object(item.Except())
	switch kind := item.Get("type").Text(); {
	case kind == "message" || kind == "" && item.Has("role"):
		return w.acceptedMessage(id, item)
	case kind == "local_shell_call_output": // of an older Codex
		o.Set("type", "function_call_output")
		item = loose.Value(o.JSON())
		fallthrough
	case kind == "function_call_output" || kind == "custom_tool_call_output":
		if output := item.Get("output"); !output.IsString() {
			o.Set("output", w.acceptedOutput(id, output))
		}
	case kind == "reasoning":
		if !item.Get("summary").IsArray() {
			o.Set("summary", residue.List(nil))
		}
	case !known[kind]:
		w.Lose(id, "content", "Codex has no "+kind)
		return nil
	}
	return o.JSON()
}

// acceptedMessage returns a message. Codex does not send those of the role system.
func (w *writer) acceptedMessage(id string, item loose.Value) json.RawMessage {
	role, text := item.Get("role").Text(), "input_text"
	switch role {
	case session.RoleSystem:
		role = "developer"
	case session.RoleAssistant:
		text = "output_text"
	}
	parts := w.acceptedParts(id, text, item.Get("content"))
	if len(parts) == 0 {
		return nil
	}
	o := residue.Object(item.Except("type", "role", "content"))
	if phase := item.Get("phase").Text(); phase != "commentary" && phase != "final_answer" {
		o.Remove("phase")
	}
	head := residue.Object{}
	head.Set("type", "message")
	head.Set("role", role)
	head.Set("content", residue.List(parts))
	return append(head, o...).JSON()
}

// acceptedParts returns the parts of a message or of a result. The kind is that of a
// text that is not in a part of its own.
func (w *writer) acceptedParts(id, kind string, content loose.Value) []json.RawMessage {
	if content.IsString() {
		return []json.RawMessage{textPart(kind, content.Text())}
	}
	var parts []json.RawMessage
	for part := range content.Items() {
		switch what := part.Get("type").Text(); {
		case what == "input_text" || what == "output_text", what == "input_image" && part.Get("image_url").IsString(),
			what == "input_audio" && part.Get("audio_url").IsString(), what == "encrypted_content":
			parts = append(parts, part.Raw())
		case part.Get("text").IsString():
			parts = append(parts, textPart(kind, part.Get("text").Text()))
		case part.Get("refusal").IsString():
			parts = append(parts, textPart(kind, part.Get("refusal").Text()))
		default:
			w.Lose(id, "content", "Codex has no "+what+" in a message")
		}
	}
	return parts
}

// acceptedOutput returns a result that is not a text.
func (w *writer) acceptedOutput(id string, output loose.Value) any {
	if output.IsArray() {
		return residue.List(w.acceptedParts(id, "input_text", output))
	}
	return blocks.Plain(output)
}
