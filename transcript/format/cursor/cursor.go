// Package cursor reads the transcripts of Cursor's agent: lines of a role and
// Anthropic-like blocks, without ids or times.
package cursor

import (
	"context"
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

const name = "cursor"

// Format returns the format of Cursor's agent.
func Format() *transcript.Format {
	return &transcript.Format{Name: name, Title: "Cursor agent", Detect: detect, Read: read, Places: places}
}

func detect(f *transcript.File) bool {
	v := jsonl.First(f)
	return v.Has("role") && v.Get("message", "content").IsArray() && !v.Has("type") && !v.Has("uuid")
}

func places(env transcript.Env) []transcript.Place {
	return []transcript.Place{{Dir: filepath.Join(env.Home, ".cursor", "projects"), Match: place.Below("agent-transcripts", "*.jsonl")}}
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	r := &reader{to: to, id: idOf(f.Path)}
	if err := to.Begin(conversation(f, r.id)); err != nil {
		return err
	}
	return jsonl.Each(ctx, f, to, r.line)
}

// idOf returns a transcript's id: the name of its file, where Cursor put it.
func idOf(file string) string {
	if !strings.Contains(filepath.ToSlash(file), "/agent-transcripts/") {
		return transcript.HashID(name, file)
	}
	return strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
}

// conversation reads the path: a transcript is named by its id, and one in a directory
// "subagents" belongs to the transcript of the directory above.
func conversation(f *transcript.File, id string) transcript.Conversation {
	c := transcript.Conversation{ID: id}
	dir := path.Dir(filepath.ToSlash(f.Path))
	if path.Base(dir) == "subagents" {
		if parent := path.Base(path.Dir(dir)); parent != "." && parent != "/" && parent != "agent-transcripts" {
			c.Parent, c.Relation = parent, session.RelationSubagent
		}
	}
	return c
}

type reader struct {
	to    transcript.Sink
	id    string
	calls int
	open  []call // calls that have no result yet
}

// call is a call without an id, for which we made one.
type call struct{ id, name string }

func (r *reader) line(o jsonl.Object) error {
	if !o.Has("role") || !o.Get("message", "content").IsArray() {
		r.to.Count(strings.TrimSpace(o.Get("type").Text()+" line"), transcript.OnlyKept, 1)
		return nil
	}
	var m residue.Object
	m.Set("role", o.Get("role").Raw())
	m.Set("content", r.content(o.Get("message", "content")))
	entries, err := anthropic.DecodeMessage(m.JSON())
	if err != nil {
		r.to.Problem(transcript.Problem{Pos: o.Span.Pos, Line: o.No, Reason: err.Error()})
		return nil
	}
	r.to.Count(o.Get("role").Text()+" line", "message", 1)
	for _, e := range entries {
		if e.Message.Role == session.RoleAssistant {
			e.Message.Model = o.Get("model").Text()
		}
		unwrap(e.Message)
	}
	return records.AddParts(r.to, transcript.Record{From: []transcript.Span{o.Span}}, "", entries)
}

// content converts blocks to Anthropic's form: Cursor leaves out the ids of calls, and spells
// some blocks differently.
func (r *reader) content(v loose.Value) json.RawMessage {
	var blocks []json.RawMessage
	for b := range v.Items() {
		o := residue.Object(b.Except())
		switch strings.ReplaceAll(b.Get("type").Text(), "-", "_") {
		case "tool_use", "tool_call":
			r.calls++
			c := call{id: b.Get("id").Text(), name: b.Get("name").Text()}
			if c.id == "" {
				c.id = r.id + "-call-" + strconv.Itoa(r.calls)
			}
			r.open = append(r.open, c)
			o.Set("type", "tool_use")
			o.Set("id", c.id)
			if !b.Get("input").IsObject() {
				o.Set("input", json.RawMessage("{}"))
			}
		case "tool_result":
			o.Set("type", "tool_result")
			o.Set("tool_use_id", r.answered(b))
		}
		blocks = append(blocks, o.JSON())
	}
	return residue.List(blocks)
}

// answered returns the call that a result answers: the one that it names, if that is known,
// or else the first open call of its tool.
func (r *reader) answered(b loose.Value) string {
	id, tool := b.Get("tool_use_id").Text(), b.Get("name").Text()
	at := slices.IndexFunc(r.open, func(c call) bool { return c.id == id })
	if at < 0 {
		at = slices.IndexFunc(r.open, func(c call) bool { return tool == "" || c.name == tool })
	}
	if at < 0 {
		return id
	}
	c := r.open[at]
	r.open = slices.Delete(r.open, at, at+1)
	return c.id
}

// unwrap removes the tags around a prompt, and marks what Cursor wrote in the user's name.
func unwrap(m *session.MessageEntry) {
	if m.Role != session.RoleUser || len(m.Content) == 0 {
		return
	}
	injected := true
	for _, c := range m.Content {
		if c.Text == nil {
			injected = false
			continue
		}
		text := strings.TrimSpace(c.Text.Content)
		if inner, ok := strings.CutPrefix(text, "<user_query>"); ok {
			c.Text.Content = strings.TrimSpace(strings.TrimSuffix(inner, "</user_query>"))
			injected = false
		} else if !isTagged(text) {
			injected = false
		}
	}
	if injected {
		m.Metadata = map[string]any{session.MetaInjected: true}
	}
}

// isTagged reports whether a text is one of the notes that Cursor adds.
func isTagged(text string) bool {
	return slices.ContainsFunc([]string{"<system_reminder>", "<open_and_recently_viewed_files>", "<user_info>", "<git_status>", "<rules>", "<attached_files>"},
		func(tag string) bool { return strings.HasPrefix(text, tag) && strings.HasSuffix(text, "</"+tag[1:]) })
}
