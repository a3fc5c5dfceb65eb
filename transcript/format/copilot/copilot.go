// Package copilot reads the sessions of GitHub's Copilot CLI: logs of events,
// each with the id of the event before it.
package copilot

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

const name = "copilot-cli"

// Format returns Copilot CLI's format.
func Format() *transcript.Format {
	return &transcript.Format{Name: name, Title: "Copilot CLI", Detect: detect, Read: read, Places: places, Resume: resume}
}

func detect(f *transcript.File) bool {
	v := jsonl.First(f)
	kind := v.Get("type").Text()
	return v.Get("data").IsObject() && v.Has("id", "timestamp") && slices.ContainsFunc(kinds, func(beginning string) bool { return strings.HasPrefix(kind, beginning) })
}

// kinds are the beginnings of the types that events have. Those of other programs' events have
// dots too.
var kinds = []string{"session.", "user.message", "assistant.", "tool.execution_", "system.", "subagent.", "hook."}

func resume(id string) []string { return []string{"copilot", "--resume", id} }

func places(env transcript.Env) []transcript.Place {
	return []transcript.Place{{
		Dir: filepath.Join(env.Dir("COPILOT_HOME", ".copilot"), "session-state"),
		// <id>/events.jsonl, or <id>.jsonl with old versions.
		Match: func(file string) bool {
			return path.Base(file) == "events.jsonl" || !strings.Contains(file, "/") && path.Ext(file) == ".jsonl"
		},
	}}
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	r := &reader{file: f, to: to, threads: make(map[string]*thread), bills: make(map[string]bill)}
	return jsonl.Each(ctx, f, to, r.event)
}

type reader struct {
	file    *transcript.File
	to      transcript.Sink
	id      string
	threads map[string]*thread // by the call that started them; "" is the session
	current *thread
	bills   map[string]bill // by API call, until its message comes
}

// bill is what an API call cost. Copilot logs it before the call's message.
type bill struct {
	event  jsonl.Object
	thread *thread
	usage  *session.Usage
}

// thread is a conversation: the session's, or that of an agent that a call started. An
// agent's events are among the session's.
type thread struct {
	conv  transcript.Conversation
	tree  jsonl.Tree
	last  string          // the last record
	seen  map[string]bool // ids of records
	model string
}

func (r *reader) event(o jsonl.Object) error {
	data := o.Get("data")
	kind := o.Get("type").Text()
	if kind == "session.start" && r.id == "" {
		r.id = data.Get("sessionId").Text()
	}
	t, err := r.switchThread(data.Get("parentToolCallId").Text())
	if err != nil {
		return err
	}
	if err := r.readFacts(t, kind, data); err != nil {
		return err
	}
	if kind == "session.usage_record" {
		r.noteBill(t, o)
		r.to.Count(kind, "usage", 1)
		t.tree.Pass(o.Get("id").Text(), o.Get("parentId").Text())
		return nil
	}
	e, became := t.decode(kind, data)
	if kind == "assistant.message" {
		r.addCost(e.Message)
	}
	id, parent := o.Get("id").Text(), t.tree.Resolve(o.Get("parentId").Text())
	if endsCalls[kind] && parent == t.last {
		if err := r.addOtherCosts(t); err != nil {
			return err
		}
		parent = t.last
	}
	r.to.Count(kind, became, 1)
	if became == transcript.OnlyKept {
		t.tree.Pass(id, parent)
		return nil
	}
	e.Timestamp = o.Get("timestamp").Time(time.UTC)
	return r.add(t, transcript.Record{ID: id, Parent: parent, Entry: e, From: []transcript.Span{o.Span}})
}

func (r *reader) add(t *thread, rec transcript.Record) error {
	switch {
	case t.last == "":
		rec.Parent = transcript.Root
	case !t.seen[rec.Parent]: // an event of another thread
		rec.Parent = t.last
	}
	if t.seen[rec.ID] {
		rec.ID = "" // not an id then
	}
	if rec.ID == "" {
		rec.ID = transcript.HashID(name, t.conv.ID, t.last, string(rec.Entry.Type), rec.Entry.Timestamp.String())
	}
	t.seen[rec.ID] = true
	t.last = rec.ID
	return r.to.Add(rec)
}

// switchThread switches to the thread that a call started.
func (r *reader) switchThread(call string) (*thread, error) {
	t := r.threads[call]
	if t == nil {
		t = &thread{seen: make(map[string]bool)}
		if r.id == "" {
			r.id = r.idOfPath()
		}
		t.conv.ID = r.id
		if call == "" {
			t.conv.Title = r.title()
		} else {
			t.conv = transcript.Conversation{
				ID: r.id + ":" + call, Parent: r.id, Relation: session.RelationSubagent, ParentCall: call,
			}
		}
		r.threads[call] = t
	}
	if t == r.current {
		return t, nil
	}
	r.current = t
	return t, r.to.Begin(t.conv)
}

// idOfPath is the id of a session whose first event is lost.
func (r *reader) idOfPath() string {
	file := filepath.ToSlash(r.file.Path)
	if path.Base(file) == "events.jsonl" {
		return path.Base(path.Dir(file))
	}
	return transcript.HashID(name, r.file.Path)
}

// title returns the name in the file beside the events, which is YAML of one level. Older
// versions have a summary there. A name that only repeats the first prompt does not count.
func (r *reader) title() string {
	data, err := r.file.Beside("workspace.yaml")
	if err != nil {
		return ""
	}
	members := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		if name, text, ok := strings.Cut(line, ":"); ok {
			members[name] = strings.Trim(strings.TrimSpace(text), `"'`)
		}
	}
	if members["user_named"] == "true" {
		return members["name"]
	}
	return members["summary"]
}

// readFacts records what an event says about the session.
func (r *reader) readFacts(t *thread, kind string, data loose.Value) error {
	if kind != "session.start" && kind != "session.resume" {
		return nil
	}
	c := transcript.Conversation{ID: t.conv.ID, CWD: data.Get("context", "cwd").Text(), Created: data.Get("startTime").Time(time.UTC)}
	for fact, path := range map[string][]string{
		"git_branch": {"context", "branch"}, "git_repository": {"context", "repository"}, "version": {"copilotVersion"},
	} {
		if text := data.Get(path...).Text(); text != "" {
			if c.Extra == nil {
				c.Extra = make(map[string]any)
			}
			c.Extra[fact] = text
		}
	}
	return r.to.Begin(c)
}
