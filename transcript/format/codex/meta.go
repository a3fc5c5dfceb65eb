package codex

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// meta reads a header. The first is the thread's own. A fork repeats those of the
// threads that it came from right after it; later ones are written on resuming.
func (r *reader) meta(l line) error {
	switch v := l.payload; {
	case r.conv.ID == "":
		r.to.Count("session meta", "session", 1)
		return r.header(v)
	case !r.begun && v.Get("id").Text() == r.origin:
		r.to.Count("session meta of the parent", "link", 1)
		if further := v.Get("forked_from_id").Text(); further != "" {
			r.origin = further
		}
	default:
		r.to.Count("further session meta", transcript.OnlyKept, 1)
	}
	return nil
}

func (r *reader) header(v loose.Value) error {
	r.conv.ID = v.Get("id").Text()
	r.conv.CWD = v.Get("cwd").Text()
	r.conv.Created = timeOf(v)
	r.provider = v.Get("model_provider").Text()
	r.conv.Extra = make(map[string]any)
	for fact, path := range map[string][]string{
		"git_branch": {"git", "branch"}, "git_commit": {"git", "commit_hash"}, "git_repository": {"git", "repository_url"},
		"originator": {"originator"}, "cli_version": {"cli_version"}, "model_provider": {"model_provider"}, "agent_nickname": {"agent_nickname"}, "agent_role": {"agent_role"},
	} {
		if text := v.Get(path...).Text(); text != "" {
			r.conv.Extra[fact] = text
		}
	}
	if prompt := v.Get("base_instructions"); prompt.IsObject() && len(prompt) <= maxPrompt {
		r.conv.Extra[factPrompt] = prompt.Any()
	}
	if by := v.Get("source", "subagent"); by.Text() != "" { // such as a review
		r.conv.Extra[factSource] = v.Get("source").Any()
	}
	r.conv.Title = r.title()
	r.origin = r.conv.ID
	r.ownFrom = v.Get("subagent_history_start_ordinal").Int()
	r.link(v)
	return nil
}

// Facts of a thread that Codex uses when it resumes the thread.
const (
	factPrompt = "base_instructions" // the text before the conversation, in Codex's form
	factSource = "source"            // what started it, if that is not the user
	maxPrompt  = 64 << 10            // it goes into a session's header
)

// link finds out which thread this one came from.
func (r *reader) link(v loose.Value) {
	spawn := v.Get("source", "subagent", "thread_spawn")
	parent := cmp.Or(spawn.Get("parent_thread_id").Text(), v.Get("parent_thread_id").Text())
	switch {
	case v.Get("source", "subagent").Exists() || parent != "" && !v.Has("forked_from_id"):
		parent = cmp.Or(parent, v.Get("forked_from_id").Text())
		r.conv.Relation = session.RelationSubagent
	case v.Has("forked_from_id"):
		parent = v.Get("forked_from_id").Text()
		r.conv.Relation = session.RelationFork
		r.origin = parent
	case v.Has("history_base"):
		parent = v.Get("history_base", "thread_id").Text()
		r.conv.Relation = session.RelationFork
	}
	if parent == "" || parent == r.conv.ID {
		r.conv.Relation = ""
		return
	}
	r.conv.Parent = parent
	if r.findBase(v); r.base != nil {
		if r.conv.Relation == session.RelationFork {
			r.origin = r.base.reader.origin
			r.conv.Family, r.conv.Parent, r.conv.Relation = r.origin, "", ""
		}
		return
	}
	if f := r.rollout(parent); f != nil {
		r.past = readParent(f)
	}
	if r.past == nil {
		r.conv.Extra["parent_file"] = "not at hand: some of this may repeat it"
		return
	}
	if r.conv.Relation == session.RelationSubagent {
		r.conv.ParentCall = r.past.spawned[r.conv.ID]
		return
	}
	if v.Has("forked_from_id") {
		// The same records under the same ids: branches of one tree.
		r.origin = r.past.origin
		r.conv.Family, r.conv.Parent, r.conv.Relation = r.past.origin, "", ""
	}
}

// parentLog has the facts about its parent's file that a thread needs.
type parentLog struct {
	origin  string
	entries map[string]session.Entry // by the ids of their records
	turns   map[string]bool          // the ids of turns
	spawned map[string]string        // the calls that started threads, by thread
}

// entry returns the parent's entry with an id.
func (p *parentLog) entry(id string) (session.Entry, bool) {
	if p == nil {
		return session.Entry{}, false
	}
	e, ok := p.entries[id]
	return e, ok
}

// title returns the thread's name in Codex's list of threads, where the last line counts.
func (r *reader) title() string {
	data, err := r.file.Above(4).Beside("session_index.jsonl")
	if err != nil {
		return ""
	}
	title := ""
	for line := range bytes.Lines(data) {
		if v := loose.Value(line); v.Get("id").Text() == r.conv.ID {
			title = v.Get("thread_name").Text()
		}
	}
	return title
}

func readParent(f *transcript.File) *parentLog {
	p := &parentLog{entries: make(map[string]session.Entry), turns: make(map[string]bool), spawned: make(map[string]string)}
	to := parentSink{p}
	r := newReader(f, to)
	for o, err := range jsonl.Objects(context.Background(), f, to) {
		if err != nil {
			return nil
		}
		l := lineOf(o)
		if turn := turnOf(&l); turn != "" {
			p.turns[turn] = true
		}
		if thread := spawned(l.payload); thread != "" {
			p.spawned[thread] = l.payload.Get("call_id").Text()
		}
		if r.addLine(l) != nil {
			return nil
		}
	}
	if r.finish() != nil {
		return nil
	}
	p.origin = r.origin
	return p
}

// spawned returns the thread that a line says a call started, or "": in an event, or in
// the call's result.
func spawned(v loose.Value) string {
	if thread := v.Get("new_thread_id").Text(); thread != "" || v.Get("type").Text() != "function_call_output" {
		return thread
	}
	output, err := loose.Parse([]byte(v.Get("output").Text()))
	if err != nil {
		return ""
	}
	return output.Get("agent_id").Text()
}

// parentSink remembers the records.
type parentSink struct{ past *parentLog }

func (s parentSink) Begin(transcript.Conversation) error { return nil }

func (s parentSink) Add(r transcript.Record) error {
	s.past.entries[r.ID] = r.Entry
	return nil
}

func (s parentSink) Keep(string, []byte) (transcript.Span, error) { return transcript.Span{}, nil }

func (s parentSink) Count(string, string, int) {}

func (s parentSink) Problem(transcript.Problem) {}

// turnOf returns the id of the turn that a line begins, or "".
func turnOf(l *line) string {
	kind := l.payload.Get("type").Text()
	if l.kind == kindContext || l.kind == kindEvent && (kind == "task_started" || kind == "turn_started") {
		return l.payload.Get("turn_id").Text()
	}
	return ""
}

// isReplay reports whether a line of a subagent is its parent's. The header says where
// the subagent's own lines begin. Older ones do not: then turns are repeated as a whole,
// before those of the subagent's own. They are those that the parent's file has, or that
// are older than the subagent.
func (r *reader) isReplay(l *line) bool {
	if r.conv.Relation != session.RelationSubagent {
		return false
	}
	if r.ownFrom > 0 && l.ordinal.IsNumber() {
		return l.ordinal.Int() < r.ownFrom
	}
	if turn := turnOf(l); turn != "" {
		r.replaying = r.isPastTurn(turn)
	}
	return r.replaying
}

func (r *reader) isPastTurn(turn string) bool {
	if r.past != nil {
		return r.past.turns[turn]
	}
	at, ok := uuidTime(turn)
	return ok && !r.conv.Created.IsZero() && at.Before(r.conv.Created)
}

// uuidTime returns the time in a UUID of version 7.
func uuidTime(id string) (time.Time, bool) {
	raw, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	if err != nil || len(raw) != 16 || raw[6]>>4 != 7 {
		return time.Time{}, false
	}
	var ms int64
	for _, b := range raw[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms).UTC(), true
}
