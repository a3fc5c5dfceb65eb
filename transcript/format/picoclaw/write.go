package picoclaw

import (
	"bytes"
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
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// write writes a session in the form that it had, or else in the newer one, unless a single
// file is wanted.
func write(_ context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	d := &draft{script: s, key: cmp.Or(s.NativeID, s.Header.Key, "coppice:"+s.Header.ID)}
	d.collect()
	out := &transcript.Output{Base: places(env)[0].Dir, Resume: plain.Command(resume(d.key)...)}
	file := fileName(d.key)
	if s.Facts[factForm] == formJSON || s.OneFile {
		out.Files = []transcript.OutputFile{{Path: file + ".json", Data: d.document()}}
	} else {
		out.Files = []transcript.OutputFile{
			{Path: file + ".jsonl", Data: d.lines()},
			{Path: file + metaSuffix, Data: d.meta()},
		}
	}
	out.Losses = append(d.losses, s.OtherBranches()...)
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

// draft is a session that is being written.
type draft struct {
	script   *transcript.Script
	key      string
	messages []json.RawMessage
	stays    []*session.Entry // the first skip messages that a model is still sent
	summary  string
	skip     int
	updated  time.Time
	losses   []transcript.Loss
}

func (d *draft) collect() {
	inForce, firstKept := d.inForce()
	d.updated = d.script.Header.CreatedAt
	for i := range d.script.Path {
		e := &d.script.Path[i]
		if e.ID == firstKept {
			d.skip = len(d.messages)
		}
		switch {
		case e.Message != nil:
			d.message(e)
			d.updated = e.Timestamp
		case e.Custom != nil && e.Custom.CustomType == transient:
			d.messages = append(d.messages, raw(e.Custom.Data))
		case e.ID == inForce && e.Compaction != nil:
			d.summary, d.updated = e.Compaction.Summary, e.Timestamp
			if firstKept == "" || firstKept == e.ID {
				d.skip = len(d.messages)
			}
			d.stays = d.staying(firstKept)
		case e.Type == session.TypeCompaction, e.Type == session.TypeBranchSummary, e.Type == session.TypeMerge, e.Type == session.TypeContextEdit:
			d.losses = append(d.losses, transcript.Loss{EntryID: e.ID, What: string(e.Type), Why: "there is one summary, of the beginning, and nothing else is left out"})
		}
	}
}

// staying returns the messages before the first entry that the compaction in
// force keeps which are part of the context nevertheless: system messages, and
// the prompt of a turn that was cut.
func (d *draft) staying(firstKept string) []*session.Entry {
	before := make(map[string]bool)
	for i := range d.script.Path {
		if e := &d.script.Path[i]; e.ID == firstKept || e.ID == d.script.Context.Compaction {
			break
		} else if e.Message != nil {
			before[e.ID] = true
		}
	}
	var list []*session.Entry
	for i := range d.script.Context.Entries {
		if e := &d.script.Context.Entries[i]; before[e.ID] && e.Message != nil {
			list = append(list, e)
		}
	}
	return list
}

// inForce returns the compaction in force and the first entry that it keeps.
func (d *draft) inForce() (id, firstKept string) {
	id = d.script.Context.Compaction
	for i := range d.script.Path {
		if e := &d.script.Path[i]; e.ID == id && e.Compaction != nil {
			return id, e.Compaction.FirstKeptEntryID
		}
	}
	return "", ""
}

// encoded returns the messages of an entry as they were read, if they were.
func (d *draft) encoded(e *session.Entry) []json.RawMessage {
	made := encode(e)
	if kept := residue.In(e.Message.Extra, name); kept != nil {
		made[0] = residue.Restore(loose.Value(made[0]), kept)
	}
	return made
}

func (d *draft) message(e *session.Entry) {
	d.messages = append(d.messages, d.encoded(e)...)
	d.losses = append(d.losses, transcript.Lost(e, "a message is text, pictures and tool calls there",
		session.ContentTypeText, session.ContentTypeToolUse, session.ContentTypeToolResult, session.ContentTypeThinking, session.ContentTypeImage)...)
}

// document writes the older form. Of dropped messages it has only the summary.
func (d *draft) document() []byte {
	o := d.facts()
	o.Set("key", d.key)
	var stays []json.RawMessage
	for _, e := range d.stays {
		stays = append(stays, d.encoded(e)...)
	}
	o.Set("messages", residue.List(slices.Concat(stays, d.messages[d.skip:])))
	if d.summary != "" {
		o.Set("summary", d.summary)
	}
	setTime(&o, "created", d.script.Header.CreatedAt)
	setTime(&o, "updated", d.updated)
	if d.skip > len(stays) {
		d.losses = append(d.losses, transcript.Loss{What: "messages before the summary", Why: "they have no place there"})
	}
	return o.Indented()
}

// lines writes the newer form. It has all messages, and says how many at the beginning are no
// longer sent: it cannot keep a single one of them.
func (d *draft) lines() []byte {
	var b bytes.Buffer
	for _, e := range d.stays {
		what := e.Message.Role + " message that stays from before the summary"
		d.losses = append(d.losses, transcript.Loss{EntryID: e.ID, What: what, Why: "it is in the file, but nothing before the summary is sent"})
	}
	for _, m := range d.messages {
		b.Write(m)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func (d *draft) meta() []byte {
	o := d.facts()
	o.Set("key", d.key)
	o.Set("summary", d.summary)
	o.Set("skip", d.skip)
	o.Set("count", len(d.messages))
	setTime(&o, "created_at", d.script.Header.CreatedAt)
	setTime(&o, "updated_at", d.updated)
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
func (d *draft) facts() residue.Object {
	meta, _ := d.script.Facts[factMeta].(map[string]any)
	var o residue.Object
	for _, member := range slices.Sorted(maps.Keys(meta)) {
		o.Set(member, raw(meta[member]))
	}
	return o
}

func resume(key string) []string { return []string{"picoclaw", "agent", "-s", key} }
