package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash"
	"time"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// MarshalJSON writes the entry as it stands in a log.
func (e Entry) MarshalJSON() ([]byte, error) { return appendEntry(nil, &e) }

// MarshalJSON writes the header as it stands in a log.
func (h Header) MarshalJSON() ([]byte, error) { return appendHeader(nil, &h), nil }

// MarshalJSON writes the block as it stands in a log.
func (c Content) MarshalJSON() ([]byte, error) {
	w := writer{}
	w.content(&c)
	return w.buf, w.err
}

func appendHeader(dst []byte, h *Header) []byte {
	w := writer{buf: append(dst, '{')}
	w.str("type", string(TypeSession))
	w.str("id", h.ID)
	w.int("version", int64(h.Version))
	w.optStr("parent_session", h.ParentSession)
	extra := w.timestamp(h.CreatedAt, h.Extra)
	w.optStr("relation", h.Relation)
	w.optInt("continuation_index", int64(h.Continuation))
	w.optStr("cwd", h.CWD)
	w.optStr("key", h.Key)
	w.end(extra)
	return w.buf
}

// appendEntry writes an entry in its canonical form: type, id, parent_id and
// timestamp first, so that a reader learns the tree from the first bytes.
func appendEntry(dst []byte, e *Entry) ([]byte, error) {
	w := writer{buf: append(dst, '{')}
	w.str("type", string(e.Type))
	w.str("id", e.ID)
	w.key("parent_id")
	if e.ParentID == nil {
		w.buf = append(w.buf, "null"...)
	} else {
		w.buf = rawjson.AppendString(w.buf, *e.ParentID)
	}
	extra := w.timestamp(e.Timestamp, e.Extra)
	w.payload(e)
	w.end(extra)
	return w.buf, w.err
}

// timestamp writes the time and returns the other unknown members. One that was
// not a time is among them, and stays what it was.
func (w *writer) timestamp(t time.Time, extra Fields) Fields {
	w.key("timestamp")
	raw, rest, ok := extra.take("timestamp")
	if !ok || !t.IsZero() || isTime(raw) {
		w.buf = rawjson.AppendTime(w.buf, t)
		return extra
	}
	w.raw("timestamp", raw)
	return rest
}

// take returns the value of a field and the fields without it.
func (f Fields) take(name string) (value json.RawMessage, rest Fields, ok bool) {
	for i := range f {
		if f[i].Name == name {
			rest = append(append(rest, f[:i]...), f[i+1:]...)
			return f[i].Value, rest, true
		}
	}
	return nil, f, false
}

// writer appends JSON members to buf. Errors stick.
type writer struct {
	buf []byte
	err error
	// sum, if it is not nil, is given long strings piece by piece, and before them
	// what buf holds: so a fingerprint needs no copy of them.
	sum hash.Hash
}

// key begins a member. The comma depends on what stands before, so that no
// caller has to know whether it is the first.
func (w *writer) key(name string) {
	if w.buf[len(w.buf)-1] != '{' {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name...) // our own names need no escapes
	w.buf = append(w.buf, '"', ':')
}

func (w *writer) str(name, value string) {
	w.key(name)
	if w.sum != nil && len(value) > longString {
		w.long(value)
		return
	}
	w.buf = rawjson.AppendString(w.buf, value)
}

// longString is the length from which on a string is written in pieces.
const longString = 64 << 10

func (w *writer) long(value string) {
	w.sum.Write(append(w.buf, '"'))
	for len(value) > 0 {
		n := min(longString, len(value))
		for n < len(value) && n > longString-utf8.UTFMax && !utf8.RuneStart(value[n]) {
			n-- // a character stays whole
		}
		w.buf = rawjson.AppendString(w.buf[:0], value[:n])
		w.sum.Write(w.buf[1 : len(w.buf)-1])
		value = value[n:]
	}
	w.buf = append(w.buf[:0], '"')
}

func (w *writer) optStr(name, value string) {
	if value != "" {
		w.str(name, value)
	}
}

func (w *writer) int(name string, n int64) {
	w.key(name)
	w.buf = rawjson.AppendInt(w.buf, n)
}

func (w *writer) optInt(name string, n int64) {
	if n != 0 {
		w.int(name, n)
	}
}

func (w *writer) begin(name string) {
	w.key(name)
	w.buf = append(w.buf, '{')
}

// end writes the unknown members and closes the object.
func (w *writer) end(extra Fields) {
	for _, f := range extra {
		if len(w.buf) > 0 && w.buf[len(w.buf)-1] != '{' {
			w.buf = append(w.buf, ',')
		}
		w.buf = rawjson.AppendString(w.buf, f.Name)
		w.buf = append(w.buf, ':')
		w.raw(f.Name, f.Value)
	}
	w.buf = append(w.buf, '}')
}

// raw writes a value that is JSON already. A line must stay one line, and JSON
// may have newlines between its tokens: they are taken out.
func (w *writer) raw(name string, value json.RawMessage) {
	if !rawjson.Valid(value) {
		w.fail(name, fmt.Errorf("%.40q is not JSON", value))
		return
	}
	if bytes.IndexByte(value, '\n') < 0 {
		w.buf = append(w.buf, value...)
		return
	}
	var one bytes.Buffer
	_ = json.Compact(&one, value) // it is valid
	w.buf = append(w.buf, one.Bytes()...)
}

func (w *writer) fail(name string, err error) {
	if w.err == nil {
		w.err = &Error{Op: "encode", Kind: ErrInvalid, Err: fmt.Errorf("%s: %w", name, err)}
	}
}

// object writes a map. If it is still what raw was decoded to, raw is written,
// which keeps the order of its members and every digit of its numbers.
func (w *writer) object(name string, m map[string]any, raw json.RawMessage) {
	w.key(name)
	if raw != nil && sameObject(m, raw) {
		w.raw(name, raw)
		return
	}
	buf, err := rawjson.AppendAny(w.buf, m)
	if err != nil {
		w.fail(name, err)
		return
	}
	w.buf = buf
}

func sameObject(m map[string]any, raw json.RawMessage) bool { return rawjson.IsValue(m, raw) }

func (w *writer) payload(e *Entry) {
	switch {
	case e.Message != nil:
		w.message(e.Message)
	case e.ModelChange != nil:
		w.begin("model_change")
		w.str("provider", e.ModelChange.Provider)
		w.str("model_id", e.ModelChange.ModelID)
		w.end(e.ModelChange.Extra)
	case e.ThinkingLevel != nil:
		w.begin("thinking_level")
		w.str("thinking_level", e.ThinkingLevel.ThinkingLevel)
		w.end(e.ThinkingLevel.Extra)
	case e.Label != nil:
		w.begin("label")
		w.str("target_id", e.Label.TargetID)
		w.optStr("label", e.Label.Label)
		w.end(e.Label.Extra)
	case e.SessionInfo != nil:
		w.begin("session_info")
		w.str("name", e.SessionInfo.Name)
		w.end(e.SessionInfo.Extra)
	case e.Compaction != nil:
		w.compaction(e.Compaction)
	case e.BranchSummary != nil:
		w.begin("branch_summary")
		w.str("summary", e.BranchSummary.Summary)
		w.str("from_id", e.BranchSummary.FromID)
		w.end(e.BranchSummary.Extra)
	case e.Custom != nil:
		w.begin("custom")
		w.str("custom_type", e.Custom.CustomType)
		w.object("data", e.Custom.Data, e.Custom.rawData)
		w.end(e.Custom.Extra)
	case e.Leaf != nil:
		w.begin("leaf")
		w.optStr("from_id", e.Leaf.FromID)
		w.end(e.Leaf.Extra)
	case e.ContextEdit != nil:
		w.begin("context_edit")
		w.str("target_id", e.ContextEdit.TargetID)
		w.key("replacement")
		w.contents(e.ContextEdit.Replacement)
		w.end(e.ContextEdit.Extra)
	case e.Revert != nil:
		w.begin("revert")
		w.str("target_id", e.Revert.TargetID)
		w.end(e.Revert.Extra)
	case e.Merge != nil:
		w.merge(e.Merge)
	}
}

func (w *writer) message(m *MessageEntry) {
	w.begin("message")
	w.str("role", m.Role)
	w.key("content")
	if m.Content == nil {
		w.buf = append(w.buf, "[]"...)
	} else {
		w.contents(m.Content)
	}
	w.optStr("model", m.Model)
	w.optStr("provider", m.Provider)
	w.optStr("category", m.Category)
	if m.Tokens != nil {
		w.int("tokens", int64(*m.Tokens))
	}
	if m.Usage != nil {
		w.usage(m.Usage)
	}
	w.optStr("stop_reason", m.StopReason)
	w.optStr("response_id", m.ResponseID)
	if len(m.Metadata) > 0 || m.rawMetadata != nil && sameObject(m.Metadata, m.rawMetadata) {
		w.object("metadata", m.Metadata, m.rawMetadata)
	}
	w.end(m.Extra)
}

func (w *writer) usage(u *Usage) {
	w.begin("usage")
	w.optInt("input", int64(u.Input))
	w.optInt("output", int64(u.Output))
	w.optInt("cache_read", int64(u.CacheRead))
	w.optInt("cache_write", int64(u.CacheWrite))
	w.optInt("reasoning", int64(u.Reasoning))
	w.optInt("cost_micro_usd", int64(u.CostMicroUSD))
	w.end(u.Extra)
}

func (w *writer) compaction(c *CompactionEntry) {
	w.begin("compaction")
	w.str("summary", c.Summary)
	w.str("first_kept_entry_id", c.FirstKeptEntryID)
	if c.TokensBefore != 0 || !c.Extra.has([]byte("tokens_before")) { // else one that is no count stays what it was
		w.int("tokens_before", int64(c.TokensBefore))
	}
	if c.State != nil {
		w.begin("state")
		w.optStr("provider", c.State.Provider)
		w.optStr("model", c.State.Model)
		w.optStr("thinking_level", c.State.ThinkingLevel)
		w.kept(c.State.Kept)
		w.end(c.State.Extra)
	}
	w.end(c.Extra)
}

func (w *writer) kept(entries []KeptEntry) {
	if entries == nil {
		return // not the same as none
	}
	w.key("kept")
	w.buf = append(w.buf, '[')
	for i, k := range entries {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = append(w.buf, '{')
		w.str("id", k.ID)
		w.optInt("at", int64(k.At))
		w.buf = append(w.buf, '}')
	}
	w.buf = append(w.buf, ']')
}

func (w *writer) merge(m *MergeEntry) {
	w.begin("merge")
	w.str("from_id", m.FromID)
	w.optStr("summary", m.Summary)
	if len(m.EntryIDs) > 0 {
		w.key("entry_ids")
		w.buf = append(w.buf, '[')
		for i, id := range m.EntryIDs {
			if i > 0 {
				w.buf = append(w.buf, ',')
			}
			w.buf = rawjson.AppendString(w.buf, id)
		}
		w.buf = append(w.buf, ']')
	}
	w.end(m.Extra)
}

func (w *writer) contents(blocks []Content) {
	if blocks == nil {
		w.buf = append(w.buf, "null"...)
		return
	}
	w.buf = append(w.buf, '[')
	for i := range blocks {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.content(&blocks[i])
	}
	w.buf = append(w.buf, ']')
}

func (w *writer) content(c *Content) {
	if c.Raw != nil {
		w.raw("content block", c.Raw)
		return
	}
	w.buf = append(w.buf, '{')
	w.str("type", string(c.Type))
	switch {
	case c.Text != nil:
		w.begin("text")
		w.str("content", c.Text.Content)
		w.end(c.Text.Extra)
	case c.Image != nil:
		w.begin("image")
		w.source(c.Image.Source)
		w.end(c.Image.Extra)
	case c.ToolUse != nil:
		w.begin("tool_use")
		w.str("id", c.ToolUse.ID)
		w.str("name", c.ToolUse.Name)
		if c.ToolUse.opaque && c.ToolUse.Input == nil {
			w.key("input")
			w.raw("input", c.ToolUse.rawInput)
		} else {
			w.object("input", c.ToolUse.Input, c.ToolUse.rawInput)
		}
		w.end(c.ToolUse.Extra)
	case c.ToolResult != nil:
		w.toolResult(c.ToolResult)
	case c.Thinking != nil:
		w.begin("thinking")
		w.str("content", c.Thinking.Content)
		w.optStr("signature", c.Thinking.Signature)
		w.optStr("redacted", c.Thinking.Redacted)
		w.end(c.Thinking.Extra)
	case c.Audio != nil:
		w.begin("audio")
		w.source(c.Audio.Source)
		w.end(c.Audio.Extra)
	case c.File != nil:
		w.begin("file")
		w.optStr("name", c.File.Name)
		w.source(c.File.Source)
		w.end(c.File.Extra)
	}
	w.end(c.Extra)
}

func (w *writer) toolResult(r *ToolResultContent) {
	w.begin("tool_result")
	w.str("tool_use_id", r.ToolUseID)
	w.key("is_error")
	if r.IsError {
		w.buf = append(w.buf, "true"...)
	} else {
		w.buf = append(w.buf, "false"...)
	}
	w.dataOrBlob("content", r.Content, string(r.Blob), r.Size)
	if len(r.Parts) > 0 {
		w.key("parts")
		w.contents(r.Parts)
	}
	w.end(r.Extra)
}

func (w *writer) source(s *Source) {
	if s == nil {
		w.key("source")
		w.buf = append(w.buf, "null"...)
		return
	}
	w.begin("source")
	w.str("type", s.Type)
	w.str("media_type", s.MediaType)
	w.dataOrBlob("data", s.Data, string(s.Blob), s.Size)
	w.end(s.Extra)
}

// dataOrBlob writes the data or, if there is none here, where it is kept.
func (w *writer) dataOrBlob(name, data, blob string, size int64) {
	if data == "" && blob != "" {
		w.str("blob", blob)
		w.int("size", size)
		return
	}
	w.str(name, data)
}
