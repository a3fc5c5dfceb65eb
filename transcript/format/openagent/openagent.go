// Package openagent reads and writes the sessions of OpenAgent-Terminal: a JSON
// file for each, and index.json, which lists them.
package openagent

import (
	"cmp"
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

const (
	name      = "openagent"
	indexFile = "index.json"
	// timeForm is how the program writes times: local, without a zone. It sorts
	// them, and cannot compare such a time with one that has a zone.
	timeForm = "2006-01-02T15:04:05.000000"

	// Facts of a session that its messages do not show: how many tokens the program counted,
	// and how many messages there were then.
	factTokens   = "total_tokens"
	factMessages = "messages"
)

// Format returns the format.
func Format() *transcript.Format {
	return &transcript.Format{
		Name: name, Title: "OpenAgent-Terminal",
		Detect: detect, Read: read, Places: places, Write: write,
	}
}

func places(env transcript.Env) []transcript.Place {
	return []transcript.Place{{
		Dir: filepath.Join(env.Dir("XDG_CONFIG_HOME", ".config"), "openagent-terminal", "sessions"),
		Match: func(path string) bool {
			return strings.HasSuffix(path, ".json") && !strings.Contains(path, "/") && path != indexFile
		},
	}}
}

// detect looks at the beginning only: the metadata come first.
func detect(f *transcript.File) bool {
	seen := shape.OfFile(f)
	return isIndex(f) || seen.Has("metadata.session_id") && seen.Has("metadata.total_tokens")
}

func isIndex(f *transcript.File) bool {
	head := f.HeadText()
	return filepath.Base(f.Path) == indexFile && strings.Contains(head, `"sessions"`) && strings.Contains(head, `"session_id"`)
}

func read(_ context.Context, f *transcript.File, to transcript.Sink) error {
	if isIndex(f) {
		whole, err := records.Whole(f)
		for range whole.Value.Get("sessions").Items() {
			to.Count("line of the index", "left to the session's own file", 1)
		}
		return err
	}
	whole, err := records.WholeOrTorn(f, "messages", to)
	if err != nil {
		return err
	}
	return readSession(f, whole.Value, whole.Span, to)
}

func readSession(f *transcript.File, v loose.Value, span transcript.Span, to transcript.Sink) error {
	meta := v.Get("metadata")
	c := transcript.Conversation{
		ID:      meta.Get("session_id").Text(),
		Title:   meta.Get("title").Text(),
		Created: meta.Get("created_at").Time(time.Local),
	}
	for tag := range meta.Get("tags").Items() {
		c.Tags = append(c.Tags, tag.Text())
	}
	if tokens := meta.Get("total_tokens"); tokens.IsNumber() && tokens.Int() > 0 {
		n := 0
		for range v.Get("messages").Items() {
			n++
		}
		c.Extra = map[string]any{factTokens: tokens.Int(), factMessages: n}
	}
	c.ID = cmp.Or(c.ID, strings.TrimSuffix(filepath.Base(f.Path), ".json"))
	if c.Title == "" {
		c.Title = titleInIndex(f, c.ID)
	}
	if err := to.Begin(c); err != nil {
		return err
	}
	d := decoder{session: c.ID, seen: make(map[string]int)}
	for m := range v.Get("messages").Items() {
		record := d.record(m)
		record.From = []transcript.Span{span}
		to.Count(record.Entry.Message.Role+" message", "message", 1)
		if err := to.Add(record); err != nil {
			return err
		}
	}
	return nil
}

// titleInIndex returns the title that the index beside a session has for it.
func titleInIndex(f *transcript.File, id string) string {
	for s := range records.Beside(f, indexFile).Get("sessions").Items() {
		if s.Get("session_id").Text() == id && s.Get("title").Text() != "" {
			return s.Get("title").Text()
		}
	}
	return ""
}

// decoder turns messages, which have no ids and name no calls, into records.
type decoder struct {
	session string
	seen    map[string]int // how often a message has occurred
	waiting []string       // the calls that have no result yet
}

func (d *decoder) record(m loose.Value) transcript.Record {
	d.seen[string(m)]++
	id := transcript.HashID(name, d.session, string(m), strconv.Itoa(d.seen[string(m)]))
	message := &session.MessageEntry{
		Role:     m.Get("role").Text(),
		Content:  d.content(m, id),
		Metadata: m.Get("metadata").Map(),
	}
	if len(message.Metadata) == 0 {
		message.Metadata = nil
	}
	message.Tokens = session.CountedTokens(m.Get("token_count").Int())
	entry := session.Entry{Type: session.TypeMessage, Timestamp: m.Get("timestamp").Time(time.Local), Message: message}
	made := encode(&entry)
	message.Extra = residue.Keep(message.Extra, name, residue.Of(loose.Value(made), m))
	return transcript.Record{ID: id, Entry: entry}
}

func (d *decoder) content(m loose.Value, id string) []session.Content {
	text := m.Get("content").Text()
	if m.Get("role").Text() == session.RoleTool && len(d.waiting) > 0 {
		call := d.waiting[0]
		d.waiting = d.waiting[1:]
		return []session.Content{session.ToolResult(call, text, false)}
	}
	list := blocks.Text(text)
	if calls := m.Get("tool_calls"); calls.First() != nil {
		d.waiting = nil // what was asked before will not be answered any more
		i := 0
		for call := range calls.Items() {
			use := session.ToolUseJSON("call_"+id[:8]+"_"+strconv.Itoa(i), call.Get("tool").Text(), call.Get("args").Raw())
			use.ToolUse.Extra = call.Except("tool", "args")
			d.waiting = append(d.waiting, use.ToolUse.ID)
			list = append(list, use)
			i++
		}
	}
	return list
}
