package cline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

// Since version 3, Cline's command line keeps a session in two documents: its messages in
// <id>.messages.json, and its facts in <id>.json. Messages are Anthropic's, whatever the
// provider, with an id, the model and what the response cost.

// sessionEnding ends the name of a document with the messages of a session.
const sessionEnding = ".messages.json"

// isSession recognises a session's messages by the file's name or by its first members.
func isSession(f *transcript.File) bool {
	head := strings.TrimLeft(strings.TrimPrefix(f.HeadText(), "\xef\xbb\xbf"), " \t\r\n")
	if !strings.HasPrefix(head, "{") {
		return false
	}
	seen := shape.OfFile(f)
	return strings.HasSuffix(filepath.Base(f.Path), sessionEnding) && seen.Has("messages") ||
		seen.Has("sessionId") && seen.Has("agent") && seen.Has("origin")
}

// sessionDir returns the directory of the sessions.
func sessionDir(env transcript.Env) string {
	if dir := strings.TrimSpace(env.Getenv("CLINE_SESSION_DATA_DIR")); dir != "" {
		return dir
	}
	if dir := strings.TrimSpace(env.Getenv("CLINE_DATA_DIR")); dir != "" {
		return filepath.Join(dir, "sessions")
	}
	return filepath.Join(env.Dir("CLINE_DIR", ".cline"), "data", "sessions")
}

func readSession(_ context.Context, f *transcript.File, to transcript.Sink) error {
	doc, err := records.Whole(f)
	if err != nil {
		return err
	}
	if !doc.Get("messages").IsArray() {
		return records.Refuse(f, errNotList)
	}
	r := &sessionReader{to: to, from: []transcript.Span{doc.Span}}
	if err := r.begin(f, doc.Value); err != nil {
		return err
	}
	for v := range doc.Get("messages").Items() {
		if err := r.message(v); err != nil {
			return err
		}
	}
	return nil
}

type sessionReader struct {
	to   transcript.Sink
	from []transcript.Span
	id   string
}

// begin announces the session to the sink.
func (r *sessionReader) begin(f *transcript.File, doc loose.Value) error {
	named := strings.TrimSuffix(filepath.Base(f.Path), sessionEnding)
	c := transcript.Conversation{ID: cmp.Or(doc.Get("sessionId").Text(), named, transcript.HashID(name, f.Path))}
	r.id = c.ID
	about, err := f.Beside(c.ID + ".json")
	if err != nil {
		return r.to.Begin(c) // the file is missing or unreadable
	}
	if _, err := r.to.Keep(c.ID+".json", about); err != nil {
		return err
	}
	v, err := loose.Parse(about)
	if err != nil {
		r.to.Problem(transcript.Problem{Reason: c.ID + ".json is not JSON: " + err.Error()})
		return r.to.Begin(c)
	}
	c.CWD, c.Created = v.Get("cwd").Text(), v.Get("started_at").Time(time.UTC)
	// Cline uses the first prompt as a title; there is no need to keep it twice.
	prompt, _ := unwrapped(v.Get("prompt").Text())
	if title := v.Get("metadata", "title").Text(); !strings.HasPrefix(prompt, strings.TrimRight(title, ".… ")) {
		c.Title = title
	}
	if parent := v.Get("parent_session_id").Text(); parent != c.ID {
		records.ChildOf(&c, parent, session.RelationSubagent)
	}
	return r.to.Begin(c)
}

// message adds a message. It skips text that was only shown to the user, such as an error.
func (r *sessionReader) message(v loose.Value) error {
	at := v.Get("ts").Time(time.UTC)
	if v.Get("metadata", "displayOnly").Bool() {
		r.to.Count("shown message", "custom entry", 1)
		return r.to.Add(transcript.Record{ID: v.Get("id").Text(), From: r.from, Entry: session.Entry{
			Type: session.TypeCustom, Timestamp: at,
			Custom: &session.CustomEntry{CustomType: name + "." + cmp.Or(v.Get("metadata", "displayRole").Text(), "shown"), Data: v.Map()},
		}})
	}
	entries, err := anthropic.DecodeMessage(plainMessage(v))
	if err != nil {
		r.to.Problem(transcript.Problem{Reason: err.Error()})
		return nil
	}
	r.to.Count(v.Get("role").Text()+" message", "message", 1)
	for i, e := range entries {
		r.finish(e.Message, v)
		e.Timestamp = at
		rec := transcript.Record{ID: v.Get("id").Text(), Entry: e, From: r.from}
		if i < len(entries)-1 && rec.ID != "" { // the message's id is that of its last part
			rec.ID = transcript.HashID(name, rec.ID, string(rune('0'+i)))
		}
		if err := r.to.Add(rec); err != nil {
			return err
		}
	}
	return nil
}

// plainMessage reduces a message to the members that Anthropic's have. Cline sends the model
// the JSON of what a tool returned as its result.
func plainMessage(v loose.Value) json.RawMessage {
	var o residue.Object
	o.Set("role", v.Get("role").Raw())
	content := v.Get("content")
	if !content.IsArray() {
		o.Set("content", content.Raw())
		return o.JSON()
	}
	var list []json.RawMessage
	for block := range content.Items() {
		list = append(list, plainBlock(block))
	}
	o.Set("content", residue.List(list))
	return o.JSON()
}

func plainBlock(block loose.Value) json.RawMessage {
	output := block.Get("content")
	if block.Get("type").Text() != "tool_result" || !output.IsArray() && !output.IsObject() {
		return block.Raw()
	}
	failed := output.IsArray()
	for part := range output.Items() {
		if part.Has("type") {
			return block.Raw() // Anthropic's own
		}
		failed = failed && part.Has("success") && !part.Get("success").Bool()
	}
	o := residue.Object(block.Except("content", "name"))
	var text bytes.Buffer
	if json.Compact(&text, output) != nil {
		return block.Raw()
	}
	o.Set("content", text.String())
	if failed && output.First().Exists() {
		o.Set("is_error", true)
	}
	return o.JSON()
}

// finish adds the members beside a message, and removes the tags that Cline puts around the
// user's words and does not send to the model.
func (r *sessionReader) finish(m *session.MessageEntry, v loose.Value) {
	m.Extra = withoutResidue(m.Extra)
	switch m.Role {
	case session.RoleAssistant:
		m.Model, m.Provider = v.Get("modelInfo", "id").Text(), v.Get("modelInfo", "provider").Text()
		if id := v.Get("id").Text(); id != "" {
			m.ResponseID = r.id + ":" + id
		}
		if m.Usage = blocks.Usage(v.Get("metrics")); m.Usage != nil {
			m.Usage.CostMicroUSD = session.MicroUSD(v.Get("metrics", "cost").Number())
		}
	case session.RoleUser:
		for i := range m.Content {
			if t := m.Content[i].Text; t != nil {
				text, mode := unwrapped(t.Content)
				if t.Content = text; mode != "" {
					m.Metadata = map[string]any{"mode": mode}
				}
			}
		}
		blocks.MarkInjected(m, isInjected)
	}
}

// inputPattern finds what the user said, and the mode in which they said it.
var inputPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^<user_input(?: mode="([^"]*)")?>(.*)</user_input>$`)
})

func unwrapped(text string) (inner, mode string) {
	if found := inputPattern().FindStringSubmatch(text); found != nil {
		return found[2], found[1]
	}
	return text, ""
}
