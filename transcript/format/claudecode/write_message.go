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
)

// drafts returns the lines of an entry. ids are those of the reply that it belongs to.
func (w *scribe) drafts(e *session.Entry, ids *answer) []draft {
	switch {
	case e.Message != nil:
		return w.message(e, ids)
	case e.Compaction != nil:
		return w.compaction(e)
	case e.Custom != nil && e.Custom.CustomType == customFailure:
		return []draft{{"assistant", `"isApiErrorMessage":true`, jsonOf(e.Custom.Data)}}
	case e.Custom != nil && e.Custom.CustomType == customNotice:
		return []draft{{typ: "attachment", more: `"attachment":` + jsonOf(e.Custom.Data)}}
	case e.BranchSummary != nil && e.BranchSummary.Summary != "":
		return []draft{{"user", metaMember, textMessage("user", e.BranchSummary.Summary)}}
	case e.Merge != nil && e.Merge.Summary != "":
		return []draft{{"user", metaMember, textMessage("user", e.Merge.Summary)}}
	case e.ContextEdit != nil && w.edits[e.ID]:
		w.lose(e.ID, "context edit", "the program sends every result again")
	case e.Revert != nil:
		w.lose(e.ID, "undo", "the program cannot take anything back; what was taken back is left out")
	}
	return nil
}

const metaMember = `"isMeta":true`

// jsonOf returns the members of a line that were kept unchanged.
func jsonOf(data map[string]any) string {
	text, err := json.Marshal(data)
	if err != nil {
		return "{}"
	}
	return string(text)
}

// compaction returns the lines of a compaction: where it cuts, and the summary. The
// program reads a file from its last cut on, whatever branch that is on. So only the
// live path has cuts; other branches have the summary alone.
func (w *scribe) compaction(e *session.Entry) []draft {
	summary := draft{"user", `"isCompactSummary":true,"isVisibleInTranscriptOnly":true`, textMessage("user", e.Compaction.Summary)}
	if !w.live[e.ID] {
		w.lose(e.ID, "compaction of another branch", "the program would cut the live branch there; only the summary is written")
		return []draft{summary}
	}
	return []draft{{typ: "system", more: boundaryMembers}, summary}
}

const boundaryMembers = `"subtype":"compact_boundary","content":"Conversation compacted","isMeta":false,"level":"info"`

// isBoundary reports whether nothing before the line is sent.
func (d *draft) isBoundary() bool { return strings.HasPrefix(d.more, boundaryMembers) }

// message returns the lines of a message: one for each block of a reply.
func (w *scribe) message(e *session.Entry, ids *answer) []draft {
	m := e.Message
	switch m.Role {
	case session.RoleAssistant:
		return w.reply(e, ids)
	case session.RoleUser, session.RoleTool:
		blocks := w.blocks(e)
		if len(blocks) == 0 {
			return nil
		}
		if m.Metadata[metaQueued] != nil && !hasResult(m.Content) {
			return []draft{{typ: "attachment", more: queuedCommand(m, blocks)}}
		}
		if m.Metadata[metaLocal] == true && len(m.Content) == 1 && m.Content[0].Text != nil {
			return []draft{{typ: "system", more: `"subtype":"local_command","content":` + quoted(m.Content[0].Text.Content) + `,"level":"info","isMeta":false`}}
		}
		more := join(w.otherIDs(m.Content), w.outcome(m), originOf(m))
		if isMeta(m) {
			more = join(metaMember, more)
		}
		return []draft{{"user", more, userMessage(m, blocks)}}
	case session.RoleSystem:
		w.lose(e.ID, "system message", "the program has its own")
		return nil
	}
	// Commands that a user ran, and text that other programs put into the context.
	w.lose(e.ID, "role "+m.Role, "it is written as a message of the user")
	var text []string
	for i := range m.Content {
		if m.Content[i].Text != nil {
			text = append(text, m.Content[i].Text.Content)
		}
	}
	if len(text) == 0 {
		return nil
	}
	return []draft{{"user", metaMember, textMessage("user", strings.Join(text, "\n"))}}
}

// queuedCommand is the member of a line for what was typed while the model worked.
func queuedCommand(m *session.MessageEntry, blocks []string) string {
	prompt := `[` + strings.Join(blocks, ",") + `]`
	if isBareText(m) {
		prompt = quoted(m.Content[0].Text.Content)
	}
	attachment := map[string]any{"commandMode": "prompt"}
	if more, ok := m.Metadata[metaQueued].(map[string]any); ok {
		maps.Copy(attachment, more)
	}
	attachment["type"], attachment["prompt"] = "queued_command", json.RawMessage(prompt)
	return `"attachment":` + jsonOf(attachment)
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
func originOf(m *session.MessageEntry) string {
	origin, ok := m.Metadata[metaOrigin].(map[string]any)
	if !ok {
		return ""
	}
	return `"origin":` + jsonOf(origin)
}

func join(members ...string) string {
	return strings.Join(slices.DeleteFunc(members, func(m string) bool { return m == "" }), ",")
}

// userMessage writes a message with a single text as a bare string, as the program does.
func userMessage(m *session.MessageEntry, blocks []string) string {
	if isBareText(m) {
		return textMessage("user", m.Content[0].Text.Content)
	}
	return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
}

func isBareText(m *session.MessageEntry) bool {
	return len(m.Content) == 1 && m.Content[0].Text != nil && m.Content[0].Text.Extra == nil
}

func textMessage(role, text string) string {
	m := append([]byte(`{"role":"`+role+`","content":`), rawjson.AppendString(nil, text)...)
	return string(append(m, '}'))
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

// reply returns the lines of what the model said.
func (w *scribe) reply(e *session.Entry, ids *answer) []draft {
	m := e.Message
	model := m.Model
	if m.Metadata["synthetic"] == true {
		model = synthetic
	}
	parts := w.perLine(e)
	var drafts []draft
	for i, part := range parts {
		stop := "null"
		if i == len(parts)-1 && m.StopReason != "" {
			stop = quoted(m.StopReason)
		}
		text := `{"id":` + quoted(ids.message) + `,"type":"message","role":"assistant","model":` + quoted(model) +
			`,"content":[` + strings.Join(part.blocks, ",") + `],"stop_reason":` + stop + `,"stop_sequence":null,"usage":` + usageJSON(ids.usage) + `}`
		drafts = append(drafts, draft{"assistant", join(`"requestId":`+quoted(ids.request), w.otherIDs(part.of)), text})
	}
	return drafts
}

// linePart is the part of a reply that is on one line.
type linePart struct {
	of     []session.Content
	blocks []string
}

// perLine cuts a reply into lines, one for each block. Only a second block that begins
// like the first shares its line: on a line of its own, it would be read as the longer
// version of the first.
func (w *scribe) perLine(e *session.Entry) []linePart {
	var list []linePart
	content := e.Message.Content
	for i := range content {
		block := w.block(e, &content[i])
		if block == "" {
			continue
		}
		if len(list) == 1 && extends(list[0].of, content[i:i+1]) {
			list[0].of, list[0].blocks = content[:i+1], append(list[0].blocks, block)
			continue
		}
		list = append(list, linePart{content[i : i+1], []string{block}})
	}
	return list
}

// otherIDs is the member with the original ids of calls, where the provider would refuse
// those: they get them back when they are read.
func (w *scribe) otherIDs(content []session.Content) string {
	var b strings.Builder
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
			b.WriteString(`,` + quoted(written) + `:` + quoted(id))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return `"` + otherIDsMember + `":{` + b.String()[1:] + `}`
}

func quoted(s string) string { return string(rawjson.AppendString(nil, s)) }

func usageJSON(u *session.Usage) string {
	if u == nil {
		u = &session.Usage{}
	}
	b := rawjson.AppendInt([]byte(`{"input_tokens":`), int64(u.Input))
	b = rawjson.AppendInt(append(b, `,"cache_creation_input_tokens":`...), int64(u.CacheWrite))
	b = rawjson.AppendInt(append(b, `,"cache_read_input_tokens":`...), int64(u.CacheRead))
	b = rawjson.AppendInt(append(b, `,"output_tokens":`...), int64(u.Output))
	if u.CacheWriteHour > 0 {
		b = rawjson.AppendInt(append(b, `,"cache_creation":{"ephemeral_5m_input_tokens":`...), int64(max(u.CacheWrite-u.CacheWriteHour, 0)))
		b = append(rawjson.AppendInt(append(b, `,"ephemeral_1h_input_tokens":`...), int64(u.CacheWriteHour)), '}')
	}
	return string(append(b, '}'))
}

// blocks returns the blocks of a message as the program has them.
func (w *scribe) blocks(e *session.Entry) []string {
	var list []string
	for i := range e.Message.Content {
		if b := w.block(e, &e.Message.Content[i]); b != "" {
			list = append(list, b)
		}
	}
	return list
}

func (w *scribe) block(e *session.Entry, c *session.Content) string {
	signed := e.Message.Provider == "" || e.Message.Provider == "anthropic"
	switch {
	case c.Text != nil:
		if c.Text.Content == "" {
			return "" // the API refuses empty texts
		}
		return object("text", w.extra(c.Text.Extra), "text", quoted(c.Text.Content))
	case c.Thinking != nil && c.Thinking.Redacted != "" && signed:
		return object("redacted_thinking", w.extra(c.Thinking.Extra), "data", quoted(c.Thinking.Redacted))
	case c.Thinking != nil && c.Thinking.Signature != "" && signed:
		return object("thinking", w.extra(c.Thinking.Extra), "thinking", quoted(c.Thinking.Content), "signature", quoted(c.Thinking.Signature))
	case c.Thinking != nil:
		w.lose(e.ID, "thinking", "the provider takes back only what it has signed")
	case c.ToolUse != nil:
		input, err := c.ToolUse.InputJSON()
		if err != nil || rawjson.Kind(input) != 'o' {
			input = []byte("{}")
		}
		return object("tool_use", w.extra(c.ToolUse.Extra), "id", quoted(w.calls[c]), "name", quoted(w.tool(e, c.ToolUse.Name)), "input", oneLine(input))
	case c.ToolResult != nil:
		return w.result(e, c.ToolResult, w.calls[c])
	case c.Image != nil && c.Image.Source != nil:
		return object("image", w.extra(c.Image.Extra), "source", w.source(c.Image.Source))
	case c.File != nil && c.File.Source != nil:
		if c.File.Name != "" {
			return object("document", w.extra(c.File.Extra), "source", w.source(c.File.Source), "title", quoted(c.File.Name))
		}
		return object("document", w.extra(c.File.Extra), "source", w.source(c.File.Source))
	case c.Raw != nil && (w.own || e.Message.Provider == "anthropic"):
		return oneLine(c.Raw)
	default:
		w.lose(e.ID, cmp.Or(string(c.Type), "content"), "the program has no such content")
	}
	return ""
}

// tool returns the name of a tool as the provider takes it.
func (w *scribe) tool(e *session.Entry, name string) string {
	safe := anthropic.ToolName(name)
	if safe != name {
		w.lose(e.ID, "name of a tool", "the provider takes letters, digits, _ and -")
	}
	return safe
}

func (w *scribe) result(e *session.Entry, r *session.ToolResultContent, id string) string {
	extra := r.Extra
	content := quoted(r.Content)
	_, extra, _ = take(extra, "persisted") // the output itself is here now
	if _, rest, ok := take(extra, blocksField); ok {
		content, extra = `[`+object("text", nil, "text", quoted(r.Content))+`]`, rest
	}
	if len(r.Parts) > 0 {
		var parts []string
		for i := range r.Parts {
			if b := w.block(e, &r.Parts[i]); b != "" {
				parts = append(parts, b)
			}
		}
		content = `[` + strings.Join(parts, ",") + `]`
	}
	members := []string{"tool_use_id", quoted(id), "content", content}
	if r.IsError {
		members = append(members, "is_error", "true")
	}
	return object("tool_result", w.extra(extra), members...)
}

// extra returns a block's unknown members if they came from this format. The provider refuses
// those of others.
func (w *scribe) extra(fields session.Fields) session.Fields {
	if w.own {
		return fields
	}
	return nil
}

// take returns a field and the fields without it.
func take(fields session.Fields, name string) (value []byte, rest session.Fields, ok bool) {
	for i := range fields {
		if fields[i].Name == name {
			return fields[i].Value, append(append(rest, fields[:i]...), fields[i+1:]...), true
		}
	}
	return nil, fields, false
}

func (w *scribe) source(s *session.Source) string {
	if s.Type == "url" {
		return object("url", w.extra(s.Extra), "url", quoted(s.Data))
	}
	return object(s.Type, w.extra(s.Extra), "media_type", quoted(s.MediaType), "data", quoted(s.Data))
}

// object writes a block: its type, its members, and its unknown members.
func object(typ string, extra session.Fields, members ...string) string {
	var b strings.Builder
	b.WriteString(`{"type":` + quoted(typ))
	for i := 0; i < len(members); i += 2 {
		b.WriteString(`,"` + members[i] + `":` + members[i+1])
	}
	for _, f := range extra {
		b.WriteString(`,` + quoted(f.Name) + `:` + oneLine(f.Value))
	}
	b.WriteByte('}')
	return b.String()
}

// oneLine removes the line ends from JSON, where they can only be between tokens.
func oneLine(raw []byte) string {
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(string(raw))
}
