package codex

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// item reads an item of a request or of an answer.
func (r *reader) item(l line) error {
	v := l.payload
	kind := v.Get("type").Text()
	switch kind {
	case "ghost_snapshot":
		r.to.Count("ghost snapshot", transcript.OnlyKept, 1)
		return nil
	case "token_count":
		r.to.Count("token count", "usage", 1)
		return r.addUsage(usageOf(v), &l)
	case "error":
		return r.custom(l, "error", "custom entry")
	}
	if err := session.CheckBlocks(v.Get("content")); err != nil {
		r.to.Problem(transcript.Problem{Pos: l.from[0].Pos, Reason: fmt.Sprintf("an item is only kept as bytes: it has %v", err)})
		return nil
	}
	entries, err := r.decode(v, kind)
	if err != nil {
		r.to.Count("item that cannot be read", transcript.OnlyKept, 1)
		return nil
	}
	for _, e := range entries {
		if err := r.addMessage(e, &l, fingerprint(v)...); err != nil {
			return err
		}
	}
	if kind == "" {
		kind = "message"
	}
	r.to.Count(kind+" item", "message", 1)
	return nil
}

// decode turns an item into messages.
func (r *reader) decode(v loose.Value, kind string) ([]session.Entry, error) {
	if kind == "agent_message" {
		return betweenAgents(v), nil
	}
	if entries := r.oddItem(v, kind); entries != nil {
		return entries, nil
	}
	return openai.DecodeItem(asItem(v, kind))
}

// fingerprint is what an item says, without what a newer Codex may add to it
// when it writes an old item again.
func fingerprint(v loose.Value) []string {
	var parts []string
	for _, member := range []string{
		"type", "role", "content", "message", "summary", "encrypted_content", "call_id", "name", "function", "arguments",
		"input", "action", "output", "result", "tools", "query",
	} {
		parts = append(parts, string(v.Get(member)))
	}
	return parts
}

// addMessage adds a message.
func (r *reader) addMessage(e session.Entry, l *line, parts ...string) error {
	m := e.Message
	switch m.Role {
	case session.RoleAssistant:
		return r.answered(e, l, parts...)
	case session.RoleTool:
		r.answer = ""
		r.markFailure(m)
		r.add(e, l, parts...)
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	if m.Role == session.RoleUser {
		if err := r.noteCWD(m); err != nil {
			return err
		}
		if isInjected(m.Content) {
			setMetadata(m, session.MetaInjected, true)
		} else if m.Metadata[session.MetaInjected] == nil {
			r.turns = append(r.turns, turn{r.current, len(r.path)})
			r.ask(session.TextOf(m.Content))
		}
	}
	r.add(e, l, parts...)
	return r.flush()
}

// answered adds what a model said. What it says until a result or a user comes
// between is one response.
func (r *reader) answered(e session.Entry, l *line, parts ...string) error {
	if r.answer == "" {
		if err := r.flush(); err != nil {
			return err
		}
	}
	e.Message.Model, e.Message.Provider = r.model, r.providerName()
	r.add(e, l, parts...)
	if r.answer == "" {
		r.answer = r.current
	}
	r.queue[len(r.queue)-1].Entry.Message.ResponseID = r.answer
	return nil
}

// markFailure marks a result as failed if it or an event says so.
func (r *reader) markFailure(m *session.MessageEntry) {
	for i := range m.Content {
		if t := m.Content[i].ToolResult; t != nil && (r.failed[t.ToolUseID] || hasFailed(t.Content)) {
			t.IsError = true
		}
	}
}

// exitLine begins the output of newer shells.
var exitLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^Exit code: (-?\d+)\n`) })

// hasFailed reports whether a shell's output says that the command failed.
func hasFailed(output string) bool {
	if found := exitLine().FindStringSubmatch(output); found != nil {
		return found[1] != "0"
	}
	v, err := loose.Parse([]byte(output))
	code := v.Get("metadata", "exit_code")
	return err == nil && code.IsNumber() && code.Int() != 0
}

// cwdPattern finds the working directory where the header does not have it.
var cwdPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<cwd>([^<]+)</cwd>`) })

func (r *reader) noteCWD(m *session.MessageEntry) error {
	if r.conv.CWD != "" || len(m.Content) == 0 || m.Content[0].Text == nil {
		return nil
	}
	found := cwdPattern().FindStringSubmatch(m.Content[0].Text.Content)
	if found == nil {
		return nil
	}
	r.conv.CWD = found[1]
	return r.to.Begin(transcript.Conversation{ID: r.conv.ID, CWD: found[1]})
}

// injected are the beginnings of texts that Codex writes in the user's name.
var injected = []string{
	"<environment_context>", "<user_instructions>", "<INSTRUCTIONS>", "# AGENTS.md instructions", "<permissions instructions>",
	"<collaboration_mode>", "<skill>", "<recommended_plugins>", "<turn_aborted>", "<subagent_notification>", "<goal",
	"<user_shell_command>",
}

// isInjected reports whether no text of a message is the human's. A prompt may
// follow what was injected.
func isInjected(blocks []session.Content) bool {
	return len(blocks) > 0 && !slices.ContainsFunc(blocks, func(c session.Content) bool {
		return c.Text == nil || !isInjectedText(strings.TrimSpace(c.Text.Content))
	})
}

func isInjectedText(text string) bool {
	for _, beginning := range injected {
		if !strings.HasPrefix(text, beginning) {
			continue
		}
		tag, isTag := strings.CutPrefix(beginning, "<")
		if tag, _, _ = strings.Cut(tag, " "); !isTag {
			return true
		}
		return strings.HasSuffix(text, "</"+strings.TrimSuffix(tag, ">")+">")
	}
	return false
}

func setMetadata(m *session.MessageEntry, key string, value any) {
	if m.Metadata == nil {
		m.Metadata = make(map[string]any)
	}
	m.Metadata[key] = value
}

// betweenAgents reads a message from one agent to another: the model gets it, but not from
// the user.
func betweenAgents(v loose.Value) []session.Entry {
	entries := message(session.RoleUser, textBlocks(v.Get("content"))...)
	m := entries[0].Message
	setMetadata(m, session.MetaInjected, true)
	for _, member := range []string{"author", "recipient"} {
		if text := v.Get(member).Text(); text != "" {
			m.Metadata[member] = text
		}
	}
	return entries
}

// textBlocks reads a text or a list of texts, and keeps anything else in the list as it is.
func textBlocks(v loose.Value) []session.Content {
	if v.IsString() {
		return []session.Content{session.Text(v.Text())}
	}
	var list []session.Content
	for part := range v.Items() {
		if text := part.Get("text"); text.IsString() {
			list = append(list, session.Text(text.Text()))
			continue
		}
		list = append(list, blocks.Unknown(part))
	}
	return list
}

// asItem converts the variants of some writers to the API's form.
func asItem(v loose.Value, kind string) json.RawMessage {
	o := v.Others("timestamp", "created_at")
	if kind == "" {
		o = append(residue.Object{{Name: "type", Value: json.RawMessage(`"message"`)}}, o...)
		if text := v.Get("message"); text.IsString() && !v.Has("content") {
			o.Remove("message")
			o.Set("content", text.Text())
		}
	}
	if output := v.Get("output"); strings.HasSuffix(kind, "_call_output") && output.IsObject() && output.Has("text") {
		o.Set("output", residue.List([]json.RawMessage{output.Raw()}))
	}
	if arguments := v.Get("arguments"); kind == "function_call" && !arguments.IsString() {
		o.Set("arguments", string(objectOf(arguments)))
	}
	return o.JSON()
}

// unanswered is a call without an id, which waits for its result.
type unanswered struct{ id, name string }

// oddItem reads the calls and results that only look like the API's: those of
// tool searches, and those of writers that give calls no id.
func (r *reader) oddItem(v loose.Value, kind string) []session.Entry {
	switch {
	case kind == "tool_search_call":
		return message(session.RoleAssistant, session.ToolUseJSON(v.Get("call_id").Text(), "tool_search", v.Get("arguments").Raw()))
	case kind == "tool_search_output":
		return message(session.RoleTool, session.ToolResult(v.Get("call_id").Text(), string(v.Get("tools")), false))
	case kind == "tool_call" || kind == "function_call" && !v.Has("call_id"):
		call := unanswered{id: "call-" + strconv.Itoa(len(r.used)), name: cmp.Or(v.Get("name").Text(), v.Get("function", "name").Text())}
		r.unanswered = append(r.unanswered, call)
		return message(session.RoleAssistant, session.ToolUseJSON(call.id, call.name, objectOf(v.Get("arguments"))))
	case kind == "tool_result" || kind == "function_result":
		return message(session.RoleTool, session.ToolResult(r.callOf(v.Get("name").Text()), blocks.Plain(v.Get("result")), false))
	}
	return nil
}

// callOf returns the latest call of a tool that has no result yet.
func (r *reader) callOf(tool string) string {
	for i, call := range slices.Backward(r.unanswered) {
		if call.name == tool {
			r.unanswered = slices.Delete(r.unanswered, i, i+1)
			return call.id
		}
	}
	return ""
}

func message(role session.MessageRole, blocks ...session.Content) []session.Entry {
	return []session.Entry{{Type: session.TypeMessage, Message: &session.MessageEntry{Role: role, Content: blocks}}}
}

// objectOf returns arguments as an object: they may be one, the text of one, or
// any other text.
func objectOf(v loose.Value) json.RawMessage {
	if v.IsObject() {
		return v.Raw()
	}
	if inner, err := loose.Parse([]byte(v.Text())); err == nil && inner.IsObject() {
		return inner.Raw()
	}
	var o residue.Object
	if v.Exists() {
		o.Set("input", v.Raw())
	}
	return o.JSON()
}
