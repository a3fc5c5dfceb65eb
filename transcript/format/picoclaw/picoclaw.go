// Package picoclaw reads and writes the sessions of picoclaw, in both of its forms: one JSON
// document (key.json), and a message on each line, with metadata beside them (key.jsonl and
// key.meta.json).
//
// The second form drops old messages by saying how many lines to skip, and both keep a
// summary of the dropped ones. Here that is a compaction.
package picoclaw

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
	"github.com/coppice-dev/coppice/transcript/internal/walk"
)

const (
	name       = "picoclaw"
	metaSuffix = ".meta.json"
	// transient is the type of the custom entry that keeps a line which the program writes
	// but never reads again: thinking without an answer.
	transient = "picoclaw.transient"

	formJSON  = "json"
	formJSONL = "jsonl"
	// The facts of a conversation that the writer needs again.
	factForm = "form"
	factMeta = "meta"
)

// Format returns the format.
func Format() *transcript.Format {
	return &transcript.Format{Name: name, Title: "picoclaw", Detect: detect, Read: read, Places: places, Resume: resume, Write: write}
}

func places(env transcript.Env) []transcript.Place {
	return []transcript.Place{{
		Dir: filepath.Join(env.Home, ".picoclaw", "workspace", "sessions"),
		Match: func(path string) bool {
			session := strings.HasSuffix(path, ".jsonl") || strings.HasSuffix(path, ".json") && !strings.HasSuffix(path, metaSuffix)
			return session && !strings.Contains(path, "/")
		},
	}}
}

func detect(f *transcript.File) bool {
	if strings.HasSuffix(f.Path, metaSuffix) {
		return false
	}
	head := bytes.TrimSpace(f.Head())
	if strings.HasSuffix(f.Path, ".jsonl") {
		_, err := f.Beside(metaOf(f.Path))
		return err == nil && bytes.HasPrefix(head, []byte("{")) && bytes.Contains(head, []byte(`"role"`))
	}
	seen := shape.OfFile(f)
	return bytes.HasPrefix(head, []byte(`{`)) && firstMember(head) == "key" &&
		(seen.Has("messages[]") || seen.Has("created") && seen.Has("updated"))
}

// firstMember returns the name of an object's first member.
func firstMember(head []byte) string {
	rest := bytes.TrimSpace(head[1:])
	if len(rest) == 0 || rest[0] != '"' {
		return ""
	}
	before, _, _ := bytes.Cut(rest[1:], []byte(`"`))
	return string(before)
}

// metaOf returns the name of the metadata file beside a session's lines.
func metaOf(path string) string {
	return strings.TrimSuffix(filepath.Base(path), ".jsonl") + metaSuffix
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	if strings.HasSuffix(f.Path, ".jsonl") {
		return readLines(ctx, f, to)
	}
	whole, err := records.WholeOrTorn(f, "messages", to)
	if err != nil {
		return err
	}
	v := whole.Value
	r := reader{to: to, key: v.Get("key").Text(), created: v.Get("created").Time(time.Local), seen: make(map[string]int)}
	if err := r.begin(f, formJSON, v.Rest("messages")); err != nil {
		return err
	}
	for m := range v.Get("messages").Items() {
		if err := r.message(m, whole.Span); err != nil {
			return err
		}
	}
	return r.compaction(v.Get("summary").Text(), 0, v.Get("updated").Time(time.Local))
}

func readLines(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	data, err := f.Beside(metaOf(f.Path))
	if err != nil {
		return err
	}
	meta, err := loose.Parse(data)
	if err != nil {
		return &session.Error{Op: "read", Path: filepath.Join(filepath.Dir(f.Path), metaOf(f.Path)), Kind: session.ErrCorrupt, Err: err}
	}
	r := reader{to: to, key: meta.Get("key").Text(), created: meta.Get("created_at").Time(time.Local), seen: make(map[string]int)}
	if err := r.begin(f, formJSONL, meta.Any()); err != nil {
		return err
	}
	if _, err := to.Keep(metaOf(f.Path), data); err != nil {
		return err
	}
	if err := walk.Each(f.Lines(ctx), r.line); err != nil {
		return err
	}
	return r.compaction(meta.Get("summary").Text(), meta.Get("skip").Int(), meta.Get("updated_at").Time(time.Local))
}

// reader reads one session.
type reader struct {
	to      transcript.Sink
	key     string
	created time.Time

	seen  map[string]int // how often a message has occurred
	lines int            // read so far, as the program counts them
	ids   []string       // of the messages
	at    []int          // the line that each of them was
	chat  chat
}

func (r *reader) begin(f *transcript.File, form string, meta any) error {
	r.key = cmp.Or(r.key, strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f.Path), ".jsonl"), ".json"))
	return r.to.Begin(transcript.Conversation{
		ID: r.key, Created: r.created, Extra: map[string]any{factForm: form, factMeta: meta},
	})
}

// line adds the messages of a line: more than one where lines ran together. The
// program counts every line once, even those that it cannot read.
func (r *reader) line(line transcript.Line) error {
	objects, problems := jsonl.Parse(line)
	for _, p := range problems {
		r.to.Problem(p)
	}
	for _, o := range objects {
		if err := r.message(o.Value, o.Span); err != nil {
			return err
		}
	}
	if len(objects)+len(problems) > 0 {
		r.lines++
	}
	return nil
}

// message adds a message. It has no id; its content and how often that has occurred identify
// it, so that it stays the same message when the program rewrites the file without the lines
// before it.
func (r *reader) message(m loose.Value, span transcript.Span) error {
	r.seen[string(m)]++
	record := transcript.Record{
		ID:    transcript.HashID(name, r.key, string(m), strconv.Itoa(r.seen[string(m)])),
		Entry: r.chat.entry(m, r.created),
		From:  []transcript.Span{span},
	}
	if len(r.ids) == 0 {
		record.Parent = transcript.Root
	}
	r.ids, r.at = append(r.ids, record.ID), append(r.at, r.lines)
	what, became := "thinking without an answer", "remark"
	if m := record.Entry.Message; m != nil {
		what, became = m.Role+" message", "message"
	}
	r.to.Count(what, became, 1)
	return r.to.Add(record)
}

// compaction adds the compaction that replaces the dropped lines. It comes last, and gets a
// new id whenever the session has grown, so that it is always on the path.
func (r *reader) compaction(summary string, skip int, at time.Time) error {
	if summary == "" && skip == 0 {
		return nil
	}
	firstKept, last := "", ""
	for i := len(r.ids) - 1; i >= 0 && r.at[i] >= skip; i-- {
		firstKept = r.ids[i]
	}
	if len(r.ids) > 0 {
		last = r.ids[len(r.ids)-1]
	}
	e := session.Compaction(summary, firstKept, 0)
	e.Timestamp = cmp.Or(at, r.created)
	r.to.Count("summary", "compaction", 1)
	return r.to.Add(transcript.Record{ID: transcript.HashID(name, r.key, "summary", summary, strconv.Itoa(skip), last), Entry: e})
}

// raw returns a value as text. It came from JSON, so it can be written.
func raw(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}
