// Package grok reads the sessions of xAI's Grok CLI: a message on each line, and the
// session's facts in a file beside it.
package grok

import (
	"context"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
	"github.com/coppice-dev/coppice/transcript/internal/records"
)

const (
	name    = "grok"
	history = "chat_history.jsonl"
)

// Format returns Grok CLI's format.
func Format() *transcript.Format {
	return &transcript.Format{Name: name, Title: "Grok CLI", Detect: detect, Read: read, Places: places}
}

// detect needs the file's name: its lines are like many others'.
func detect(f *transcript.File) bool {
	return filepath.Base(f.Path) == history && jsonl.First(f).Has("type", "content")
}

// places finds sessions/<directory, percent-encoded>/<id>/chat_history.jsonl.
func places(env transcript.Env) []transcript.Place {
	return place.In(filepath.Join(env.Home, ".grok", "sessions"), history)
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	conv, err := conversation(f, to)
	if err != nil {
		return err
	}
	if err := to.Begin(conv); err != nil {
		return err
	}
	r := &reader{to: to}
	return jsonl.Each(ctx, f, to, r.line)
}

// conversation reads the path, <encoded directory>/<id>/, and the summary beside the file.
func conversation(f *transcript.File, to transcript.Sink) (transcript.Conversation, error) {
	dir := path.Dir(filepath.ToSlash(f.Path))
	c := transcript.Conversation{ID: path.Base(dir)}
	if cwd, err := url.PathUnescape(path.Base(path.Dir(dir))); err == nil && strings.HasPrefix(cwd, "/") {
		c.CWD = cwd
	}
	if c.ID == "." || c.ID == "/" {
		c.ID = transcript.HashID(name, f.Path)
	}
	data, err := f.Beside("summary.json")
	if err != nil {
		return c, nil
	}
	if _, err := to.Keep("summary.json", data); err != nil {
		return c, err
	}
	v := loose.Value(data)
	first := func(names ...string) string {
		for _, n := range names {
			if text := v.Get(strings.Split(n, ".")...).Text(); text != "" {
				return text
			}
		}
		return ""
	}
	c.Title = first("generated_title", "title", "session_summary", "summary")
	if cwd := first("info.cwd", "cwd"); cwd != "" {
		c.CWD = cwd
	}
	records.ChildOf(&c, first("parent_session_id", "info.parent_session_id"), session.RelationSubagent)
	c.Created = v.Get("created_at").Time(time.UTC)
	to.Count("summary.json", "facts", 1)
	return c, nil
}

type reader struct {
	to    transcript.Sink
	model string
}

func (r *reader) line(o jsonl.Object) error {
	kind := o.Get("type").Text()
	entries, became := r.decode(o.Value, kind)
	r.to.Count(kind+" line", became, 1)
	line := transcript.Record{From: []transcript.Span{o.Span}}
	line.Entry.Timestamp = o.Get("timestamp").Time(time.UTC)
	return records.AddParts(r.to, line, "", entries)
}

// decode turns a line into entries, and says what it became. Reasoning is an item of OpenAI's
// Responses. A synthetic_reason says why Grok wrote a message in the user's name.
func (r *reader) decode(v loose.Value, kind string) ([]session.Entry, string) {
	m := &session.MessageEntry{Role: kind}
	switch kind {
	case "system", "user":
		m.Content = contents(v.Get("content"))
		if reason := v.Get("synthetic_reason").Text(); reason != "" {
			m.Metadata = map[string]any{session.MetaInjected: true, "reason": reason}
		}
	case "assistant":
		if entries := r.answer(v, m); len(m.Content) > 0 {
			return entries, "message"
		}
		return nil, transcript.OnlyKept
	case "reasoning":
		entries, err := openai.DecodeItem(v)
		if err != nil {
			return nil, transcript.OnlyKept
		}
		return entries, "message"
	case "tool_result":
		m.Role = session.RoleTool
		text := v.Get("content")
		m.Content = []session.Content{session.ToolResult(v.Get("tool_call_id").Text(), blocks.Plain(text), v.Get("is_error").Bool())}
	case "backend_tool_call": // a tool that the provider ran
		return []session.Entry{session.Custom(name+"."+kind, v.Get("kind").Map())}, "custom entry"
	default:
		return nil, transcript.OnlyKept
	}
	return []session.Entry{{Type: session.TypeMessage, Message: m}}, "message"
}

// answer reads a reply, after a model change if another model gave it.
func (r *reader) answer(v loose.Value, m *session.MessageEntry) []session.Entry {
	m.Provider, m.Model = "xai", v.Get("model_id").Text()
	m.Content = append(m.Content, blocks.Text(blocks.Plain(v.Get("content")))...)
	m.Content = append(m.Content, blocks.Calls(v.Get("tool_calls"), "id", "arguments")...)
	said := session.Entry{Type: session.TypeMessage, Message: m}
	if m.Model == "" || m.Model == r.model || len(m.Content) == 0 {
		return []session.Entry{said}
	}
	r.model = m.Model
	return []session.Entry{session.ModelChange("xai", m.Model), said}
}

// contents reads a text or a list of parts.
func contents(v loose.Value) []session.Content {
	if v.IsString() {
		return []session.Content{session.Text(v.Text())}
	}
	return blocks.List(v, func(part loose.Value) session.Content {
		switch part.Get("type").Text() {
		case "text":
			return session.Text(part.Get("text").Text())
		case "image":
			return blocks.Image(part.Get("url").Text())
		}
		return blocks.Unknown(part)
	})
}
