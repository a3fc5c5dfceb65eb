// Package amp reads the threads of Sourcegraph's Amp: one JSON document each.
package amp

import (
	"cmp"
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

const name = "amp"

// Format returns Amp's format.
func Format() *transcript.Format {
	return &transcript.Format{Name: name, Title: "Amp", Detect: detect, Read: read, Places: places, Resume: resume}
}

// detect looks for an id of Amp's among the first members. The head may be all
// that is known of a long document.
func detect(f *transcript.File) bool {
	seen := shape.OfFile(f)
	return seen.Has("messages") && seen.Begins("id", "T-")
}

func resume(id string) []string { return []string{"amp", "threads", "continue", id} }

func places(env transcript.Env) []transcript.Place {
	return place.In(filepath.Join(place.Data(env), "amp", "threads"), "T-*.json")
}

func read(_ context.Context, f *transcript.File, to transcript.Sink) error {
	doc, err := records.Whole(f)
	if err != nil {
		return err
	}
	conv := conversation(doc.Value)
	conv.ID = cmp.Or(conv.ID, transcript.HashID(name, f.Path))
	if err := to.Begin(conv); err != nil {
		return err
	}
	all := []transcript.Span{doc.Span}
	for v := range doc.Get("messages").Items() {
		if err := add(to, conv.ID, v, all); err != nil {
			return err
		}
	}
	return addContinuation(to, conv.ID, doc.Value, all)
}

// addContinuation records which thread continues this one: the first of those that were
// started from it.
func addContinuation(to transcript.Sink, thread string, doc loose.Value, from []transcript.Span) error {
	for link := range doc.Get("relationships").Items() {
		next := link.Get("threadID").Text()
		if link.Get("role").Text() != "parent" || link.Get("type").Text() != "handoff" || next == "" { // this one is the parent
			continue
		}
		record := transcript.ContinuedTo(name, thread, next, time.Time{})
		record.From = from
		return to.Add(record)
	}
	return nil
}

func conversation(doc loose.Value) transcript.Conversation {
	c := transcript.Conversation{ID: doc.Get("id").Text(), Title: doc.Get("title").Text(), Created: doc.Get("created").Time(time.UTC)}
	tree := doc.Get("env", "initial", "trees").First()
	if u, err := url.Parse(tree.Get("uri").Text()); err == nil && u.Scheme == "file" {
		c.CWD = u.Path
	}
	if ref := tree.Get("repository", "ref").Text(); ref != "" {
		c.Extra = map[string]any{"git_branch": strings.TrimPrefix(ref, "refs/heads/")}
	}
	records.ChildOf(&c, doc.Get("mainThreadID").Text(), session.RelationSubagent)
	for link := range doc.Get("relationships").Items() {
		if link.Get("role").Text() == "child" && c.Parent == "" { // this one is the child
			c.Parent, c.Relation = link.Get("threadID").Text(), session.RelationContinuation
			if link.Get("type").Text() == "fork" {
				c.Relation = session.RelationFork
			}
		}
	}
	return c
}

// add adds a message. Amp puts results into the user's messages; here they become messages of
// their own.
func add(to transcript.Sink, thread string, v loose.Value, from []transcript.Span) error {
	m := &session.MessageEntry{Role: v.Get("role").Text(), StopReason: v.Get("state", "stopReason").Text()}
	var results []session.Content
	for block := range v.Get("content").Items() {
		if block.Get("type").Text() == "tool_result" {
			results = append(results, result(block))
			continue
		}
		m.Content = append(m.Content, content(block))
	}
	id := v.Get("messageId").Name()
	if usage := v.Get("usage"); usage.IsObject() {
		m.Model = usage.Get("model").Text()
		m.Usage = &session.Usage{
			Input: usage.Get("inputTokens").Int(), Output: usage.Get("outputTokens").Int(),
			CacheRead: usage.Get("cacheReadInputTokens").Int(), CacheWrite: usage.Get("cacheCreationInputTokens").Int(),
		}
		m.ResponseID = thread + ":" + id
	}
	to.Count(m.Role+" message", "message", 1)
	var entries []session.Entry
	if len(results) > 0 {
		entries = append(entries, session.Message(session.RoleTool, results...))
	}
	if len(m.Content) > 0 || len(results) == 0 {
		entries = append(entries, session.Entry{Type: session.TypeMessage, Message: m})
	}
	for i, e := range entries {
		e.Timestamp = v.Get("meta", "sentAt").Time(time.UTC)
		rec := transcript.Record{Entry: e, From: from}
		if id != "" { // the place in the thread
			rec.ID = transcript.HashID(name, thread, id)
			if i < len(entries)-1 {
				rec.ID = transcript.HashID(name, thread, id, "results")
			}
		}
		if err := to.Add(rec); err != nil {
			return err
		}
	}
	return nil
}

func content(v loose.Value) session.Content {
	switch v.Get("type").Text() {
	case "text":
		return session.Text(v.Get("text").Text())
	case "thinking":
		return session.Thinking(v.Get("thinking").Text(), v.Get("signature").Text())
	case "tool_use":
		return session.ToolUseJSON(v.Get("id").Text(), v.Get("name").Text(), v.Get("input").Raw())
	case "image":
		source := v.Get("source")
		if source.Get("type").Text() == "base64" {
			return session.Image(source.Get("mediaType").Text(), source.Get("data").Text())
		}
		return blocks.Image(source.Get("url").Text())
	}
	return blocks.Unknown(v)
}

// result reads a tool's answer: the state of its run.
func result(v loose.Value) session.Content {
	run := v.Get("run")
	status := run.Get("status").Text()
	output := run.Get("result")
	for _, path := range [][]string{{"error", "message"}, {"error"}, {"reason"}} {
		if !output.Exists() {
			output = run.Get(path...)
		}
	}
	text := blocks.Plain(output)
	if text == "" && status != "done" {
		text = status
	}
	return session.ToolResult(v.Get("toolUseID").Text(), text, status == "error" || status == "cancelled" || status == "rejected-by-user")
}
