package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// reader reads one file.
type reader struct {
	ctx  context.Context // of this reading: other files may have to be looked at
	file *transcript.File
	to   transcript.Sink

	main    *thread
	threads []*thread          // all of them
	agents  map[string]*thread // of subagents in the file, by agent
	begun   *thread            // the last one passed to the sink
	lines   map[key]target
	recent  []string // the lines that lead to the main thread's last record
	titles  titles
	tag     string
	early   []earlyLine    // lines whose parents have not come yet
	summary map[key]string // texts of summaries by the line they are of
	tasks   []task         // calls that may have started a subagent
	results map[key]int32  // the main thread's answers, by call
	pending *boundary
	counts  map[transcript.Became]int

	pos int64 // up to which everything was read
	no  int64
}

// task is a call that starts a subagent.
type task struct{ call, prompt string }

// boundary is a compaction whose summary has not come yet.
type boundary struct {
	rec    transcript.Record
	parent int32
	thread *thread
	span   transcript.Span
	no     int64
}

func newReader(ctx context.Context, f *transcript.File, to transcript.Sink) *reader {
	return &reader{
		ctx: ctx, file: f, to: to, agents: make(map[string]*thread), lines: make(map[key]target),
		summary: make(map[key]string), results: make(map[key]int32), counts: make(map[transcript.Became]int),
	}
}

func (r *reader) read(ctx context.Context) error {
	resumer, ok := r.to.(transcript.Resumer)
	if !ok {
		return r.all(ctx, 0, 0)
	}
	pos, no, raw := resumer.Saved()
	var saved state
	if raw == nil || json.Unmarshal(raw, &saved) != nil || saved.Tail == "" {
		if err := r.all(ctx, 0, 0); err != nil {
			return err
		}
		r.save(resumer)
		return nil
	}
	needed, err := r.needsReplay(ctx, pos, no, &saved)
	if err != nil {
		return err
	}
	needed = needed || saved.CWD == "" // an older version did not save where the session began
	if needed {
		err = r.replay(ctx, pos)
	} else {
		r.restore(&saved)
	}
	if err == nil {
		err = r.all(ctx, pos, no)
	}
	if err == nil {
		r.save(resumer)
	}
	return err
}

// needsReplay looks through the new lines for one whose parent is not the last line: it
// needs the tree of the lines before.
func (r *reader) needsReplay(ctx context.Context, pos, no int64, saved *state) (bool, error) {
	known := make(map[string]bool)
	for _, id := range saved.Lines {
		known[id] = true
	}
	var l line
	for text, err := range r.file.LinesFrom(ctx, pos, no) {
		if err != nil {
			return false, err
		}
		if l.parse(text.Data) != nil {
			if text.Torn {
				break
			}
			return true, nil // there may be several on it
		}
		if l.isRemark() {
			continue
		}
		parent := l.parent
		if parent == nil {
			parent = l.logicalParent
		}
		if l.sidechain && len(l.agentID) > 0 && r.isAgentFile() {
			l.sidechain = false
		}
		if l.sidechain || !known[string(parent)] || keptFrom(l.compact) != nil {
			return true, nil
		}
		known[string(l.uuid)] = true
	}
	return false, nil
}

// replay reads the earlier lines once more, for their tree alone.
func (r *reader) replay(ctx context.Context, upTo int64) error {
	to := r.to
	r.to = discard{}
	for text, err := range r.file.Lines(ctx) {
		if err != nil {
			return err
		}
		if text.Pos >= upTo {
			break
		}
		if err := r.line(&text); err != nil {
			return err
		}
	}
	err := r.close()
	r.to, r.begun = to, nil
	clear(r.counts)
	return err
}

// discard is a sink that ignores everything.
type discard struct{}

func (discard) Begin(transcript.Conversation) error          { return nil }
func (discard) Add(transcript.Record) error                  { return nil }
func (discard) Keep(string, []byte) (transcript.Span, error) { return transcript.Span{}, nil }
func (discard) Count(string, string, int)                    {}
func (discard) Problem(transcript.Problem)                   {}

// restore continues from where an earlier reading stopped.
func (r *reader) restore(s *state) {
	conv := transcript.Conversation{ID: s.ID, Family: s.Family, CWD: s.CWD, Extra: factsOf([]byte(s.Branch))}
	r.main = r.add(&thread{conv: conv, tails: []int32{0}})
	r.main.add(s.Tail, node{})
	r.titles = s.Titles
	for _, id := range s.Lines {
		r.lines[keyOf([]byte(id))] = target{r.main.index, 0}
	}
	r.recent = s.Lines
}

// save stores the reader's position and state.
func (r *reader) save(to transcript.Resumer) {
	if r.main == nil || len(r.main.nodes) == 0 {
		return
	}
	s := state{
		ID: r.main.conv.ID, Family: r.main.conv.Family, CWD: r.main.conv.CWD, Branch: r.main.branch(),
		Tail: r.main.id(r.main.tails[r.main.now]), Lines: r.recent, Titles: r.titles,
	}
	to.Save(r.pos, r.no, s.encode())
}

// all reads the lines from a position on.
func (r *reader) all(ctx context.Context, pos, no int64) error {
	r.pos, r.no = pos, no
	for text, err := range r.file.LinesFrom(ctx, pos, no) {
		if err != nil {
			return err
		}
		if text.Torn && !json.Valid(text.Data) {
			break // not yet
		}
		if err := r.line(&text); err != nil {
			return err
		}
		r.pos, r.no = text.Pos+text.Len, text.No
	}
	if r.pending != nil { // its summary is not yet there
		r.pos, r.no = r.pending.span.Pos, r.pending.no-1
	}
	return r.finish()
}

// finish passes on what was held back, and reports what became of the lines.
func (r *reader) finish() error {
	if err := r.close(); err != nil {
		return err
	}
	if r.main == nil {
		return nil
	}
	if err := r.begin(r.main, true); err != nil {
		return err
	}
	keys := make([]transcript.Became, 0, len(r.counts))
	for k := range r.counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b transcript.Became) int { return strings.Compare(a.What+a.Became, b.What+b.Became) })
	for _, k := range keys {
		r.to.Count(k.What, k.Became, r.counts[k])
	}
	return nil
}

// begin tells the sink that a thread's records follow.
func (r *reader) begin(t *thread, again bool) error {
	if r.begun == t && !again {
		return nil
	}
	r.begun = t
	c := t.conv
	if t == r.main && again {
		c.Title = r.title()
		if r.titles.AI != "" {
			c.Extra = maps.Clone(c.Extra)
			if c.Extra == nil {
				c.Extra = make(map[string]any)
			}
			c.Extra[factAITitle] = r.titles.AI
		}
		if r.tag != "" {
			c.Tags = []string{r.tag}
		}
	}
	return r.to.Begin(c)
}

// title returns the session's name. A summary counts only if it belongs to a line of this
// file: the others belong to other files.
func (r *reader) title() string {
	for k, text := range r.summary {
		if at, ok := r.lines[k]; ok && at.thread == r.main.index {
			r.titles.Summary = text
		}
	}
	return r.titles.best()
}

// count records what a line became.
func (r *reader) count(what, became string) {
	r.counts[transcript.Became{What: what, Became: became}]++
}

// line reads one line.
func (r *reader) line(text *transcript.Line) error {
	var l line
	err := l.parse(text.Data)
	if err == nil && !text.Cut {
		return r.object(&l, text)
	}
	if text.Cut {
		err = fmt.Errorf("the line has %d bytes, more than %d", text.Len, transcript.MaxLine)
	}
	// A crash within a line, or two programs writing at once, can leave several objects on
	// one line.
	objects, pieces := text.Split()
	if len(objects) == 0 {
		pieces = []transcript.Line{*text}
	} else {
		err = errors.New("a part of the line is not JSON; the rest was read")
	}
	for _, piece := range pieces {
		r.to.Problem(transcript.Problem{Pos: piece.Pos, Line: piece.No, Reason: err.Error()})
	}
	for i := range objects {
		if err := l.parse(objects[i].Data); err != nil {
			return err
		}
		if err := r.object(&l, &objects[i]); err != nil {
			return err
		}
	}
	return nil
}

// object reads the object on a line.
func (r *reader) object(l *line, text *transcript.Line) error {
	if l.isRemark() {
		r.remark(l)
		return nil
	}
	if r.isEarly(l) {
		return r.wait(l, text)
	}
	if err := r.addLine(l, text); err != nil {
		return err
	}
	return r.admit(false)
}

// addLine adds a line of the tree.
func (r *reader) addLine(l *line, text *transcript.Line) error {
	if err := r.open(l); err != nil {
		return err
	}
	t := r.threadOf(l)
	parent := r.parentOf(l, t)
	rec := transcript.Record{ID: string(l.uuid), From: []transcript.Span{text.Span}}
	rec.Entry.Timestamp = l.time()
	if t.conv.Created.IsZero() {
		t.conv.Created = rec.Entry.Timestamp
	}
	before := len(t.nodes)
	err := r.node(l, t, &rec, parent, text)
	r.lines[keyOf(l.uuid)] = target{t.index, max(t.last(), 0)}
	if len(t.nodes) == before { // it gave no record: what follows it follows its parent
		if parent == unknown && (before == 0 || l.clears()) {
			parent = nothing
		}
		if parent != unknown {
			r.lines[keyOf(l.uuid)] = target{t.index, parent}
		}
	}
	if t == r.main {
		if len(t.nodes) > before {
			r.recent = r.recent[:0]
		}
		if len(t.nodes) > before || parent != nothing { // otherwise what follows it needs the whole tree
			r.recent = append(r.recent, string(l.uuid))
		}
		if len(r.recent) > maxRecent {
			r.recent = slices.Delete(r.recent, 0, maxRecent/2)
		}
	}
	return err
}

// maxRecent is how many lines are remembered for the next time.
const maxRecent = 256

// node turns a line of the tree into a record, if it is one.
func (r *reader) node(l *line, t *thread, rec *transcript.Record, parent int32, text *transcript.Line) error {
	if r.pending != nil && r.pending.thread == t && (string(l.typ) == "user" || string(l.typ) == "assistant") {
		done, err := r.summarise(l, rec)
		if done || err != nil {
			return err
		}
	}
	switch string(l.typ) {
	case "user":
		return r.user(l, t, rec, parent)
	case "assistant":
		return r.assistant(l, t, rec, parent)
	case "system":
		return r.system(l, t, rec, parent, text)
	case "attachment":
		return r.attachment(l, t, rec, parent)
	}
	r.count(string(l.typ)+" line", transcript.OnlyKept)
	return nil
}

// What a line may follow besides a record.
const (
	unknown = -1 // a missing line, or none: the line before it in the file
	nothing = -2 // a line with which a conversation begins
)

// parentOf returns the record that a line follows, unknown or nothing.
func (r *reader) parentOf(l *line, t *thread) int32 {
	parent := l.parent
	if parent == nil {
		parent = l.logicalParent
	}
	if parent == nil {
		if l.root && (string(l.typ) == "user" && !l.summary || string(l.subtype) == "local_command") {
			return nothing
		}
		return unknown
	}
	at, ok := r.lines[keyOf(parent)]
	if !ok || at.thread != t.index || at.node >= int32(len(t.nodes)) {
		return unknown
	}
	return at.node
}

// remark handles a line that is not part of the tree.
func (r *reader) remark(l *line) {
	became := transcript.OnlyKept
	switch string(l.typ) {
	case "summary":
		r.summary[keyOf(l.leaf)] = string(l.text)
		became = "title"
	case "custom-title":
		r.titles.Custom = string(l.text)
		became = "title"
	case "tag": // the last one counts; an empty one takes it back
		r.tag = string(l.text)
		became = "tag"
	case "ai-title":
		r.titles.AI = string(l.text)
		became = "title"
	}
	what := string(l.typ)
	if what == "" || len(what) > 40 {
		what = "unknown"
	}
	r.count(what+" line", became)
}

// emit passes a record to the sink, or holds it back until the reply before it is complete.
func (r *reader) emit(t *thread, rec transcript.Record) error {
	if t.reply != nil {
		t.held = append(t.held, rec)
		if len(t.held) < maxHeld {
			return nil
		}
		return r.closeReply(t)
	}
	if err := r.begin(t, false); err != nil {
		return err
	}
	return r.to.Add(rec)
}

// maxHeld is how many records wait for the end of a reply.
const maxHeld = 1000

// closeReply passes on a reply and the records that waited for it.
func (r *reader) closeReply(t *thread) error {
	if t.reply == nil {
		return nil
	}
	reply, held := t.reply, t.held
	t.reply, t.held = nil, nil
	if err := r.emit(t, reply.rec); err != nil {
		return err
	}
	for i := range held {
		if err := r.emit(t, held[i]); err != nil {
			return err
		}
	}
	return nil
}

// close passes on what was held back.
func (r *reader) close() error {
	if err := r.admit(true); err != nil {
		return err
	}
	r.pending = nil
	for _, t := range r.threads {
		if err := r.closeReply(t); err != nil {
			return err
		}
	}
	return nil
}

// isAgentFile reports whether the file is that of a subagent.
func (r *reader) isAgentFile() bool {
	_, agent := fileID(r.file.Path)
	return agent
}

// message fills in the entry of a message.
func message(l *line, t *thread, rec *transcript.Record, role session.MessageRole, content []session.Content) *session.MessageEntry {
	m := &session.MessageEntry{Role: role, Content: content}
	if len(l.copyOf) > 0 && !l.repeats() {
		note(m, metaCopyOf, string(l.copyOf))
	}
	if where := t.movedTo(l); where != nil {
		note(m, transcript.MetaWhere, where)
	}
	rec.Entry.Type, rec.Entry.Message = session.TypeMessage, m
	return m
}

// note says something about a message in its metadata.
func note(m *session.MessageEntry, key string, value any) {
	if m.Metadata == nil {
		m.Metadata = make(map[string]any)
	}
	m.Metadata[key] = value
}
