package zed

import (
	"strings"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// thread reads the messages of a thread. They have no times: all have that of the
// thread.
type thread struct {
	to   transcript.Sink
	id   string
	doc  loose.Value
	from []transcript.Span
	time time.Time

	turn string              // the user's message that is being answered
	last *transcript.Record  // the last answer to it, which waits for its usage
	held []transcript.Record // what follows that answer
}

// read reads the messages. Today each is an object with one member, which names its kind; until
// 2025 it had a role.
func (t *thread) read() error {
	for v := range t.doc.Get("messages").Items() {
		var err error
		switch {
		case v.Get("User").IsObject():
			t.to.Count("user message", "message", 1)
			err = t.user(v.Get("User"))
		case v.Get("Agent").IsObject():
			t.to.Count("agent message", "message", 1)
			err = t.agent(v.Get("Agent"))
		case v.Has("role"): // until 2025
			t.to.Count(v.Get("role").Text()+" message", "message", 1)
			err = t.old(v)
		default: // "Resume", and kinds of later versions
			t.to.Count("other message", transcript.OnlyKept, 1)
		}
		if err != nil {
			return err
		}
	}
	return t.flush()
}

// record returns a record with the thread's time and without an id: the importer makes one
// from the content alone, so the record stays the same when the thread's time changes.
func (t *thread) record(m *session.MessageEntry) transcript.Record {
	return transcript.Record{
		Entry: session.Entry{Type: session.TypeMessage, Timestamp: t.time, Message: m},
		From:  t.from,
	}
}

// flush passes on what was held, with the cost of the turn's last request.
func (t *thread) flush() error {
	if t.last == nil {
		return nil
	}
	if u := provider.AnthropicUsage(t.doc.Get("request_token_usage", t.turn)); u != nil && t.turn != "" {
		t.last.Entry.Message.Usage = u
		t.last.Entry.Message.ResponseID = t.id + ":" + t.turn
	}
	records := append([]transcript.Record{*t.last}, t.held...)
	t.last, t.held = nil, nil
	for _, r := range records {
		if err := t.to.Add(r); err != nil {
			return err
		}
	}
	return nil
}

// user begins a turn. Zed records one usage for each of the user's messages.
func (t *thread) user(v loose.Value) error {
	if err := t.flush(); err != nil {
		return err
	}
	t.turn = v.Get("id").Text()
	return t.to.Add(t.record(&session.MessageEntry{Role: session.RoleUser, Content: blocks.List(v.Get("content"), content)}))
}

// agent reads an answer. It has the results of its calls, too.
func (t *thread) agent(v loose.Value) error {
	m := t.answer()
	m.Content = blocks.List(v.Get("content"), content)
	var results []session.Content
	for _, r := range v.Get("tool_results").Members() {
		results = append(results, result(r))
	}
	return t.answered(m, results)
}

// answer returns an empty answer of the thread's model: messages do not name theirs.
func (t *thread) answer() *session.MessageEntry {
	model := t.doc.Get("model")
	return &session.MessageEntry{Role: session.RoleAssistant, Provider: model.Get("provider").Text(), Model: model.Get("model").Text()}
}

// answered holds an answer until it is known whether it is the turn's last.
func (t *thread) answered(m *session.MessageEntry, results []session.Content) error {
	turn := t.turn
	t.turn = ""
	err := t.flush() // the one before, without a usage
	t.turn = turn
	if err != nil {
		return err
	}
	rec := t.record(m)
	t.last = &rec
	if len(results) > 0 {
		t.held = append(t.held, t.record(&session.MessageEntry{Role: session.RoleTool, Content: results}))
	}
	return nil
}

// content reads a part of a message: an object whose one member says what it is.
func content(v loose.Value) session.Content {
	for kind, inner := range v.Members() {
		switch kind {
		case "Text":
			return session.Text(inner.Text())
		case "Thinking":
			return session.Thinking(inner.Get("text").Text(), inner.Get("signature").Text())
		case "RedactedThinking":
			return session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Redacted: inner.Text()}}
		case "ToolUse":
			return session.ToolUseJSON(inner.Get("id").Text(), inner.Get("name").Text(), inner.Get("input").Raw())
		case "Image":
			return session.Image("image/png", inner.Get("source").Text())
		case "Mention":
			if text := inner.Get("content").Text(); text != "" {
				return session.Text(text)
			}
		}
	}
	return session.Content{Raw: v.Raw()}
}

// result reads a tool's answer: a text, a picture or, in some threads, a list of texts.
func result(v loose.Value) session.Content {
	body := v.Get("content")
	r := session.ToolResult(v.Get("tool_use_id").Text(), body.Text(), v.Get("is_error").Bool())
	switch {
	case body.IsArray():
		var texts []string
		for part := range body.Items() {
			texts = append(texts, part.Get("Text").Text())
		}
		r.ToolResult.Content = strings.Join(texts, "\n")
	case body.Get("Text").IsString():
		r.ToolResult.Content = body.Get("Text").Text()
	case body.Get("Image").IsObject():
		r.ToolResult.Parts = []session.Content{content(body)}
	}
	return r
}

// old reads a message of the first versions.
func (t *thread) old(v loose.Value) error {
	m := &session.MessageEntry{Role: v.Get("role").Text()}
	if m.Role == session.RoleAssistant {
		m = t.answer()
	}
	m.Content = blocks.List(v.Get("segments"), func(part loose.Value) session.Content {
		if part.Get("type").Text() == "thinking" {
			return session.Thinking(part.Get("text").Text(), part.Get("signature").Text())
		}
		return session.Text(part.Get("text").Text())
	})
	m.Content = append(m.Content, blocks.Text(v.Get("text").Text())...)
	m.Content = append(m.Content, blocks.Calls(v.Get("tool_uses"), "id", "input")...)
	results := blocks.List(v.Get("tool_results"), result)
	if m.Role == session.RoleAssistant {
		return t.answered(m, results)
	}
	err := t.flush()
	if err == nil && len(results) > 0 {
		err = t.to.Add(t.record(&session.MessageEntry{Role: session.RoleTool, Content: results}))
	}
	if err != nil || len(m.Content) == 0 {
		return err
	}
	return t.to.Add(t.record(m))
}
