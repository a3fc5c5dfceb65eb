package goose

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
	"github.com/coppice-dev/coppice/transcript/internal/walk"
)

// reader reads the messages of one session.
type reader struct {
	to              transcript.Sink
	id              string
	provider, model string

	usage  []ledgerLine // what requests cost, in order, until their answers come
	count  int
	hidden bool // earlier messages were hidden from the model
}

// ledgerLine is a line of the ledger.
type ledgerLine struct {
	at    time.Time
	model string
	usage session.Usage
}

func (r *reader) begin(c transcript.Conversation) error {
	r.id = c.ID
	return r.to.Begin(c)
}

// ledger reads what each request cost, if the database says so.
func (r *reader) ledger(ctx context.Context, db *sqlitefile.DB) error {
	return walk.Each(db.Rows(ctx, "usage_ledger", "session_id", r.id, "created_timestamp"), func(row loose.Value) error {
		u := session.Usage{
			CacheRead: row.Get("cache_read_tokens").Int(), CacheWrite: row.Get("cache_write_tokens").Int(),
			Output: row.Get("output_tokens").Int(), CostMicroUSD: session.MicroUSD(row.Get("cost").Number()),
		}
		u.Input = max(0, row.Get("input_tokens").Int()-u.CacheRead-u.CacheWrite)
		r.usage = append(r.usage, ledgerLine{row.Get("created_timestamp").Time(time.UTC), row.Get("model").Text(), u})
		r.to.Count("line of the ledger", "usage", 1)
		return nil
	})
}

// message adds the entries of a message: tool results are one, the rest is the user's or the
// model's.
func (r *reader) message(m, content, meta loose.Value, span transcript.Span) error {
	r.count++
	id := cmp.Or(m.Get("message_id").Text(), m.Get("id").Text())
	if id == "" {
		id = transcript.HashID("goose", r.id, strconv.Itoa(r.count), string(m))
	}
	at := cmp.Or(m.Get("created_timestamp").Time(time.UTC), m.Get("created").Time(time.UTC))
	said, results := split(content)
	r.to.Count(m.Get("role").Text()+" message", "message", 1)
	if summary, ok := r.compaction(meta, said); ok {
		return r.add(id, at, span, session.Compaction(summary, "", 0))
	}
	if len(results) > 0 {
		tool := id
		if len(said) > 0 {
			tool = id + "/results"
		}
		if err := r.add(tool, at, span, entry(session.RoleTool, results, meta)); err != nil {
			return err
		}
	}
	if len(said) == 0 {
		return nil
	}
	e := entry(m.Get("role").Text(), said, meta)
	if e.Message.Role == session.RoleAssistant {
		r.addUsage(e.Message, meta, at)
	}
	return r.add(id, at, span, e)
}

func (r *reader) add(id string, at time.Time, span transcript.Span, e session.Entry) error {
	e.Timestamp = at
	return r.to.Add(transcript.Record{ID: id, Entry: e, From: []transcript.Span{span}})
}

func entry(role string, content []session.Content, meta loose.Value) session.Entry {
	m := &session.MessageEntry{Role: role, Content: content}
	if hidden := meta.Get("userVisible"); hidden.Exists() && !hidden.Bool() {
		m.Metadata = map[string]any{session.MetaInjected: true}
	}
	return session.Entry{Type: session.TypeMessage, Message: m}
}

// compaction recognises the message that replaces what the model no longer sees: the first
// that only the model sees, after messages that it does not see.
func (r *reader) compaction(meta loose.Value, said []session.Content) (string, bool) {
	agent, user := meta.Get("agentVisible"), meta.Get("userVisible")
	if agent.Exists() && !agent.Bool() {
		r.hidden = true
		return "", false
	}
	if !r.hidden || !user.Exists() || user.Bool() || len(said) == 0 {
		return "", false
	}
	r.hidden = false
	return session.TextOf(said), true
}

// addUsage adds to an answer its line of the ledger: the first unused one that is not later
// than the answer.
func (r *reader) addUsage(m *session.MessageEntry, meta loose.Value, at time.Time) {
	m.Provider, m.Model = r.provider, r.model
	if provider := meta.Get("inference", "provider").Text(); provider != "" {
		m.Provider, m.Model = provider, meta.Get("inference", "requestedModel").Text()
	}
	if len(r.usage) == 0 || r.usage[0].at.After(at.Add(time.Second)) {
		return
	}
	usage := r.usage[0].usage
	m.Usage = &usage
	if r.usage[0].model != "" {
		m.Model = r.usage[0].model
	}
	r.usage = r.usage[1:]
}

// split turns a content into blocks: those of the message, and the answers of tools.
func split(content loose.Value) (said, results []session.Content) {
	for b := range content.Items() {
		switch b.Get("type").Text() {
		case "text":
			said = append(said, blocks.Text(b.Get("text").Text())...)
		case "image":
			said = append(said, session.Image(b.Get("mimeType").Text(), b.Get("data").Text()))
		case "thinking":
			said = append(said, session.Thinking(b.Get("thinking").Text(), b.Get("signature").Text()))
		case "redactedThinking":
			said = append(said, session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Redacted: b.Get("data").Text()}})
		case "reasoning":
			said = append(said, session.Thinking(b.Get("text").Text(), ""))
		case "toolRequest", "frontendToolRequest":
			said = append(said, request(b))
		case "toolResponse":
			results = append(results, response(b))
		case "conversationCompacted":
			// Old files use it to mark a place; it has no content.
		case "systemNotification":
			said = append(said, blocks.Text(b.Get("msg").Text())...)
		default:
			said = append(said, blocks.Unknown(b))
		}
	}
	return said, results
}

func request(b loose.Value) session.Content {
	call := b.Get("toolCall", "value")
	c := session.ToolUseJSON(b.Get("id").Text(), call.Get("name").Text(), call.Get("arguments").Raw())
	if b.Get("toolCall", "status").Text() == "error" {
		c.ToolUse.Extra = session.Fields{{Name: "error", Value: b.Get("toolCall", "error").Raw()}}
	}
	return c
}

// response is a tool's answer: a list of parts, and in newer versions whether it failed.
func response(b loose.Value) session.Content {
	result := b.Get("toolResult")
	id := b.Get("id").Text()
	if result.Get("status").Text() == "error" {
		return session.ToolResult(id, result.Get("error").Text(), true)
	}
	value := result.Get("value")
	parts, failed := value, false
	if value.IsObject() {
		parts, failed = value.Get("content"), value.Get("isError").Bool()
	}
	list := blocks.List(parts, func(part loose.Value) session.Content {
		switch part.Get("type").Text() {
		case "text":
			return session.Text(part.Get("text").Text())
		case "image":
			return session.Image(part.Get("mimeType").Text(), part.Get("data").Text())
		}
		return blocks.Unknown(part)
	})
	c := session.ToolResult(id, session.TextOf(list), failed)
	if slices.ContainsFunc(list, func(c session.Content) bool { return c.Text == nil }) {
		c.ToolResult.Parts = list
	}
	return c
}
