package geminicli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	r := &reader{file: f, to: to, known: make(map[string]*message), off: make(map[string]*message), used: make(map[string]bool), answered: make(map[string]bool)}
	if err := r.load(ctx); err != nil {
		return err
	}
	return r.emit()
}

// reader follows the operations of a recording. A message may be replaced by a
// later line, so all are held until the end: recordings are small.
type reader struct {
	file *transcript.File
	to   transcript.Sink
	meta map[string]loose.Value // the conversation's facts

	all   []*message          // in the order in which they first came
	live  []*message          // those that count now
	known map[string]*message // the live ones, by id
	off   map[string]*message // those that were taken back, by id
	used  map[string]bool     // the ids of all records

	answered map[string]bool // the calls that are stored with their results
}

// message is a message as it was written last.
type message struct {
	id     string // of the record
	native string
	value  loose.Value
	parent *message // nil for the first
	echo   bool     // it only repeats a message, and becomes no record
	idle   bool     // it was repeated at the start of a resume, and nothing follows it
	from   []transcript.Span
}

func (r *reader) load(ctx context.Context) error {
	r.meta = make(map[string]loose.Value)
	if isDocument(r.file) {
		return r.document()
	}
	return jsonl.Each(ctx, r.file, r.to, func(o jsonl.Object) error {
		r.operation(o.Value, []transcript.Span{o.Span})
		return nil
	})
}

func (r *reader) document() error {
	doc, err := records.Whole(r.file)
	if err != nil {
		return err
	}
	all := []transcript.Span{doc.Span}
	r.readFacts(doc.Value)
	for _, list := range []string{"messages", "history"} {
		for v := range doc.Get(list).Items() {
			r.put(v, all)
		}
	}
	return nil
}

// operation applies a line.
func (r *reader) operation(v loose.Value, from []transcript.Span) {
	switch {
	case v.Has("$rewindTo"):
		r.to.Count("$rewindTo", "branch", 1)
		r.rewind(v.Get("$rewindTo").Text())
	case v.Get("$set").IsObject():
		r.to.Count("$set", "facts", 1)
		r.readFacts(v.Get("$set"))
		if list := v.Get("$set", "messages"); list.IsArray() {
			r.replaceAll(list, from)
		}
	case v.Has("id"):
		r.put(v, from)
	case v.Has("sessionId"):
		r.readFacts(v)
		if list := v.Get("messages"); list.IsArray() {
			r.replaceAll(list, from)
		}
	default:
		r.to.Count("unknown line", transcript.OnlyKept, 1)
	}
}

// readFacts records the conversation's facts.
func (r *reader) readFacts(v loose.Value) {
	for member, value := range v.Members() {
		if member != "messages" && member != "history" {
			r.meta[member] = value
		}
	}
}

// put adds a message, or replaces the one with its id.
func (r *reader) put(v loose.Value, from []transcript.Span) {
	if r.isTooLong(v, from) {
		return
	}
	native := v.Get("id").Text()
	if old := r.known[native]; old != nil && native != "" {
		r.to.Count("message that was written again", "message", 1)
		r.noteResults(v)
		old.value = v
		old.from = append(old.from, from...)
		return
	}
	r.noteResults(v)
	m := &message{id: native, native: native, value: v, from: from}
	if len(r.live) > 0 {
		m.parent = r.live[len(r.live)-1]
	}
	if native == "" {
		m.id = transcript.HashID(name, "message", strconv.Itoa(len(r.all)))
	}
	for r.used[m.id] {
		// It was taken back and is written again: that is another branch.
		m.id = transcript.HashID(name, m.id, strconv.Itoa(len(r.all)))
	}
	r.used[m.id], r.used[m.id+resultsSuffix] = true, true
	r.all = append(r.all, m)
	r.live = append(r.live, m)
	r.known[native] = m
}

// isTooLong reports whether a message has more blocks than a session takes, and reports it to
// the sink.
func (r *reader) isTooLong(v loose.Value, from []transcript.Span) bool {
	err := cmp.Or(session.CheckBlocks(v.Get("content")), session.CheckBlocks(v.Get("parts")))
	if err == nil {
		return false
	}
	r.to.Problem(transcript.Problem{Pos: from[0].Pos, Reason: fmt.Sprintf("a message is only kept as bytes: it has %v", err)})
	return true
}

// rewind takes back a message and all after it. If the message is unknown, it takes back all.
func (r *reader) rewind(id string) {
	at := slices.IndexFunc(r.live, func(m *message) bool { return m.native == id })
	r.cut(max(at, 0))
}

// cut keeps the first n messages.
func (r *reader) cut(n int) {
	for _, m := range r.live[n:] {
		delete(r.known, m.native)
		r.off[m.native] = m
	}
	r.live = r.live[:n]
}

// revive brings back a message that was taken back, if it follows the same message as before.
// A resume within the minute in which the recording began continues the same file: it first
// empties the list and then fills it again.
func (r *reader) revive(v loose.Value) bool {
	native := v.Get("id").Text()
	old := r.off[native]
	n := len(r.live)
	for n > 0 && r.silent(r.live[n-1:n]) {
		n--
	}
	if old == nil || native == "" || n == 0 != (r.nearestSent(old.parent) == nil) || n > 0 && r.nearestSent(old.parent) != r.live[n-1] {
		return false
	}
	for _, m := range r.live[n:] {
		m.idle = m.idle || !old.follows(m)
	}
	r.amend(old, v)
	delete(r.off, native)
	r.live = append(r.live, old)
	r.known[native] = old
	return true
}

// nearestSent returns the nearest message that the model is sent, starting at m and going up, or
// nil.
func (r *reader) nearestSent(m *message) *message {
	for m != nil && r.silent([]*message{m}) {
		m = m.parent
	}
	return m
}

// follows reports whether a message comes after another.
func (m *message) follows(other *message) bool {
	for m != nil && m != other {
		m = m.parent
	}
	return m != nil
}

// replaceAll replaces the messages by others: after a compression, when a turn was given up,
// and on resuming. The messages that are the same stay; the rest becomes another
// branch. The new list lacks messages that the model is never sent, and may repeat results:
// neither starts a branch.
func (r *reader) replaceAll(list loose.Value, from []transcript.Span) {
	n := 0
	var rest []loose.Value
	for v := range list.Items() {
		if r.isTooLong(v, from) {
			continue
		}
		if at := r.find(n, v.Get("id").Text()); len(rest) == 0 && at >= 0 {
			r.amend(r.live[at], v)
			n = at + 1
			continue
		}
		if len(rest) == 0 && r.isEcho(v) {
			r.to.Count("result that was written again", "result", 1)
			continue
		}
		rest = append(rest, v)
	}
	if len(rest) > 0 || !r.silent(r.live[n:]) {
		r.cut(n)
	}
	for _, v := range rest {
		if !r.revive(v) {
			r.put(v, from)
		}
	}
}

// amend applies a message of a list to the known one with its id. The list may spell it
// differently, as parts instead of a text; that is not a change.
func (r *reader) amend(m *message, v loose.Value) {
	r.noteResults(v)
	if contentKey(m.value) == contentKey(v) {
		return
	}
	merged := residue.Object(m.value.Except())
	merged.Merge(residue.Object(v.Except()))
	m.value = loose.Value(merged.JSON())
}

// noteResults records the calls that a message has the results of.
func (r *reader) noteResults(v loose.Value) {
	for call := range v.Get("toolCalls").Items() {
		if _, ok := decodeResult(call); ok {
			r.answered[call.Get("id").Text()] = true
		}
	}
}

// find returns where a message is, at or after a place, if the model is sent none of the
// messages in between, or else -1.
func (r *reader) find(from int, native string) int {
	at := slices.IndexFunc(r.live[from:], func(m *message) bool { return m.native == native })
	if at < 0 || native == "" || !r.silent(r.live[from:from+at]) {
		return -1
	}
	return from + at
}

// silent reports whether the model is sent none of the messages.
func (r *reader) silent(list []*message) bool {
	return !slices.ContainsFunc(list, func(m *message) bool {
		kind := kindOf(m.value)
		return kind == "gemini" || kind == "user" && !r.isEcho(m.value) && (isMarked(m.value) || !isInjected(blocks(m.value, "user")))
	})
}

// isEcho reports whether a message only repeats results that are stored with their calls:
// newer versions write them there, and again as a message of the user.
func (r *reader) isEcho(v loose.Value) bool {
	if kindOf(v) != "user" {
		return false
	}
	list := blocks(v, "user")
	return len(list) > 0 && len(withoutStoredResults(list, r.answered)) == 0
}

// emit passes the conversation to the sink.
func (r *reader) emit() error {
	conv := r.conversation()
	for _, m := range r.all {
		m.echo = m.idle || r.isEcho(m.value) // a call may have got its result after it
	}
	if len(r.all) > 0 && r.silent(r.all) {
		// The program begins such a recording at every start, even when it resumes another
		// under the same id. It does not list them either.
		r.to.Count("recording without a prompt", transcript.OnlyKept, 1)
		return nil
	}
	if len(r.live) > 0 {
		if leaf := r.live[len(r.live)-1].last(); leaf != transcript.Root {
			conv.Leaf = leaf
		}
	}
	if err := r.to.Begin(conv); err != nil {
		return err
	}
	for _, m := range r.all {
		for _, rec := range r.records(m, conv.ID) {
			if err := r.to.Add(rec); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) conversation() transcript.Conversation {
	text := func(member string) string { return r.meta[member].Text() }
	conv := transcript.Conversation{
		ID: cmp.Or(text("sessionId"), transcript.HashID(name, r.file.Path)), Title: text("summary"), Created: r.meta["startTime"].Time(time.UTC),
		CWD: r.meta["directories"].First().Text(), Extra: map[string]any{},
	}
	for _, fact := range []string{"projectHash", "kind"} {
		if value := text(fact); value != "" {
			conv.Extra[fact] = value
		}
	}
	levels := 1                     // the project's directory is above chats
	if text("kind") == "subagent" { // chats/<parent's id>/<id>.jsonl
		levels = 2
		if parent := filepath.Base(filepath.Dir(r.file.Path)); parent != "chats" && parent != "." {
			conv.Parent, conv.Relation = parent, session.RelationSubagent
		}
	}
	if root, err := r.file.Above(levels).Beside(".project_root"); err == nil && conv.CWD == "" {
		conv.CWD = strings.TrimSpace(string(root))
	}
	return conv
}

// last returns the id of a message's last record, that of its results if it has any. For a
// message without records, it is that of the message before, or Root.
func (m *message) last() string {
	for m != nil && m.echo {
		m = m.parent
	}
	if m == nil {
		return transcript.Root
	}
	for call := range m.value.Get("toolCalls").Items() {
		if _, ok := decodeResult(call); ok && kindOf(m.value) == "gemini" {
			return m.id + resultsSuffix
		}
	}
	return m.id
}

// resultsSuffix makes the id of a message's results.
const resultsSuffix = ":results"

func (r *reader) records(m *message, conv string) []transcript.Record {
	if m.echo {
		r.to.Count("result that was written again", "result", 1)
		return nil
	}
	said, results := decode(m.value, r.answered)
	said.Timestamp = m.value.Get("timestamp").Time(time.UTC)
	if said.Timestamp.IsZero() {
		said.Timestamp = m.value.Get("ts").Time(time.UTC)
	}
	if said.Message != nil && said.Message.Role == session.RoleAssistant {
		said.Message.ResponseID = conv + ":" + m.native
	}
	rec := transcript.Record{ID: m.id, Parent: m.parent.last(), Entry: said, From: m.from}
	r.count(&said, m.value)
	if len(results) == 0 {
		return []transcript.Record{rec}
	}
	answer := session.Entry{
		Type: session.TypeMessage, Timestamp: said.Timestamp,
		Message: &session.MessageEntry{Role: session.RoleTool, Content: results},
	}
	return []transcript.Record{rec, {ID: m.id + resultsSuffix, Parent: m.id, Entry: answer, From: m.from}}
}

func (r *reader) count(e *session.Entry, v loose.Value) {
	became := "message"
	if e.Message == nil {
		became = "custom entry"
	}
	r.to.Count(kindOf(v)+" message", became, 1)
}
