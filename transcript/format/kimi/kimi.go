// Package kimi reads the sessions of Kimi Code: logs of changes to an agent's context. The
// model's words are in the events of its loop.
package kimi

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
)

const name = "kimi"

// Format returns Kimi Code's format.
func Format() *transcript.Format {
	return &transcript.Format{Name: name, Title: "Kimi Code", Detect: detect, Read: read, Places: places}
}

func detect(f *transcript.File) bool {
	v := jsonl.First(f)
	return v.Get("type").Text() == "metadata" && v.Has("protocol_version")
}

func places(env transcript.Env) []transcript.Place {
	return place.In(filepath.Join(env.Dir("KIMI_CODE_HOME", ".kimi-code"), "sessions"), "wire.jsonl")
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	r := &reader{to: to, conv: conversation(f)}
	r.conv.Created = jsonl.First(f).Get("created_at").Time(time.UTC)
	if state, err := f.Above(2).Beside("state.json"); err == nil {
		r.readFacts(loose.Value(state))
	}
	if err := to.Begin(r.conv); err != nil {
		return err
	}
	if err := jsonl.Each(ctx, f, to, r.line); err != nil {
		return err
	}
	return r.flush()
}

// conversation reads the path: <workspace>/session_<id>/agents/<agent>/wire.jsonl.
func conversation(f *transcript.File) transcript.Conversation {
	parts := strings.Split(filepath.ToSlash(f.Path), "/")
	if n := len(parts); n >= 4 && parts[n-3] == "agents" {
		id := strings.TrimPrefix(parts[n-4], "session_")
		if agent := parts[n-2]; agent != "main" {
			return transcript.Conversation{ID: id + ":" + agent, Parent: id, Relation: session.RelationSubagent}
		}
		return transcript.Conversation{ID: id}
	}
	return transcript.Conversation{ID: transcript.HashID(name, f.Path)}
}

// readFacts records the session's facts from its state file, two directories above the logs of
// its agents.
func (r *reader) readFacts(state loose.Value) {
	if r.conv.Parent == "" {
		r.conv.Title = state.Get("title").Text()
	}
	r.conv.CWD = cmp.Or(state.Get("cwd").Text(), state.Get("workDir").Text())
}

type reader struct {
	to      transcript.Sink
	conv    transcript.Conversation
	current string   // the record that the next one follows, "" at the root
	history []string // the records of the messages in the context
	turns   []turn   // the user's
	// step is the model's current message and the records after it. They wait until the step
	// ends and its usage is known.
	step   []transcript.Record
	answer *session.MessageEntry

	provider, model, effort string
}

// turn is where a turn of the user begins.
type turn struct {
	before string // the record before it
	at     int    // its place in the history
}

func (r *reader) line(o jsonl.Object) error {
	kind := o.Get("type").Text()
	switch kind {
	case "context.append_loop_event":
		return r.event(o, o.Get("event"))
	case "context.append_message":
		r.to.Count(kind, "message", 1)
		return r.message(o, o.Get("message"))
	case "config.update", "profile.bind", "llm.request":
		return r.config(o, kind)
	case "context.apply_compaction":
		r.to.Count(kind, "compaction", 1)
		return r.compaction(o)
	case "context.undo":
		r.to.Count(kind, "branch", 1)
		return r.undo(o.Get("count").Int())
	case "context.clear":
		r.to.Count(kind, "branch", 1)
		err := r.flush()
		r.current, r.history, r.turns = "", nil, nil
		return err
	}
	r.to.Count(kind, transcript.OnlyKept, 1)
	return nil
}

// add adds a record that follows the current one.
func (r *reader) add(o jsonl.Object, e session.Entry) {
	e.Timestamp = o.Get("time").Time(time.UTC)
	rec := transcript.Record{
		ID: transcript.HashID(name, r.conv.ID, strconv.FormatInt(o.No, 10), string(e.Type)), Parent: cmp.Or(r.current, transcript.Root), Entry: e, From: []transcript.Span{o.Span},
	}
	r.current = rec.ID
	if e.Message != nil {
		r.history = append(r.history, rec.ID)
	}
	r.step = append(r.step, rec)
}

// flush passes on the records of a step.
func (r *reader) flush() error {
	for _, rec := range r.step {
		if err := r.to.Add(rec); err != nil {
			return err
		}
	}
	r.step, r.answer = nil, nil
	return nil
}

func (r *reader) message(o jsonl.Object, v loose.Value) error {
	if err := r.flush(); err != nil {
		return err
	}
	m := &session.MessageEntry{Role: v.Get("role").Text(), Content: blocks.List(v.Get("content"), block)}
	m.Content = append(m.Content, blocks.Calls(v.Get("toolCalls"), "id", "args")...)
	switch m.Role {
	case session.RoleTool:
		m.Content = []session.Content{session.ToolResult(v.Get("toolCallId").Text(), session.TextOf(m.Content), v.Get("isError").Bool())}
	case session.RoleUser:
		if origin := v.Get("origin", "kind").Text(); origin != "" && origin != "user" {
			m.Metadata = map[string]any{session.MetaInjected: true, "origin": origin}
		} else {
			r.turns = append(r.turns, turn{before: r.current, at: len(r.history)})
		}
	}
	r.add(o, session.Entry{Type: session.TypeMessage, Message: m})
	return r.flush()
}

// block reads a part of a message.
func block(part loose.Value) session.Content {
	switch part.Get("type").Text() {
	case "text":
		return session.Text(part.Get("text").Text())
	case "think":
		return session.Thinking(part.Get("think").Text(), part.Get("encrypted").Text())
	case "image_url":
		return blocks.Image(part.Get("imageUrl", "url").Text())
	}
	return blocks.Unknown(part)
}

// event reads an event of the model's loop.
func (r *reader) event(o jsonl.Object, v loose.Value) error {
	kind := v.Get("type").Text()
	switch kind {
	case "step.begin":
		r.to.Count(kind, "message", 1)
		return r.flush()
	case "content.part":
		r.to.Count(kind, "message", 1)
		r.addBlock(o, v, block(v.Get("part")))
	case "tool.call":
		r.to.Count(kind, "message", 1)
		r.addBlock(o, v, session.ToolUseJSON(v.Get("toolCallId").Text(), v.Get("name").Text(), v.Get("args").Raw()))
	case "tool.result":
		r.to.Count(kind, "message", 1)
		text := blocks.Plain(v.Get("result", "output"))
		r.add(o, session.Message(session.RoleTool, session.ToolResult(v.Get("toolCallId").Text(), text, v.Get("result", "isError").Bool())))
	case "step.end":
		r.to.Count(kind, "usage", 1)
		r.end(v)
	default:
		r.to.Count(kind, transcript.OnlyKept, 1)
	}
	return nil
}

// addBlock adds a block to the model's message.
func (r *reader) addBlock(o jsonl.Object, v loose.Value, c session.Content) {
	if r.answer == nil {
		r.answer = &session.MessageEntry{Role: session.RoleAssistant, Provider: r.provider, Model: r.model}
		r.answer.ResponseID = cmp.Or(v.Get("stepUuid").Text(), v.Get("uuid").Text())
		r.add(o, session.Entry{Type: session.TypeMessage, Message: r.answer})
	} else {
		at := slices.IndexFunc(r.step, func(rec transcript.Record) bool { return rec.Entry.Message == r.answer })
		r.step[at].From = append(r.step[at].From, o.Span)
	}
	r.answer.Content = append(r.answer.Content, c)
}

// end records what a step cost and why it ended.
func (r *reader) end(v loose.Value) {
	if r.answer == nil {
		return
	}
	if u := v.Get("usage"); u.IsObject() {
		r.answer.Usage = &session.Usage{
			Input: u.Get("inputOther").Int(), Output: u.Get("output").Int(),
			CacheRead: u.Get("inputCacheRead").Int(), CacheWrite: u.Get("inputCacheCreation").Int(),
		}
	}
	r.answer.StopReason = cmp.Or(v.Get("finishReason").Text(), r.answer.StopReason)
}

// config reads which model answers.
func (r *reader) config(o jsonl.Object, kind string) error {
	became := transcript.OnlyKept
	provider, model, ok := strings.Cut(o.Get("modelAlias").Text(), "/")
	if !ok {
		provider, model = "", provider
	}
	if model != "" && model != r.model {
		r.provider, r.model, became = provider, model, "model and effort"
		r.add(o, session.ModelChange(provider, model))
	}
	if effort := o.Get("thinkingEffort").Text(); effort != "" && effort != r.effort {
		r.effort, became = effort, "model and effort"
		r.add(o, session.ThinkingLevel(effort))
	}
	r.to.Count(kind, became, 1)
	return nil
}

// compaction reads a compaction: the first messages of the context were replaced
// by a summary.
func (r *reader) compaction(o jsonl.Object) error {
	first := ""
	n := o.Get("compactedCount")
	if at := n.Int(); n.IsNumber() && at >= 0 && at < len(r.history) {
		first = r.history[at]
		r.history = slices.Clone(r.history[at:])
	} else {
		r.history = nil
	}
	r.turns = nil // Kimi goes back no further
	r.add(o, session.Compaction(o.Get("summary").Text(), first, o.Get("tokensBefore").Int()))
	r.history = append([]string{r.current}, r.history...)
	return r.flush()
}

// undo goes back before the last turns of the user, which stay as a branch.
func (r *reader) undo(n int) error {
	if err := r.flush(); err != nil || n <= 0 || len(r.turns) == 0 {
		return err
	}
	at := max(len(r.turns)-n, 0)
	r.current = r.turns[at].before
	r.history = r.history[:min(r.turns[at].at, len(r.history))]
	r.turns = r.turns[:at]
	return nil
}
