package codex

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// eventSettings announces settings that hold from here on, such as the service tier.
const eventSettings = "thread_settings_applied"

// event reads an event, which the person saw. Most events repeat items.
func (r *reader) event(l line) error {
	v := l.payload
	kind := v.Get("type").Text()
	switch kind {
	case "token_count", "turn.completed":
		r.to.Count(kind+" event", "usage", 1)
		return r.count(v, &l)
	case "thread_rolled_back":
		r.to.Count(kind+" event", "branch", 1)
		return r.rollBack(v.Get("num_turns").Int())
	case "thread_name_updated":
		r.to.Count(kind+" event", "title", 1)
		return r.to.Begin(transcript.Conversation{ID: r.conv.ID, Title: v.Get("thread_name").Text()})
	case eventSettings:
		settings := string(v.Get("thread_settings"))
		if settings == r.settings {
			break // they are written again before each turn
		}
		r.settings = settings
		return r.custom(l, kind, "custom entry")
	case "error", "turn_aborted":
		return r.custom(l, kind, "custom entry")
	}
	r.noteFailure(v, kind)
	if r.events {
		return r.shown(l, kind)
	}
	r.to.Count(kind+" event", transcript.OnlyKept, 1)
	return nil
}

// noteFailure remembers that a call failed, for its result or in the one that is
// there.
func (r *reader) noteFailure(v loose.Value, kind string) {
	failed := false
	switch kind {
	case "exec_command_end":
		failed = v.Get("exit_code").Int() != 0
	case "patch_apply_end":
		failed = v.Get("success").Exists() && !v.Get("success").Bool()
	case "mcp_tool_call_end":
		failed = v.Has("result") && v.Get("result", "Err").Exists()
	}
	id := v.Get("call_id").Text()
	if !failed || id == "" {
		return
	}
	r.failed[id] = true
	for i := range r.queue {
		if m := r.queue[i].Entry.Message; m != nil {
			r.markFailure(m)
		}
	}
}

// rollBack goes back before the last turns of the user. Their messages
// stay as a branch.
func (r *reader) rollBack(n int) error {
	if err := r.flush(); err != nil || n <= 0 || len(r.turns) == 0 {
		return err
	}
	at := max(len(r.turns)-n, 0)
	r.current = r.turns[at].before
	r.cutPath(r.turns[at].messages)
	r.turns = r.turns[:at]
	r.model, r.effort = "", "" // they may have been set on the branch that is left
	return nil
}

// shown makes messages from events, where there are no items.
func (r *reader) shown(l line, kind string) error {
	v := l.payload
	var entries []session.Entry
	switch {
	case kind == "item_completed":
		entries = turnItem(v.Get("item"))
	case r.turned: // the newer events repeat it
	case kind == "user_message":
		entries = message(session.RoleUser, append([]session.Content{session.Text(v.Get("message").Text())}, images(v.Get("images"))...)...)
	case kind == "agent_message":
		entries = message(session.RoleAssistant, session.Text(v.Get("message").Text()))
	case kind == "agent_reasoning":
		entries = message(session.RoleAssistant, session.Thinking(v.Get("text").Text(), ""))
	case kind == "exec_command_end":
		entries = called(v.Get("call_id").Text(), "shell", only("command", v.Get("command")), blocks.Plain(v.Get("aggregated_output")), v.Get("exit_code").Int() != 0)
	case kind == "mcp_tool_call_end":
		call := v.Get("invocation")
		entries = called(v.Get("call_id").Text(), call.Get("server").Text()+"."+call.Get("tool").Text(), objectOf(call.Get("arguments")),
			blocks.Plain(v.Get("result")), v.Get("result", "Err").Exists())
	}
	if len(entries) == 0 {
		r.to.Count(kind+" event", transcript.OnlyKept, 1)
		return nil
	}
	r.to.Count(kind+" event", "message", 1)
	return r.addTexts(entries, &l)
}

func (r *reader) addTexts(entries []session.Entry, l *line) error {
	for _, e := range entries {
		if err := r.addMessage(e, l, string(l.payload)); err != nil {
			return err
		}
	}
	return nil
}

func images(v loose.Value) []session.Content {
	var list []session.Content
	for url := range v.Items() {
		list = append(list, blocks.Image(url.Text()))
	}
	return list
}

// called returns a call and its result.
func called(id, tool string, input json.RawMessage, output string, failed bool) []session.Entry {
	return append(message(session.RoleAssistant, session.ToolUseJSON(id, tool, input)),
		message(session.RoleTool, session.ToolResult(id, output, failed))...)
}

// only returns an object with one member.
func only(member string, v loose.Value) json.RawMessage {
	var o residue.Object
	o.Set(member, v.Raw())
	return o.JSON()
}
