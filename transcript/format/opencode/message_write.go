package opencode

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

type jsonText = json.RawMessage

// result is what a tool answered, and when.
type result struct {
	*session.ToolResultContent
	at time.Time
}

// message is a message that is being written.
type message struct {
	w       *writer
	id      string
	entry   *session.Entry
	at      int64
	parts   []jsonText
	begun   int // how many parts there are, those of results included
	results map[string]result
}

// begin begins a message. opencode orders messages by their times, and those of one
// time by their ids: times that go back would change the order.
func (w *writer) begin(e *session.Entry) *message {
	at := e.Timestamp
	if at.IsZero() {
		at = w.created
	}
	w.at = max(w.at+1, at.UnixMilli(), 1)
	w.count = 0
	id := w.messageID(e)
	w.used[id], w.byEntry[e.ID] = true, id
	return &message{w: w, id: id, entry: e, at: w.at}
}

// info begins the message's info object.
func (m *message) info(role string) residue.Object {
	var o, at residue.Object
	at.Set("created", m.at)
	if role == "assistant" {
		at.Set("completed", m.at)
	}
	o.Set("id", m.id)
	o.Set("sessionID", m.w.id)
	o.Set("role", role)
	o.Set("time", at.JSON())
	return o
}

// end adds the message to the session, unless it is empty.
func (m *message) end(info residue.Object) {
	if len(m.parts) == 0 {
		return
	}
	var o residue.Object
	o.Set("info", info.JSON())
	o.Set("parts", residue.List(m.parts))
	m.w.list = append(m.w.list, o.JSON())
}

// part begins a part of a type. The parts of calls have the call's id too.
func (m *message) part(kind, call string) residue.Object {
	m.begun++
	id := m.w.known.pop(m.id, kind+call)
	if id == "" {
		id = m.w.ascending("prt_", fmt.Sprint(m.id, m.begun))
	}
	var o residue.Object
	o.Set("id", id)
	o.Set("sessionID", m.w.id)
	o.Set("messageID", m.id)
	o.Set("type", kind)
	return o
}

func (m *message) add(part residue.Object) { m.parts = append(m.parts, part.JSON()) }

func (m *message) text(text string, synthetic bool) {
	if text == "" {
		return
	}
	part := m.part("text", "")
	part.Set("text", text)
	if synthetic {
		part.Set("synthetic", true)
	}
	m.add(part)
}

// content adds the blocks of a message as parts.
func (m *message) content(said *session.MessageEntry) {
	for i := range said.Content {
		switch c := &said.Content[i]; {
		case c.Text != nil:
			m.text(c.Text.Content, isInjected(said))
		case c.Thinking != nil:
			m.thinking(c.Thinking, said.Provider)
		case c.ToolUse != nil:
			m.call(c.ToolUse)
		case c.ToolResult != nil: // with its call
		case said.Role == session.RoleAssistant && c.Raw == nil:
			m.w.Lose(m.entry.ID, string(c.Type), "opencode sends no pictures or files of a model")
		default:
			m.attach(c)
		}
	}
}

func (m *message) thinking(t *session.ThinkingContent, provider string) {
	if t.Content == "" {
		m.w.Lose(m.entry.ID, "thinking", "opencode keeps the text of what a model thought, and this has none")
		return
	}
	part := m.part("reasoning", "")
	part.Set("text", t.Content)
	if kept := residue.In(t.Extra, "metadata"); kept.IsObject() {
		part.Set("metadata", kept.Raw())
	} else if t.Signature != "" && provider == "anthropic" {
		var own, metadata residue.Object
		own.Set("signature", t.Signature)
		metadata.Set("anthropic", own.JSON())
		part.Set("metadata", metadata.JSON())
	} else if t.Signature != "" {
		m.w.Lose(m.entry.ID, "thinking signature", "opencode keeps those of Anthropic only")
	}
	part.Set("time", m.span(time.Time{}))
	m.add(part)
}

// span returns a time with a beginning and an end.
func (m *message) span(end time.Time) jsonText {
	var o residue.Object
	o.Set("start", m.at)
	o.Set("end", max(m.at, end.UnixMilli()))
	return o.JSON()
}

// call writes a call with its result. Only a completed call has a title; a command that
// failed is completed, too.
func (m *message) call(c *session.ToolUseContent) {
	part := m.part("tool", c.ID)
	part.Set("callID", c.ID)
	part.Set("tool", c.Name)
	var state residue.Object
	answer, answered := m.results[c.ID]
	switch {
	case !answered:
		state.Set("status", "running")
		state.Set("input", m.input(c))
		var at residue.Object
		at.Set("start", m.at)
		state.Set("time", at.JSON())
	case answer.IsError && len(answer.Parts) == 0 && answer.Content != "" && !residue.In(answer.Extra, "title").Exists():
		state.Set("status", "error")
		state.Set("input", m.input(c))
		state.Set("error", answer.Content)
		state.Set("time", m.span(answer.at))
	default:
		m.completed(&state, c, answer)
	}
	part.Set("state", state.JSON())
	m.add(part)
}

// completed fills in the state of a completed call. A failed one gets a non-zero exit code,
// by which the reader recognises it.
func (m *message) completed(state *residue.Object, c *session.ToolUseContent, r result) {
	state.Set("status", "completed")
	state.Set("input", m.input(c))
	var attached []jsonText
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Text == nil {
			if file, ok := m.file(p); ok {
				attached = append(attached, file.JSON())
			}
		}
	}
	state.Set("output", r.Content)
	title := loose.Value(residue.In(r.Extra, "title")).Text()
	state.Set("title", title)
	var metadata residue.Object
	if r.IsError {
		metadata.Set("exit", 1)
	}
	state.Set("metadata", metadata.JSON())
	state.Set("time", m.span(r.at))
	if len(attached) > 0 {
		state.Set("attachments", residue.List(attached))
	}
}

// input returns a call's arguments. opencode takes objects only.
func (m *message) input(c *session.ToolUseContent) jsonText {
	input, err := c.InputJSON()
	if err == nil && loose.Value(input).IsObject() {
		return input
	}
	var o residue.Object
	if err == nil && loose.Value(input).Exists() {
		m.w.Lose(m.entry.ID, "arguments", "those of opencode are an object; others are written as its only member")
		o.Set("input", input)
	}
	return o.JSON()
}

// attach adds a picture or a file. opencode does not send plain text files, but the text in
// them.
func (m *message) attach(c *session.Content) {
	part, ok := m.file(c)
	if !ok {
		return
	}
	if c.File != nil && c.File.Source.Type == "base64" && loose.Value(part.JSON()).Get("mime").Text() == plainText {
		if text, err := base64.StdEncoding.DecodeString(c.File.Source.Data); err == nil {
			m.text(string(text), true)
		}
	}
	m.add(part)
}

// file returns a picture or a file as a part.
func (m *message) file(c *session.Content) (residue.Object, bool) {
	name, source := "", c.Source()
	if c.File != nil {
		name = c.File.Name
	}
	if source == nil || source.Data == "" {
		m.w.Lose(m.entry.ID, string(c.Type), "opencode has no such block")
		return nil, false
	}
	mime := source.MediaType
	if mime == "" {
		mime = map[bool]string{true: "image/png", false: "application/octet-stream"}[c.Image != nil]
	}
	url := source.Data
	if source.Type == "base64" {
		url = "data:" + mime + ";base64," + strings.TrimSpace(source.Data)
	}
	part := m.part("file", "")
	part.Set("mime", mime)
	part.SetText("filename", name)
	part.Set("url", url)
	return part, true
}
