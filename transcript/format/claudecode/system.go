package claudecode

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// system reads a line that the program itself wrote.
func (r *reader) system(l *line, t *thread, rec *transcript.Record, parent int32, text *transcript.Line) error {
	switch string(l.subtype) {
	case subtypeCut:
		compaction := &session.CompactionEntry{TokensBefore: metaInt(l.compact, "preTokens")}
		if at, ok := r.lines[keyOf(keptFrom(l.compact))]; ok && at.thread == t.index && at.node <= t.last() {
			compaction.FirstKeptEntryID = t.id(at.node)
		}
		rec.Entry.Type, rec.Entry.Compaction = session.TypeCompaction, compaction
		r.pending = &boundary{rec: *rec, parent: parent, thread: t, span: text.Span, no: text.No}
		return nil
	case "microcompact_boundary":
		return r.microcompact(l, t, rec, parent)
	case "local_command":
		if content, ok := rawjson.String(l.content); ok && strings.TrimSpace(content) != "" {
			return r.localCommand(l, t, rec, parent, content)
		}
	}
	r.count("system line", transcript.OnlyKept)
	return nil
}

// localCommand reads a command that the user gave to the program, or its output. The
// model sees both.
func (r *reader) localCommand(l *line, t *thread, rec *transcript.Record, parent int32, text string) error {
	if t == r.main {
		r.titles.rename(text)
	}
	m := message(l, t, rec, session.RoleUser, []session.Content{session.Text(text)})
	note(m, session.MetaInjected, cmp.Or(injected(text), "local-command"))
	note(m, metaLocal, true)
	r.count("local command line", "message")
	t.addNode(rec, parent, false)
	return r.emit(t, *rec)
}

// summarise completes a compaction with its summary, if that is what comes next.
func (r *reader) summarise(l *line, rec *transcript.Record) (done bool, err error) {
	b := r.pending
	r.pending = nil
	if !l.summary {
		r.count("compact boundary", transcript.OnlyKept)
		return false, nil
	}
	l.parseMessage()
	b.rec.Aliases = append(b.rec.Aliases, rec.ID)
	b.rec.From = append(b.rec.From, rec.From...)
	return true, r.compaction(l, b.thread, &b.rec, b.parent)
}

// bareSummary reads a summary without a boundary, as older versions wrote it.
func (r *reader) bareSummary(l *line, t *thread, rec *transcript.Record, parent int32) error {
	rec.Entry.Type, rec.Entry.Compaction = session.TypeCompaction, &session.CompactionEntry{}
	return r.compaction(l, t, rec, parent)
}

// compaction adds a compaction whose summary is in a line.
func (r *reader) compaction(l *line, t *thread, rec *transcript.Record, parent int32) error {
	// A call without a result by now will not get one. The compaction leaves it out
	// with the rest, so it follows what is before the call.
	before := ""
	if t.reply != nil && rec.Entry.Compaction.FirstKeptEntryID == "" && t.reply.isOpen(t.held) {
		before = t.reply.rec.Parent
	}
	if err := r.closeReply(t); err != nil {
		return err
	}
	var text []string
	for _, c := range contents(l.blocks) {
		if c.Text != nil {
			text = append(text, c.Text.Content)
		}
	}
	rec.Entry.Compaction.Summary = strings.Join(text, "\n")
	r.count("compact boundary", "compaction")
	if before != "" {
		t.branchOff(rec, before)
	} else {
		t.addNode(rec, parent, false)
	}
	t.cut()
	return r.emit(t, *rec)
}

// microcompact reads which tool results were removed from the context.
func (r *reader) microcompact(l *line, t *thread, rec *transcript.Record, parent int32) error {
	var calls []string
	_ = rawjson.Object(l.compact, func(k, v []byte) error { // it was walked before, or is missing
		if string(k) == "compactedToolIds" {
			return rawjson.Array(v, func(id []byte) error {
				if call, ok := rawjson.String(id); ok {
					calls = append(calls, call)
				}
				return nil
			})
		}
		return nil
	})
	var edited []string
	for _, call := range calls {
		at, ok := r.results[keyOf([]byte(call))]
		if !ok || t != r.main || slices.Contains(edited, t.id(at)) {
			continue
		}
		target := t.id(at)
		edit := transcript.Record{ID: rec.ID, From: slices.Clone(rec.From)}
		if len(edited) > 0 {
			edit.ID += ":" + call
		}
		edited = append(edited, target)
		edit.Entry.Timestamp = rec.Entry.Timestamp
		edit.Entry.Type = session.TypeContextEdit
		edit.Entry.ContextEdit = &session.ContextEditEntry{TargetID: target}
		t.addNode(&edit, parent, false)
		parent = t.last()
		if err := r.emit(t, edit); err != nil {
			return err
		}
	}
	became := transcript.OnlyKept
	if len(edited) > 0 {
		became = "context edit"
	}
	r.count("microcompact boundary", became)
	return nil
}

func metaInt(raw []byte, name string) int {
	n := int64(0)
	_ = rawjson.Object(raw, func(k, v []byte) error { // it was walked before, or is missing
		if string(k) == name {
			n, _ = rawjson.Int(v)
		}
		return nil
	})
	return int(n)
}

// keptFrom returns the first line that a compaction keeps, or nil.
func keptFrom(meta []byte) []byte {
	if rawjson.Kind(meta) != 'o' {
		return nil
	}
	compact := rawjson.MembersOf(meta)
	if kept := rawjson.MembersOf(compact.Get("preservedMessages")); kept.Has("uuids") {
		if lines, _ := rawjson.Elements(kept.Get("uuids")); len(lines) > 0 {
			return str(lines[0])
		}
	}
	return str(rawjson.MembersOf(compact.Get("preservedSegment")).Get("headUuid"))
}
