package claudeai

import (
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// noParent is the parent of a first message.
const noParent = "00000000-0000-4000-8000-000000000000"

// reader reads the messages of one conversation.
type reader struct {
	to   transcript.Sink
	span transcript.Span

	known  map[string]bool
	sender string // of the message before
	before string // its id
	// last has the parent of the latest message of each sender: where messages name no
	// parents, a second message of the same sender is another try.
	last map[string]string
}

func (r *reader) message(m loose.Value) error {
	id, sender := m.Get("uuid").Text(), m.Get("sender").Text()
	parent := r.parent(m, sender)
	entries := entriesOf(m, id)
	if len(entries) == 0 {
		r.to.Count("empty message", transcript.OnlyKept, 1)
		return nil
	}
	if r.known == nil {
		r.known = make(map[string]bool)
	}
	r.sender, r.before, r.last[sender], r.known[id] = sender, id, parent, true
	r.to.Count(sender+" message", "message", len(entries))
	for i, entry := range entries {
		// The next message follows the last piece of this one, so the last piece has the
		// message's id.
		piece := id
		if i < len(entries)-1 {
			piece = fmt.Sprintf("%s/%d", id, i+1)
		}
		record := transcript.Record{ID: piece, Parent: parent, Entry: entry, From: []transcript.Span{r.span}}
		if err := r.to.Add(record); err != nil {
			return err
		}
		parent = piece
	}
	return nil
}

func (r *reader) parent(m loose.Value, sender string) string {
	parent := m.Get("parent_message_uuid").Text()
	switch {
	case parent != "" && r.known[parent]:
		return parent
	case parent == noParent || r.before == "":
		return transcript.Root
	case parent == "" && sender == r.sender:
		return r.last[sender]
	}
	return r.before
}

// entriesOf turns a message into entries. Claude.ai puts calls and their results into one
// message; here results are messages of their own.
func entriesOf(m loose.Value, id string) []session.Entry {
	at := m.Get("created_at").Time(time.UTC)
	s := splitter{id: id}
	for b := range m.Get("content").Items() {
		s.add(b)
	}
	s.flush()
	if len(s.messages) == 0 {
		s.text(m.Get("text").Text()) // old exports have nothing else
		s.flush()
	}
	own := attached(m)
	switch {
	case len(own) == 0:
	case len(s.messages) == 0:
		s.messages = []piece{{content: own}}
	default:
		s.messages[0].content = append(own, s.messages[0].content...)
	}
	var entries []session.Entry
	for _, p := range s.messages {
		entries = append(entries, session.Entry{Type: session.TypeMessage, Timestamp: at, Message: p.message(m, id)})
	}
	return entries
}

// piece is a part of a message that is one entry.
type piece struct {
	result  bool // of tools
	content []session.Content
}

func (p piece) message(m loose.Value, id string) *session.MessageEntry {
	out := &session.MessageEntry{Role: session.RoleUser, Content: p.content}
	switch {
	case p.result:
		out.Role = session.RoleTool
	case m.Get("sender").Text() == "assistant":
		out.Role, out.Provider, out.ResponseID = session.RoleAssistant, "anthropic", id
	}
	var files []any
	for f := range m.Get("files").Items() {
		files = append(files, f.Any())
	}
	if len(files) > 0 && !p.result {
		out.Metadata = map[string]any{"files": files}
	}
	return out
}

// attached returns the documents attached to a message, as text.
func attached(m loose.Value) []session.Content {
	var list []session.Content
	for a := range m.Get("attachments").Items() {
		if text := a.Get("extracted_content").Text(); text != "" {
			list = append(list, session.Text(fmt.Sprintf("<file name=\"%s\">\n%s\n</file>",
				html.EscapeString(a.Get("file_name").Text()), text)))
		}
	}
	return list
}

// splitter cuts the blocks of a message into what the model said and what tools
// answered.
type splitter struct {
	id       string
	messages []piece
	current  piece
	calls    int
	waiting  []waiting // calls without a result yet
}

type waiting struct{ id, name string }

func (s *splitter) flush() {
	if len(s.current.content) > 0 {
		s.messages = append(s.messages, s.current)
	}
	s.current = piece{}
}

func (s *splitter) put(result bool, c session.Content) {
	if s.current.result != result {
		s.flush()
		s.current.result = result
	}
	s.current.content = append(s.current.content, c)
}

func (s *splitter) text(text string) {
	if strings.TrimSpace(text) != "" {
		s.put(false, session.Text(text))
	}
}

func (s *splitter) add(b loose.Value) {
	switch b.Get("type").Text() {
	case "text", "voice_note":
		s.text(b.Get("text").Text())
	case "thinking":
		if text := b.Get("thinking").Text(); text != "" {
			c := session.Thinking(text, "")
			c.Thinking.Extra = b.Except("type", "thinking", "start_timestamp", "stop_timestamp", "flags")
			s.put(false, c)
		}
	case "tool_use":
		s.call(b)
	case "tool_result":
		s.result(b)
	case "token_budget", "flag":
		// The kept bytes have it; it is not part of the conversation.
	default:
		s.put(false, blocks.Unknown(b))
	}
}

func (s *splitter) call(b loose.Value) {
	s.calls++
	id, name := b.Get("id").Text(), b.Get("name").Text()
	if id == "" {
		id = fmt.Sprintf("call_%s_%d", s.id, s.calls)
	}
	s.waiting = append(s.waiting, waiting{id, name})
	c := session.ToolUseJSON(id, name, b.Get("input").Raw())
	c.ToolUse.Extra = b.Except("type", "id", "name", "input", "start_timestamp", "stop_timestamp", "flags")
	s.put(false, c)
}

// result pairs a result with its call: by id, or else with the first call of that tool that
// waits. A result without a call is kept as text.
func (s *splitter) result(b loose.Value) {
	id := b.Get("tool_use_id").Text()
	for i, w := range s.waiting {
		if id == w.id || id == "" && b.Get("name").Text() == w.name {
			id = w.id
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			s.put(true, answer(b, id))
			return
		}
	}
	s.text(blocks.Joined(b.Get("content")))
}

func answer(b loose.Value, id string) session.Content {
	c := session.ToolResult(id, blocks.Joined(b.Get("content")), b.Get("is_error").Bool())
	for part := range b.Get("content").Items() {
		if part.Get("type").Text() != "text" {
			c.ToolResult.Parts = append(c.ToolResult.Parts, blocks.Unknown(part))
		}
	}
	if c.ToolResult.Parts != nil && c.ToolResult.Content != "" {
		c.ToolResult.Parts = append([]session.Content{session.Text(c.ToolResult.Content)}, c.ToolResult.Parts...)
	}
	return c
}
