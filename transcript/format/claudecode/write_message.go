package claudecode

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// rows returns the lines of an entry. ids are those of the reply that it belongs to.
func (w *scribe) rows(e *session.Entry, ids *answer) []row {
	switch {
	case e.Message != nil:
		return w.message(e, ids)
	case e.Compaction != nil:
		return w.compaction(e)
	case e.Custom != nil && e.Custom.CustomType == customFailure:
		return []row{{"assistant", object("isApiErrorMessage", true), e.Custom.Data}}
	case e.Custom != nil && e.Custom.CustomType == customNotice:
		return []row{{typ: "attachment", more: object("attachment", e.Custom.Data)}}
	case e.BranchSummary != nil && e.BranchSummary.Summary != "":
		return []row{{"user", object(metaMember, true), messageOf("user", e.BranchSummary.Summary)}}
	case e.Merge != nil && e.Merge.Summary != "":
		return []row{{"user", object(metaMember, true), messageOf("user", e.Merge.Summary)}}
	case e.ContextEdit != nil && w.edits[e.ID]:
		w.Lose(e.ID, "context edit", "the program sends every result again")
	case e.Revert != nil:
		w.Lose(e.ID, "undo", "the program cannot take anything back; what was taken back is left out")
	}
	return nil
}

const metaMember = "isMeta"

// compaction returns the lines of a compaction: where it cuts, and the summary. The
// program reads a file from its last cut on, whatever branch that is on. So only the
// live path has cuts; other branches have the summary alone.
func (w *scribe) compaction(e *session.Entry) []row {
	summary := row{"user", object("isCompactSummary", true, "isVisibleInTranscriptOnly", true), messageOf("user", e.Compaction.Summary)}
	if !w.live[e.ID] {
		w.Lose(e.ID, "compaction of another branch", "the program would cut the live branch there; only the summary is written")
		return []row{summary}
	}
	cut := object("subtype", subtypeCut, "content", "Conversation compacted", metaMember, false, "level", "info")
	return []row{{typ: "system", more: cut}, summary}
}

// subtypeCut is the subtype of the lines that cut the file.
const subtypeCut = "compact_boundary"

// isBoundary reports whether nothing before the line is sent.
func (d *row) isBoundary() bool { return d.more.Str("subtype") == subtypeCut }

// message returns the lines of a message: one for each block of a reply.
func (w *scribe) message(e *session.Entry, ids *answer) []row {
	m := e.Message
	switch m.Role {
	case session.RoleAssistant:
		return w.reply(e, ids)
	case session.RoleUser, session.RoleTool:
		blocks := w.blocks(e, m.Content)
		if len(blocks) == 0 {
			return nil
		}
		if m.Metadata[metaQueued] != nil && !hasResult(m.Content) {
			return []row{{typ: "attachment", more: object("attachment", queuedCommand(m, blocks))}}
		}
		if m.Metadata[metaLocal] == true && len(m.Content) == 1 && m.Content[0].Text != nil {
			return []row{{typ: "system", more: object("subtype", "local_command", "content", m.Content[0].Text.Content, "level", "info", metaMember, false)}}
		}
		var more residue.Object
		if isMeta(m) {
			more.Set(metaMember, true)
		}
		more = slices.Concat(more, w.otherIDs(m.Content), w.outcome(m), originOf(m))
		return []row{{"user", more, messageOf("user", userContent(m, blocks))}}
	case session.RoleSystem:
		w.Lose(e.ID, "system message", "the program has its own")
		return nil
	}
	// Commands that a user ran, and text that other programs put into the context.
	w.Lose(e.ID, "role "+m.Role, "it is written as a message of the user")
	var text []string
	for i := range m.Content {
		if m.Content[i].Text != nil {
			text = append(text, m.Content[i].Text.Content)
		}
	}
	if len(text) == 0 {
		return nil
	}
	return []row{{"user", object(metaMember, true), messageOf("user", strings.Join(text, "\n"))}}
}

// queuedCommand is what was typed while the model worked.
func queuedCommand(m *session.MessageEntry, blocks []json.RawMessage) map[string]any {
	command := map[string]any{"commandMode": "prompt"}
	if more, ok := m.Metadata[metaQueued].(map[string]any); ok {
		maps.Copy(command, more)
	}
	command["type"], command["prompt"] = "queued_command", userContent(m, blocks)
	return command
}

// isMeta reports whether a message is one that the program marks as its own.
func isMeta(m *session.MessageEntry) bool {
	by, _ := m.Metadata[session.MetaInjected].(string)
	if marked, ok := m.Metadata[metaMarked].(bool); ok {
		return marked
	}
	return usuallyMeta(by, firstText(m.Content))
}

// originOf is the member that says who spoke in the user's name.
func originOf(m *session.MessageEntry) residue.Object {
	if origin, ok := m.Metadata[metaOrigin].(map[string]any); ok {
		return object("origin", origin)
	}
	return nil
}

// userContent is the content of a message in the user's name: a single text is a bare string, as
// the program has it.
func userContent(m *session.MessageEntry, blocks []json.RawMessage) any {
	if len(m.Content) == 1 && m.Content[0].Text != nil && m.Content[0].Text.Extra == nil {
		return m.Content[0].Text.Content
	}
	return residue.List(blocks)
}

func messageOf(role string, content any) json.RawMessage {
	return object("role", role, "content", content).JSON()
}

// answer is a reply of the model, which entries may hold in pieces. The program
// makes one message of the lines that share its ids; if they did not, the calls in
// it would have no results in the message after them.
type answer struct {
	message, request string
	usage            *session.Usage // of the whole reply; each of its lines has it
	live             bool
}

// newAnswer returns a reply that begins with an entry. Programs that count tokens
// count lines with the same two ids once, so that a reply from elsewhere needs
// both; and replies of other branches must not have the ids of this one.
func (w *scribe) newAnswer(e *session.Entry, live bool) *answer {
	hash := hashOf(e.ID)
	message, request, _ := strings.Cut(e.Message.ResponseID, ":") // see responseID
	if !strings.HasPrefix(message, "msg_") || !live && w.messages[message] {
		message, request = "msg_"+hash, ""
	}
	w.messages[message] = true
	if request == "" {
		request = "req_" + hash
	}
	return &answer{message: message, request: request, live: live}
}

// again returns the ids for a copy of the reply, whose usage is counted already.
func (a *answer) again(of string) *answer {
	hash := hashOf(a.message + of)
	return &answer{message: "msg_" + hash, request: "req_" + hash}
}

func hashOf(id string) string { return strings.ReplaceAll(transcript.HashID(Name, id), "-", "")[:24] }

// reply returns the lines of a reply of the model.
func (w *scribe) reply(e *session.Entry, ids *answer) []row {
	m := e.Message
	model := m.Model
	if m.Metadata["synthetic"] == true {
		model = synthetic
	}
	parts := w.perLine(e)
	var rows []row
	for i, part := range parts {
		var stop any
		if i == len(parts)-1 && m.StopReason != "" {
			stop = m.StopReason
		}
		text := object(
			"id", ids.message, "type", "message", "role", "assistant", "model", model, "content", residue.List(part.blocks),
			"stop_reason", stop, "stop_sequence", nil, "usage", usageJSON(ids.usage),
		).JSON()
		rows = append(rows, row{"assistant", append(object("requestId", ids.request), w.otherIDs(part.of)...), text})
	}
	return rows
}

// linePart is the part of a reply that is on one line.
type linePart struct {
	of     []session.Content
	blocks []json.RawMessage
}

// perLine cuts a reply into lines, one for each block. Only a second block that begins
// like the first shares its line: on a line of its own, it would be read as the longer
// version of the first.
func (w *scribe) perLine(e *session.Entry) []linePart {
	var list []linePart
	content := e.Message.Content
	for i := range content {
		block := w.block(e, &content[i])
		if block == nil {
			continue
		}
		if len(list) == 1 && extends(list[0].of, content[i:i+1]) {
			list[0].of, list[0].blocks = content[:i+1], append(list[0].blocks, block)
			continue
		}
		list = append(list, linePart{content[i : i+1], []json.RawMessage{block}})
	}
	return list
}

// otherIDs is the member with the original ids of calls, where the provider would refuse
// those: they get them back when they are read.
func (w *scribe) otherIDs(content []session.Content) residue.Object {
	var ids residue.Object
	for i := range content {
		c := &content[i]
		id := ""
		switch {
		case c.ToolUse != nil:
			id = c.ToolUse.ID
		case c.ToolResult != nil:
			id = c.ToolResult.ToolUseID
		default:
			continue
		}
		if written := w.calls[c]; written != id {
			ids.Set(written, id)
		}
	}
	if ids == nil {
		return nil
	}
	return object(otherIDsMember, ids.JSON())
}

func usageJSON(u *session.Usage) json.RawMessage {
	if u == nil {
		u = &session.Usage{}
	}
	o := object(
		"input_tokens", u.Input, "cache_creation_input_tokens", u.CacheWrite,
		"cache_read_input_tokens", u.CacheRead, "output_tokens", u.Output,
	)
	if u.CacheWriteHour > 0 {
		o.SetObject("cache_creation", object(
			"ephemeral_5m_input_tokens", max(u.CacheWrite-u.CacheWriteHour, 0), "ephemeral_1h_input_tokens", u.CacheWriteHour,
		))
	}
	return o.JSON()
}

// blocks returns the blocks of a message as the program has them.
func (w *scribe) blocks(e *session.Entry, content []session.Content) []json.RawMessage {
	var list []json.RawMessage
	for i := range content {
		if b := w.block(e, &content[i]); b != nil {
			list = append(list, b)
		}
	}
	return list
}

func (w *scribe) block(e *session.Entry, c *session.Content) json.RawMessage {
	signed := e.Message.Provider == "" || e.Message.Provider == "anthropic"
	switch {
	case c.Text != nil:
		if c.Text.Content == "" {
			return nil // the API refuses empty texts
		}
		return w.known(c.Text.Extra, "type", "text", "text", c.Text.Content)
	case c.Thinking != nil && c.Thinking.Redacted != "" && signed:
		return w.known(c.Thinking.Extra, "type", "redacted_thinking", "data", c.Thinking.Redacted)
	case c.Thinking != nil && c.Thinking.Signature != "" && signed:
		return w.known(c.Thinking.Extra, "type", "thinking", "thinking", c.Thinking.Content, "signature", c.Thinking.Signature)
	case c.Thinking != nil:
		w.Lose(e.ID, "thinking", "the provider takes back only what it has signed")
	case c.ToolUse != nil:
		input, err := c.ToolUse.InputJSON()
		if err != nil || rawjson.Kind(input) != 'o' {
			input = []byte("{}")
		}
		return w.known(c.ToolUse.Extra, "type", "tool_use", "id", w.calls[c], "name", w.tool(e, c.ToolUse.Name), "input", json.RawMessage(input))
	case c.ToolResult != nil:
		return w.result(e, c.ToolResult, w.calls[c])
	case c.Image != nil && c.Image.Source != nil:
		return w.known(c.Image.Extra, "type", "image", "source", w.source(c.Image.Source))
	case c.File != nil && c.File.Source != nil:
		if c.File.Name != "" {
			return w.known(c.File.Extra, "type", "document", "source", w.source(c.File.Source), "title", c.File.Name)
		}
		return w.known(c.File.Extra, "type", "document", "source", w.source(c.File.Source))
	case c.Raw != nil && (w.own || e.Message.Provider == "anthropic"):
		return c.Raw
	default:
		w.Lose(e.ID, cmp.Or(string(c.Type), "content"), "the program has no such content")
	}
	return nil
}

// tool returns the name of a tool as the provider takes it.
func (w *scribe) tool(e *session.Entry, name string) string {
	safe := anthropic.ToolName(name)
	if safe != name {
		w.Lose(e.ID, "name of a tool", "the provider takes letters, digits, _ and -")
	}
	return safe
}

func (w *scribe) result(e *session.Entry, r *session.ToolResultContent, id string) json.RawMessage {
	extra := residue.Object(r.Extra)
	extra.Remove("persisted") // the output itself is here now
	var content any = r.Content
	if extra.Take(blocksField) != nil {
		content = textBlocks(r.Content)
	}
	if len(r.Parts) > 0 {
		content = residue.List(w.blocks(e, r.Parts))
	}
	members := []any{"type", "tool_result", "tool_use_id", id, "content", content}
	if r.IsError {
		members = append(members, "is_error", true)
	}
	return w.known(session.Fields(extra), members...)
}

// textBlocks is a list with one text.
func textBlocks(text string) json.RawMessage {
	return residue.List([]json.RawMessage{object("type", "text", "text", text).JSON()})
}

func (w *scribe) source(s *session.Source) json.RawMessage {
	if s.Type == "url" {
		return w.known(s.Extra, "type", "url", "url", s.Data)
	}
	return w.known(s.Extra, "type", s.Type, "media_type", s.MediaType, "data", s.Data)
}

// known returns an object with the given members, and with its unknown ones if they came from
// this format. The provider refuses those of others.
func (w *scribe) known(unknown session.Fields, members ...any) json.RawMessage {
	o := object(members...)
	if w.own {
		o.Merge(residue.Object(unknown))
	}
	return o.JSON()
}
