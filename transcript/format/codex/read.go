package codex

import (
	"cmp"
	"context"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/records"
)

// maxHeld is how many lines are searched for an item before a rollout counts as one
// with only events.
const maxHeld = 100_000

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	r := newReader(f, to)
	if isDocument(f) {
		return r.document()
	}
	if err := jsonl.Each(ctx, f, to, func(o jsonl.Object) error { return r.addLine(lineOf(o)) }); err != nil {
		return err
	}
	return r.finish()
}

type reader struct {
	file *transcript.File
	to   transcript.Sink
	conv transcript.Conversation

	held    []line // held until it is known whether there are items
	decided bool
	events  bool // there are no items: messages are made from events
	turned  bool // events are those of the newer kind: item_completed

	origin string // the thread in which the history began
	begun  bool
	past   *parentLog       // the parent's file, if it was found
	base   *base            // the beginning of the thread, where that is in another file
	bases  int              // how many threads were followed to get here
	around *transcript.File // where the search for files of other threads begins

	current string          // the record that the next one follows, "" at the root
	last    string          // the record that was added last
	used    map[string]bool // ids of records
	turns   []turn          // of the user
	path    []pathMessage   // the messages on the way to the current record
	systems []int           // the places on it of system messages that count
	hidden  []int           // and of those that compactions dropped, in that order
	asked   []asked         // what the user said lately
	queue   []transcript.Record
	answer  string // the id of the current response, or ""

	askedSize       int // in bytes
	usage           counter
	failed          map[string]bool // calls that failed, according to an event
	provider, model string
	effort          string
	settings        string            // of the thread, as they were last applied
	worlds          map[string]string // by the id of each state of the world, the record before it
	unanswered      []unanswered      // calls that have no id of their own
	replaying       bool              // lines are those of the parent
	ownFrom         int               // the ordinal of a subagent's first own line, or 0
	isCopy          bool              // the lines are a subagent's copy of its parent's
}

// turn is where a turn of the user begins.
type turn struct {
	before   string // the record that it follows
	messages int    // how many messages are before it on the path
}

func newReader(f *transcript.File, to transcript.Sink) *reader {
	return &reader{file: f, to: to, around: f, used: make(map[string]bool), failed: make(map[string]bool), worlds: make(map[string]string)}
}

// document reads the oldest era: all in one JSON document.
func (r *reader) document() error {
	doc, err := records.Whole(r.file)
	if err != nil {
		return err
	}
	all := []transcript.Span{doc.Span}
	if err := r.addLine(line{kind: kindMeta, payload: doc.Get("session"), from: all}); err != nil {
		return err
	}
	for item := range doc.Get("items").Items() {
		if err := r.addLine(line{kind: kindItem, payload: item, time: timeOf(item), from: all}); err != nil {
			return err
		}
	}
	return r.finish()
}

// addLine reads a line, or holds it back until it is known whether events become messages.
func (r *reader) addLine(l line) error {
	if r.decided {
		return r.line(l)
	}
	r.held = append(r.held, l)
	if l.kind == kindEvent && l.payload.Get("type").Text() == "item_completed" {
		r.turned = true
	}
	if l.isItem() || len(r.held) >= maxHeld {
		return r.decide(!l.isItem())
	}
	return nil
}

// decide reads the lines that were held back.
func (r *reader) decide(events bool) error {
	r.decided, r.events = true, events
	held := r.held
	r.held = nil
	for _, l := range held {
		if err := r.line(l); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) finish() error {
	if !r.decided {
		if err := r.decide(true); err != nil {
			return err
		}
	}
	if r.conv.ID != "" { // a header and nothing else is a conversation too
		if err := r.begin(); err != nil {
			return err
		}
	}
	if err := r.flush(); err != nil || r.current == r.last || r.current == "" {
		return err
	}
	return r.to.Begin(transcript.Conversation{ID: r.conv.ID, Leaf: r.current}) // the last turns were taken back
}

// line reads a line.
func (r *reader) line(l line) error {
	if l.kind == kindMeta {
		return r.meta(l)
	}
	if l.kind == "thread.started" {
		r.conv.ID = l.payload.Get("thread_id").Text()
		r.conv.Created, _ = uuidTime(r.conv.ID) // the lines have no times
	}
	if err := r.begin(); err != nil {
		return err
	}
	if r.isReplay(&l) {
		return r.replay(l)
	}
	switch {
	case l.kind == kindItem:
		return r.item(l)
	case l.kind == kindEvent:
		return r.event(l)
	case l.kind == kindContext:
		return r.context(l)
	case l.kind == kindCompacted:
		return r.compacted(l)
	case l.kind == kindWorld:
		return r.worldState(l)
	case l.kind == "inter_agent_communication":
		return r.custom(l, l.kind, "message between agents")
	case isStream(l.kind):
		return r.stream(l)
	}
	r.to.Count(strings.TrimSpace(l.kind+" line"), transcript.OnlyKept, 1)
	return nil
}

// idPattern finds the thread's id in the name of a rollout.
var idPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
})

// begin passes the conversation to the sink, once.
func (r *reader) begin() error {
	if r.begun {
		return nil
	}
	r.begun = true
	if r.conv.ID == "" {
		r.conv.ID = cmp.Or(idPattern().FindString(path.Base(r.file.Path)), transcript.HashID(name, r.file.Path))
	}
	r.origin = cmp.Or(r.origin, r.conv.ID)
	if err := r.to.Begin(r.conv); err != nil {
		return err
	}
	return r.inherit()
}

// add adds a record that follows the current one. Its id is made from the parts, which
// are what it says.
func (r *reader) add(e session.Entry, l *line, parts ...string) {
	id := transcript.HashID(append([]string{name, r.origin, r.before(), string(e.Type)}, parts...)...)
	for n := 2; r.used[id]; n++ { // the same message came again after a rollback
		id = transcript.HashID(id, strconv.Itoa(n))
	}
	r.used[id] = true
	rec := transcript.Record{ID: id, Parent: cmp.Or(r.current, transcript.Root), Entry: e, From: l.from}
	rec.Entry.Timestamp = l.time
	if old, ok := r.past.entry(id); ok {
		// A fork writes its parent's items again, with new times and new members.
		rec.Entry = old
	}
	if e.Message != nil {
		r.addToPath(id, &e, parts)
		if r.isCopy && e.Message.Metadata[session.MetaInjected] == nil {
			setMetadata(e.Message, session.MetaInjected, injectedByFork)
		}
	}
	r.current, r.last = id, id
	r.queue = append(r.queue, rec)
}

// before returns the record from which the next one has its name. States of the world do not
// count: some forks repeat the messages without them, and are the same conversation.
func (r *reader) before() string {
	if said, ok := r.worlds[r.current]; ok {
		return said
	}
	return r.current
}

// worldState reads a state of the world: the facts about its surroundings that the model has got
// so far, or how that changed. When Codex resumes, it compares them with what they are now, and
// tells the model what is new; without a state it says everything again.
func (r *reader) worldState(l line) error {
	said := r.before()
	if err := r.custom(l, kindWorld, "custom entry"); err != nil {
		return err
	}
	r.worlds[r.current] = said
	return nil
}

// flush passes on the records of a response. They wait because its usage may come late.
func (r *reader) flush() error {
	for _, rec := range r.queue {
		if err := r.to.Add(rec); err != nil {
			return err
		}
	}
	r.queue, r.answer = nil, ""
	return nil
}

// custom adds an entry that the model did not see.
func (r *reader) custom(l line, kind, became string) error {
	r.add(session.Custom(name+"."+kind, l.payload.Rest("type", "timestamp")), &l, kind, string(l.payload))
	r.to.Count(kind, became, 1)
	return nil
}

// context reads the settings of a turn.
func (r *reader) context(l line) error {
	v := l.payload
	if inner := v.Get("turn_context"); inner.IsObject() {
		v = inner
	}
	r.to.Count("turn context", "model and effort", 1)
	if model := v.Get("model").Text(); model != "" && model != r.model {
		r.model = model
		r.add(session.ModelChange(r.providerName(), model), &l, model)
	}
	if effort := v.Get("effort").Text(); effort != "" && effort != r.effort {
		r.effort = effort
		r.add(session.ThinkingLevel(effort), &l, effort)
	}
	if cwd := v.Get("cwd").Text(); cwd != "" && r.conv.CWD == "" {
		r.conv.CWD = cwd
		return r.to.Begin(transcript.Conversation{ID: r.conv.ID, CWD: cwd})
	}
	return nil
}

func (r *reader) providerName() string { return cmp.Or(r.provider, "openai") }
