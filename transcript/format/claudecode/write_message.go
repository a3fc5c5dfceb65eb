package claudecode

import (
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// message writes the lines of a message: one for each block of a reply.
func (w *scribe) message(e *session.Entry) {
	m := e.Message
	switch m.Role {
	case session.RoleAssistant:
		w.reply(e)
	case session.RoleUser, session.RoleTool:
		if blocks := w.blocks(e); len(blocks) > 0 {
			w.line(e, 0, "user", metaMember(m), userMessage(m, blocks))
		}
	case session.RoleSystem:
		w.lose(e.ID, "system message", "the program has its own")
	default: // what a user ran, and what others put into the context
		var text []string
		for i := range m.Content {
			if m.Content[i].Text != nil {
				text = append(text, m.Content[i].Text.Content)
			}
		}
		if len(text) > 0 {
			w.line(e, 0, "user", `"isMeta":true`, textMessage("user", strings.Join(text, "\n")))
		}
		w.lose(e.ID, "role "+m.Role, "it is written as a message of the user")
	}
}

func metaMember(m *session.MessageEntry) string {
	if m.Metadata["injected"] == "meta" {
		return `"isMeta":true`
	}
	return ""
}

// userMessage is a bare text where that is all there is, as the program does it.
func userMessage(m *session.MessageEntry, blocks []string) string {
	if len(m.Content) == 1 && m.Content[0].Text != nil && m.Content[0].Text.Extra == nil {
		return textMessage("user", m.Content[0].Text.Content)
	}
	return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
}

// answer is a reply of the model, which entries may hold in pieces. The program
// makes one message of the lines that share its ids; if they did not, the calls in
// it would have no results in the message after them.
type answer struct {
	message, request string
	usage            *session.Usage // of all of it, as each line of a reply has it
}

// answers finds the replies in a conversation, by entry.
func answers(path []session.Entry) map[string]*answer {
	all := make(map[string]*answer)
	var replies transcript.Replies
	var last *answer
	for i := range path {
		e := &path[i]
		continues := replies.Continues(e)
		if e.Message == nil || e.Message.Role != session.RoleAssistant {
			continue
		}
		if !continues {
			last = newAnswer(e)
		}
		last.usage = transcript.AddUsage(last.usage, e.Message.Usage)
		all[e.ID] = last
	}
	return all
}

// newAnswer returns a reply that begins with an entry. Programs that count tokens
// count lines with the same two ids once, so that a reply from elsewhere needs
// both.
func newAnswer(e *session.Entry) *answer {
	hash := strings.ReplaceAll(transcript.HashID(Name, e.ID), "-", "")[:24]
	message, request, _ := strings.Cut(e.Message.ResponseID, ":") // see responseID
	if !strings.HasPrefix(message, "msg_") {
		message, request = "msg_"+hash, ""
	}
	if request == "" {
		request = "req_" + hash
	}
	return &answer{message: message, request: request}
}

// reply writes what the model said.
func (w *scribe) reply(e *session.Entry) {
	m := e.Message
	blocks := w.blocks(e)
	if len(blocks) == 0 {
		return
	}
	ids := w.replies[e.ID]
	model := m.Model
	if m.Metadata["synthetic"] == true {
		model = synthetic
	}
	for i, block := range blocks {
		stop := "null"
		if i == len(blocks)-1 && m.StopReason != "" {
			stop = string(rawjson.AppendString(nil, m.StopReason))
		}
		text := `{"id":` + quoted(ids.message) + `,"type":"message","role":"assistant","model":` + quoted(model) +
			`,"content":[` + block + `],"stop_reason":` + stop + `,"stop_sequence":null,"usage":` + usageJSON(ids.usage) + `}`
		w.line(e, i, "assistant", `"requestId":`+quoted(ids.request), text)
	}
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
	anthropic := e.Message.Provider == "" || e.Message.Provider == "anthropic"
	switch {
	case c.Text != nil:
		if c.Text.Content == "" {
			return "" // the API refuses empty texts
		}
		return object("text", c.Text.Extra, "text", quoted(c.Text.Content))
	case c.Thinking != nil && c.Thinking.Redacted != "" && anthropic:
		return object("redacted_thinking", c.Thinking.Extra, "data", quoted(c.Thinking.Redacted))
	case c.Thinking != nil && c.Thinking.Signature != "" && anthropic:
		return object("thinking", c.Thinking.Extra, "thinking", quoted(c.Thinking.Content), "signature", quoted(c.Thinking.Signature))
	case c.Thinking != nil:
		w.lose(e.ID, "thinking", "the provider takes back only what it has signed")
	case c.ToolUse != nil:
		input, err := c.ToolUse.InputJSON()
		if err != nil || rawjson.Kind(input) != 'o' {
			input = []byte("{}")
		}
		return object("tool_use", c.ToolUse.Extra, "id", quoted(c.ToolUse.ID), "name", quoted(c.ToolUse.Name), "input", oneLine(input))
	case c.ToolResult != nil:
		return w.result(e, c.ToolResult)
	case c.Image != nil && c.Image.Source != nil:
		return object("image", c.Image.Extra, "source", sourceJSON(c.Image.Source))
	case c.File != nil && c.File.Source != nil:
		if c.File.Name != "" {
			return object("document", c.File.Extra, "source", sourceJSON(c.File.Source), "title", quoted(c.File.Name))
		}
		return object("document", c.File.Extra, "source", sourceJSON(c.File.Source))
	case c.Raw != nil && anthropic:
		return oneLine(c.Raw)
	default:
		w.lose(e.ID, string(c.Type), "the program has no such content")
	}
	return ""
}

func (w *scribe) result(e *session.Entry, r *session.ToolResultContent) string {
	extra := r.Extra
	content := quoted(r.Content)
	_, extra, _ = take(extra, "persisted") // the output itself stands here now
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
	members := []string{"tool_use_id", quoted(r.ToolUseID), "content", content}
	if r.IsError {
		members = append(members, "is_error", "true")
	}
	return object("tool_result", extra, members...)
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

func sourceJSON(s *session.Source) string {
	if s.Type == "url" {
		return object("url", s.Extra, "url", quoted(s.Data))
	}
	return object(s.Type, s.Extra, "media_type", quoted(s.MediaType), "data", quoted(s.Data))
}

// object writes a block: its type, its members, and what was not known of it.
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

// oneLine takes the line ends out of JSON, where they can only stand between its
// tokens.
func oneLine(raw []byte) string {
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(string(raw))
}
