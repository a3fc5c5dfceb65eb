// Package droid reads the sessions of Factory's Droid: session files, which have a message in
// Anthropic's form on each line, and the JSON output of "droid exec".
package droid

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
	"github.com/coppice-dev/coppice/transcript/internal/records"
)

const name = "droid"

// Format returns Droid's format.
func Format() *transcript.Format {
	return &transcript.Format{Name: name, Title: "Droid", Detect: detect, Read: read, Places: places}
}

// detect looks at the first line: a session file begins with its header, the output of
// "droid exec" with any line that has the session's id and a time.
func detect(f *transcript.File) bool {
	v := jsonl.First(f)
	switch v.Get("type").Text() {
	case "session_start":
		return v.Has("id") && !v.Has("timestamp") // events of other programs say when
	case "system", "message", "tool_call":
		return streamID(v) != "" && v.Has("timestamp") && !v.Has("uuid") && (v.Has("role", "text") || v.Has("cwd") || v.Has("toolName"))
	}
	return false
}

// streamID is the session's id in a line of the stream.
func streamID(v loose.Value) string {
	return cmp.Or(v.Get("session_id").Text(), v.Get("sessionId").Text())
}

func places(env transcript.Env) []transcript.Place {
	return place.In(filepath.Join(env.Home, ".factory", "sessions"), "*.jsonl")
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	r := &reader{file: f, to: to}
	return jsonl.Each(ctx, f, to, r.line)
}

type reader struct {
	file  *transcript.File
	to    transcript.Sink
	conv  transcript.Conversation
	begun bool
	tree  jsonl.Tree
	model string
}

func (r *reader) line(o jsonl.Object) error {
	kind := o.Get("type").Text()
	if kind == "session_start" {
		return r.start(o.Value)
	}
	if err := r.begin(o.Value); err != nil {
		return err
	}
	switch {
	case kind == "message" && o.Get("message").IsObject():
		return r.message(o)
	case kind == "compaction_state" || kind == "compaction":
		return r.compaction(o)
	}
	entries, became := r.streamed(o.Value, kind)
	r.to.Count(kind+" line", became, 1)
	id := o.Get("id").Text()
	if len(entries) == 0 {
		r.tree.Pass(id, o.Get("parentId").Text())
	}
	if kind == "tool_call" || kind == "tool_result" {
		id = "" // the call's id, which both have
	}
	return r.add(o, id, entries)
}

// start reads the header of a session file.
func (r *reader) start(v loose.Value) error {
	if r.begun {
		r.to.Count("further session_start line", transcript.OnlyKept, 1)
		return nil
	}
	r.to.Count("session_start line", "session", 1)
	r.conv = transcript.Conversation{ID: v.Get("id").Text(), Title: cmp.Or(v.Get("sessionTitle").Text(), v.Get("title").Text()), CWD: v.Get("cwd").Text()}
	records.ChildOf(&r.conv, v.Get("parent").Text(), session.RelationFork) // or a continuation after a compaction
	r.tree.Pass(r.conv.ID, "")                                             // the first message names the session as its parent
	return r.begin(v)
}

// begin announces the session once. The output of "droid exec" has no header, so its first line
// names the session.
func (r *reader) begin(v loose.Value) error {
	if r.begun {
		return nil
	}
	r.begun = true
	if r.conv.ID == "" {
		r.conv.ID, r.conv.CWD = cmp.Or(streamID(v), transcript.HashID(name, r.file.Path)), v.Get("cwd").Text()
	}
	return r.to.Begin(r.conv)
}

// message reads a message of Anthropic's.
func (r *reader) message(o jsonl.Object) error {
	entries, err := anthropic.DecodeMessage(o.Get("message").Raw())
	if err != nil {
		r.to.Problem(transcript.Problem{Pos: o.Span.Pos, Line: o.No, Reason: err.Error()})
		return nil
	}
	r.to.Count("message line", "message", 1)
	return r.add(o, o.Get("id").Text(), entries)
}

// compaction reads a summary that replaces everything before it. Its member has two names.
func (r *reader) compaction(o jsonl.Object) error {
	summary := cmp.Or(o.Get("summaryText").Text(), o.Get("summary").Text())
	r.to.Count("compaction line", "compaction", 1)
	return r.add(o, o.Get("id").Text(), []session.Entry{session.Compaction(summary, "", o.Get("tokensBefore").Int())})
}

func (r *reader) add(o jsonl.Object, id string, entries []session.Entry) error {
	for _, e := range entries {
		blocks.MarkInjected(e.Message, isReminder)
	}
	line := transcript.Record{ID: id, Parent: r.tree.Resolve(o.Get("parentId").Text()), From: []transcript.Span{o.Span}}
	line.Entry.Timestamp = o.Get("timestamp").Time(time.UTC)
	return records.AddParts(r.to, line, ":", entries)
}

// isReminder recognises what Droid writes in the user's name. A prompt may follow it.
func isReminder(text string) bool {
	return strings.HasPrefix(text, "<system-reminder>") && strings.HasSuffix(text, "</system-reminder>")
}

// streamed reads a line of the output of "droid exec".
func (r *reader) streamed(v loose.Value, kind string) ([]session.Entry, string) {
	say := func(role session.MessageRole, blocks ...session.Content) []session.Entry {
		m := &session.MessageEntry{Role: role, Content: blocks}
		if role == session.RoleAssistant {
			m.Model = r.model
		}
		return []session.Entry{{Type: session.TypeMessage, Message: m}}
	}
	switch kind {
	case "system":
		r.model = v.Get("model").Text()
		if r.model == "" {
			return nil, transcript.OnlyKept
		}
		return []session.Entry{session.ModelChange("", r.model)}, "model change"
	case "message":
		return say(v.Get("role").Text(), session.Text(v.Get("text").Text())), "message"
	case "tool_call":
		return say(session.RoleAssistant, session.ToolUseJSON(cmp.Or(v.Get("toolCallId").Text(), v.Get("id").Text()), v.Get("toolName").Text(), v.Get("parameters").Raw())), "message"
	case "tool_result":
		text, failed := output(v.Get("value"))
		return say(session.RoleTool, session.ToolResult(cmp.Or(v.Get("toolCallId").Text(), v.Get("id").Text()), text, failed || v.Get("isError").Bool())), "message"
	case "completion":
		e := say(session.RoleAssistant, session.Text(v.Get("finalText").Text()))
		e[0].Message.Usage = provider.AnthropicUsage(v.Get("usage"))
		return e, "message"
	case "error", "todo_state":
		return []session.Entry{session.Custom(name+"."+kind, v.Map())}, "custom entry"
	}
	return nil, transcript.OnlyKept
}

// output returns what a tool answered: a text, or what a command printed.
func output(v loose.Value) (text string, failed bool) {
	if v.Has("stdout") {
		return v.Get("stdout").Text() + v.Get("stderr").Text(), v.Get("exitCode").Int() != 0
	}
	return blocks.Plain(v), false
}
