package picoclaw

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/draft"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// write writes a session in the form that it had, or else in the newer one, unless a single
// file is wanted.
func write(_ context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	w := &writer{Draft: draft.Draft{Script: s}, key: cmp.Or(s.NativeID, s.Header.Key, "coppice:"+s.Header.ID)}
	w.collect()
	out := &transcript.Output{Base: places(env)[0].Dir, Resume: plain.Command(resume(w.key)...)}
	file := fileName(w.key)
	if s.Facts[factForm] == formJSON || s.OneFile {
		out.Files = []transcript.OutputFile{{Path: file + ".json", Data: w.document()}}
	} else {
		out.Files = []transcript.OutputFile{
			{Path: file + ".jsonl", Data: w.lines()},
			{Path: file + metaSuffix, Data: w.meta()},
		}
	}
	w.LoseBranches()
	out.Losses = w.Losses
	return out, nil
}

// fileName returns the name that picoclaw gives a session's file. Several keys may have one
// name; the key itself is in the file.
func fileName(key string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`:/\`, r) {
			return '_'
		}
		return r
	}, key)
}

type writer struct {
	draft.Draft
	key      string
	messages []json.RawMessage
	stays    []*session.Entry // the first skip messages that a model is still sent
	summary  string
	skip     int
	updated  time.Time
}

func (w *writer) collect() {
	inForce, firstKept := w.inForce()
	w.updated = w.Script.Header.CreatedAt
	for i := range w.Script.Path {
		e := &w.Script.Path[i]
		if e.ID == firstKept {
			w.skip = len(w.messages)
		}
		switch {
		case e.Message != nil:
			w.message(e)
			w.updated = e.Timestamp
		case e.Custom != nil && e.Custom.CustomType == transient:
			w.messages = append(w.messages, raw(e.Custom.Data))
		case e.ID == inForce && e.Compaction != nil:
			w.summary, w.updated = e.Compaction.Summary, e.Timestamp
			if firstKept == "" || firstKept == e.ID {
				w.skip = len(w.messages)
			}
			w.stays = w.keptMessages(firstKept)
		default:
			w.LoseSummary(e, "there is one summary, of the beginning, and nothing else is left out")
		}
	}
}

// keptMessages returns the messages before the first entry that the compaction in
// force keeps which are part of the context nevertheless: system messages, and
// the prompt of a turn that was cut.
func (w *writer) keptMessages(firstKept string) []*session.Entry {
	before := make(map[string]bool)
	for i := range w.Script.Path {
		if e := &w.Script.Path[i]; e.ID == firstKept || e.ID == w.Script.Context.Compaction {
			break
		} else if e.Message != nil {
			before[e.ID] = true
		}
	}
	var list []*session.Entry
	for i := range w.Script.Context.Entries {
		if e := &w.Script.Context.Entries[i]; before[e.ID] && e.Message != nil {
			list = append(list, e)
		}
	}
	return list
}

// inForce returns the compaction in force and the first entry that it keeps.
func (w *writer) inForce() (id, firstKept string) {
	id = w.Script.Context.Compaction
	for i := range w.Script.Path {
		if e := &w.Script.Path[i]; e.ID == id && e.Compaction != nil {
			return id, e.Compaction.FirstKeptEntryID
		}
	}
	return "", ""
}

// encoded returns the messages of an entry as they were read, if they were.
func (w *writer) encoded(e *session.Entry) []json.RawMessage {
	return residue.RestoreIn(e.Message.Extra, name, encode(e)...)
}

func (w *writer) message(e *session.Entry) {
	w.messages = append(w.messages, w.encoded(e)...)
	w.LoseBlocks(e, "a message is text, pictures and tool calls there",
		session.ContentTypeText, session.ContentTypeToolUse, session.ContentTypeToolResult, session.ContentTypeThinking, session.ContentTypeImage)
}

// document writes the older form. Of dropped messages it has only the summary.
func (w *writer) document() []byte {
	o := w.facts()
	o.Set("key", w.key)
	var stays []json.RawMessage
	for _, e := range w.stays {
		stays = append(stays, w.encoded(e)...)
	}
	o.Set("messages", residue.List(slices.Concat(stays, w.messages[w.skip:])))
	if w.summary != "" {
		o.Set("summary", w.summary)
	}
	setTime(&o, "created", w.Script.Header.CreatedAt)
	setTime(&o, "updated", w.updated)
	if w.skip > len(stays) {
		w.Lose("", "messages before the summary", "they have no place there")
	}
	return o.Indented()
}

// lines writes the newer form. It has all messages, and says how many at the beginning are no
// longer sent: it cannot keep a single one of them.
func (w *writer) lines() []byte {
	for _, e := range w.stays {
		w.Lose(e.ID, e.Message.Role+" message that stays from before the summary", "it is in the file, but nothing before the summary is sent")
	}
	for _, m := range w.messages {
		w.Line(m)
	}
	return w.Data.Bytes()
}

func (w *writer) meta() []byte {
	o := w.facts()
	o.Set("key", w.key)
	o.Set("summary", w.summary)
	o.Set("skip", w.skip)
	o.Set("count", len(w.messages))
	setTime(&o, "created_at", w.Script.Header.CreatedAt)
	setTime(&o, "updated_at", w.updated)
	return o.Indented()
}

// setTime sets a time, but never to an earlier one: a program may have touched a session
// without adding a message.
func setTime(o *residue.Object, member string, t time.Time) {
	if old := loose.Value(o.JSON()).Get(member).Time(time.Local); !old.IsZero() && !old.Before(t.Truncate(time.Millisecond)) {
		return
	}
	o.Set(member, t.UTC().Format(time.RFC3339Nano))
}

// facts returns the source's members besides its messages.
func (w *writer) facts() residue.Object {
	meta, _ := w.Script.Facts[factMeta].(map[string]any)
	var o residue.Object
	for _, member := range slices.Sorted(maps.Keys(meta)) {
		o.Set(member, raw(meta[member]))
	}
	return o
}

func resume(key string) []string { return []string{"picoclaw", "agent", "-s", key} }
