package session

import "github.com/coppice-dev/coppice/internal/rawjson"

// The members of each object of a line, in the order in which they are written. The
// unknown ones follow: see writer.end.

func (w *writer) payload(e *Entry) {
	k, p := e.payload()
	switch {
	case p == nil:
	case w.isOdd(string(kinds[k].name), 'o') && len(*p.extra()) == 0:
		// What stood under the payload's name was no object, and must stay. The
		// members were found among those of the entry, and go back there.
		p.write(w)
	default:
		outer := w.begin(string(kinds[k].name), *p.extra())
		p.write(w)
		w.end(outer)
	}
}

func (m *MessageEntry) write(w *writer) {
	w.str("role", m.Role)
	if m.Content != nil {
		w.contents("content", m.Content)
	} else if !w.isOdd("content", 'a', 's') {
		w.contents("content", []Content{})
	}
	w.optStr("model", m.Model)
	w.optStr("provider", m.Provider)
	w.optStr("category", m.Category)
	if m.Tokens != nil {
		w.int("tokens", int64(*m.Tokens))
	}
	if m.Usage != nil {
		m.Usage.write(w)
	}
	w.optStr("stop_reason", m.StopReason)
	w.optStr("response_id", m.ResponseID)
	if len(m.Metadata) > 0 || m.rawMetadata != nil && sameObject(m.Metadata, m.rawMetadata) {
		w.object("metadata", m.Metadata, m.rawMetadata)
	}
}

func (u *Usage) write(w *writer) {
	outer := w.begin("usage", u.Extra)
	w.optInt("input", int64(u.Input))
	w.optInt("output", int64(u.Output))
	w.optInt("cache_read", int64(u.CacheRead))
	w.optInt("cache_write", int64(u.CacheWrite))
	w.optInt("cache_write_1h", int64(u.CacheWriteHour))
	w.optInt("reasoning", int64(u.Reasoning))
	w.optInt("cost_micro_usd", int64(u.CostMicroUSD))
	w.end(outer)
}

func (m *ModelChangeEntry) write(w *writer) {
	w.str("provider", m.Provider)
	w.str("model_id", m.ModelID)
}

func (t *ThinkingLevelEntry) write(w *writer) { w.str("thinking_level", t.ThinkingLevel) }

func (l *LabelEntry) write(w *writer) {
	w.str("target_id", l.TargetID)
	w.optStr("label", l.Label)
}

func (s *SessionInfoEntry) write(w *writer) { w.str("name", s.Name) }

func (c *CompactionEntry) write(w *writer) {
	w.str("summary", c.Summary)
	w.str("first_kept_entry_id", c.FirstKeptEntryID)
	w.int("tokens_before", int64(c.TokensBefore))
	if c.State != nil {
		outer := w.begin("state", c.State.Extra)
		w.optStr("provider", c.State.Provider)
		w.optStr("model", c.State.Model)
		w.optStr("thinking_level", c.State.ThinkingLevel)
		w.kept(c.State.Kept)
		w.end(outer)
	}
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
		outer := w.open(nil)
		w.str("id", k.ID)
		w.optInt("at", int64(k.At))
		w.end(outer)
	}
	w.buf = append(w.buf, ']')
}

func (b *BranchSummaryEntry) write(w *writer) {
	w.str("summary", b.Summary)
	w.str("from_id", b.FromID)
}

func (c *CustomEntry) write(w *writer) {
	w.str("custom_type", c.CustomType)
	w.object("data", c.Data, c.rawData)
}

func (l *LeafEntry) write(w *writer) { w.optStr("from_id", l.FromID) }

func (e *ContextEditEntry) write(w *writer) {
	w.str("target_id", e.TargetID)
	w.contents("replacement", e.Replacement)
}

func (r *RevertEntry) write(w *writer) { w.str("target_id", r.TargetID) }

func (m *MergeEntry) write(w *writer) {
	w.str("from_id", m.FromID)
	w.optStr("summary", m.Summary)
	w.optStrings("entry_ids", m.EntryIDs)
	w.optStr("from_session", m.FromSession)
}

func (c *ContinuesEntry) write(w *writer) {
	w.str("session", c.Session)
	w.str("original", c.Original)
	if !c.Created.IsZero() {
		w.key("created")
		w.buf = rawjson.AppendTime(w.buf, c.Created)
	}
	w.optInt("messages", int64(c.Messages))
	w.optInt("tokens", int64(c.Tokens))
	w.optInt("estimated", int64(c.Estimated))
}

func (w *writer) optStrings(name string, list []string) {
	if len(list) == 0 {
		return
	}
	w.key(name)
	w.buf = append(w.buf, '[')
	for i, s := range list {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = rawjson.AppendString(w.buf, s)
	}
	w.buf = append(w.buf, ']')
}

// contents writes a list of blocks, or null for nil.
func (w *writer) contents(name string, blocks []Content) {
	if blocks == nil {
		w.null(name, 'a', 's', '0')
		return
	}
	w.key(name)
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
	outer := w.open(c.Extra)
	w.str("type", string(c.Type))
	if k, p := c.payload(); p != nil {
		inBlock := w.begin(string(blockKinds[k].name), *p.extra())
		p.write(w)
		w.end(inBlock)
	}
	w.end(outer)
}

func (t *TextContent) write(w *writer) { w.str("content", t.Content) }

func (i *ImageContent) write(w *writer) { w.source(i.Source) }

func (a *AudioContent) write(w *writer) { w.source(a.Source) }

func (f *FileContent) write(w *writer) {
	w.optStr("name", f.Name)
	w.source(f.Source)
}

func (t *ToolUseContent) write(w *writer) {
	w.str("id", t.ID)
	w.str("name", t.Name)
	if t.opaque && t.Input == nil {
		w.key("input")
		w.raw("input", t.rawInput)
	} else {
		w.object("input", t.Input, t.rawInput)
	}
}

func (r *ToolResultContent) write(w *writer) {
	w.str("tool_use_id", r.ToolUseID)
	switch {
	case r.IsError:
		w.key("is_error")
		w.buf = append(w.buf, "true"...)
	case !w.isOdd("is_error", 'b'):
		w.key("is_error")
		w.buf = append(w.buf, "false"...)
	}
	w.dataOrBlob("content", r.Content, string(r.Blob), r.Size)
	if len(r.Parts) > 0 {
		w.contents("parts", r.Parts)
	}
}

func (t *ThinkingContent) write(w *writer) {
	w.str("content", t.Content)
	w.optStr("signature", t.Signature)
	w.optStr("redacted", t.Redacted)
}

func (w *writer) source(s *Source) {
	if s == nil {
		w.null("source", 'o', '0')
		return
	}
	outer := w.begin("source", s.Extra)
	w.str("type", s.Type)
	w.str("media_type", s.MediaType)
	w.dataOrBlob("data", s.Data, string(s.Blob), s.Size)
	w.end(outer)
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
