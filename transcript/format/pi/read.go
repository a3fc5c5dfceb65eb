package pi

import (
	"bytes"
	"cmp"
	"context"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	r := reader{file: f, to: to, tools: make(map[string]string)}
	return jsonl.Each(ctx, f, to, r.line)
}

type reader struct {
	file  *transcript.File
	to    transcript.Sink
	conv  transcript.Conversation
	title string // of a title line, which comes before the header
	// ids are those of the header and the entries, in the order of the file:
	// version 1 refers to entries by their index.
	ids []string
	// tools are the names of tools by the ids of their calls: the writer looks a
	// result's there.
	tools map[string]string
}

func (r *reader) line(o jsonl.Object) error {
	kind := o.Get("type").Text()
	switch {
	case kind == "title":
		r.to.Count("title line", "title", 1)
		return r.rename(cmp.Or(o.Get("title").Text(), o.Get("name").Text(), o.Get("text").Text()))
	case kind == "session" && len(r.ids) == 0:
		r.to.Count("header", "session", 1)
		return r.header(o.Value)
	case kind == "session":
		r.to.Count("further header", transcript.OnlyKept, 1)
		return nil
	}
	if len(r.ids) == 0 {
		// The header is lost, but the rest of the conversation can be read.
		if err := r.begin(transcript.HashID(name, r.file.Path)); err != nil {
			return err
		}
	}
	return r.entry(o, kind)
}

func (r *reader) rename(title string) error {
	r.title = title
	if len(r.ids) == 0 || title == "" {
		return nil
	}
	return r.to.Begin(transcript.Conversation{ID: r.conv.ID, Title: title})
}

func (r *reader) begin(id string) error {
	r.conv.ID, r.conv.Title = id, r.title
	r.ids = append(r.ids, id)
	return r.to.Begin(r.conv)
}

func (r *reader) header(v loose.Value) error {
	r.conv.CWD = v.Get("cwd").Text()
	r.conv.Created = v.Get("timestamp").Time(time.UTC)
	r.conv.Extra = facts(v)
	id := cmp.Or(v.Get("id").Name(), transcript.HashID(name, r.file.Path))
	if source := cmp.Or(v.Get("parentSession").Text(), v.Get("branchedFrom").Text()); source != "" {
		r.origin(id, source)
	}
	return r.begin(id)
}

// facts are the members of a header that have no other place. The writer writes them again.
func facts(v loose.Value) map[string]any {
	known := []string{"type", "id", "version", "cwd", "timestamp"}
	if at := v.Get("timestamp"); at.Time(time.UTC).Format(isoTime) != at.Text() {
		known = known[:4]
	}
	return v.Rest(known...)
}

// origin links a conversation to the file that it was forked from. If that file is available
// and begins with the same entry, both are branches of one tree.
func (r *reader) origin(id, source string) {
	parent, same := idOfPath(source), false
	if data, err := r.file.Beside(fileName(source)); err == nil {
		parent = r.family(data, maxForks)
		first := firstEntry(data)
		same = first != "" && first == firstEntry(r.file.Head())
	}
	switch {
	case parent == "" || parent == id:
	case same:
		r.conv.Family = parent
	default:
		r.conv.Parent, r.conv.Relation = parent, session.RelationFork
	}
}

// maxForks is how many times a fork of a fork is looked for.
const maxForks = 64

// family returns the id of the conversation in whose tree a file's entries
// belong: its own, or that of the file that it was forked from.
func (r *reader) family(data []byte, depth int) string {
	header := firstObject(data)
	source := cmp.Or(header.Get("parentSession").Text(), header.Get("branchedFrom").Text())
	if source != "" && depth > 0 {
		origin, err := r.file.Beside(fileName(source))
		if first := firstEntry(data); err == nil && first != "" && first == firstEntry(origin) {
			return r.family(origin, depth-1)
		}
	}
	return header.Get("id").Text()
}

// firstEntry returns the id of the first entry after the header.
func firstEntry(data []byte) string {
	for line := range bytes.Lines(data) {
		v, err := loose.Parse(line)
		if kind := v.Get("type").Text(); err == nil && kind != "session" && kind != "title" {
			return v.Get("id").Text()
		}
	}
	return ""
}

// firstObject returns the header of a file.
func firstObject(data []byte) loose.Value {
	for line := range bytes.Lines(data) {
		if v, err := loose.Parse(line); err == nil && v.Get("type").Text() == "session" {
			return v
		}
	}
	return nil
}

// idOfPath returns the session id in the name of a session file:
// <time>_<id>.jsonl.
func idOfPath(file string) string {
	file = strings.TrimSuffix(fileName(file), ".jsonl")
	if _, id, ok := strings.Cut(file, "_"); ok {
		return id
	}
	return file
}

// fileName returns the last element of a path of any system.
func fileName(file string) string { return path.Base(strings.ReplaceAll(file, `\`, "/")) }

func (r *reader) entry(o jsonl.Object, kind string) error {
	rec := transcript.Record{ID: o.Get("id").Name(), From: []transcript.Span{o.Span}}
	if rec.ID == "" {
		rec.ID = transcript.HashID(name, r.conv.ID, strconv.Itoa(len(r.ids)))
	}
	switch parent := o.Get("parentId"); {
	case parent.Exists():
		rec.Parent = parent.Name()
	case parent != nil: // null
		rec.Parent = transcript.Root
	}
	first := r.firstKept(o.Value)
	rec.Entry = decodeEntry(o.Value, kind, first)
	// The residue is the difference from what the writer would write. Both use native ids.
	named := rec.Entry
	named.ID, named.ParentID = rec.ID, parentID(rec.Parent, r.ids)
	noteTools(r.tools, rec.Entry.Message)
	made := encodeEntry(named, r.tools)
	rec.Entry.Extra = residue.Keep(rec.Entry.Extra, name, residue.Of(loose.Value(made), withoutIndex(o.Value, named, first)))
	r.ids = append(r.ids, rec.ID)
	r.to.Count(kind+" entry", outcomeOf(rec.Entry), 1)
	return r.to.Add(rec)
}

// parentID returns the parent that the writer will get for the entry.
func parentID(parent string, ids []string) *string {
	switch {
	case parent == transcript.Root || parent == "" && len(ids) < 2:
		return nil
	case parent == "":
		return &ids[len(ids)-1]
	}
	return &parent
}

// withoutIndex converts a record to version 3, which the writer writes: it has an id, a
// parent, and its first kept entry by id.
func withoutIndex(v loose.Value, e session.Entry, first string) loose.Value {
	indexed := v.Get("firstKeptEntryIndex") != nil && v.Get("firstKeptEntryId") == nil
	old := v.Get("message", "role").Text() == oldCustomRole
	if v.Get("id") != nil && v.Get("parentId") != nil && !indexed && !old {
		return v
	}
	o := residue.Object(v.Except("firstKeptEntryIndex"))
	o.Set("id", e.ID)
	o.Set("parentId", e.ParentID)
	if indexed {
		o.Set("firstKeptEntryId", first)
	}
	if old {
		m := residue.Object(v.Get("message").Except())
		m.Set("role", session.RoleCustom)
		o.Set("message", m.JSON())
	}
	return loose.Value(o.JSON())
}

// firstKept returns the first kept entry of a compaction. Version 1 gives its index among all
// lines, the header included. Index 0, the header, means the first entry.
func (r *reader) firstKept(v loose.Value) string {
	if id := v.Get("firstKeptEntryId").Name(); id != "" {
		return id
	}
	index := v.Get("firstKeptEntryIndex")
	if at := max(index.Int(), 1); index != nil && at < len(r.ids) {
		return r.ids[at]
	}
	return ""
}

// outcomeOf names what a line became, for the report.
func outcomeOf(e session.Entry) string {
	if e.Message != nil {
		return "message"
	}
	return strings.ReplaceAll(string(e.Type), "_", " ")
}
