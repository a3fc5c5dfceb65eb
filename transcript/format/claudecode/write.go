package claudecode

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/draft"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// wireVersion is the version of Claude Code whose files we imitate. A session that came from
// Claude Code keeps its own version.
const wireVersion = "2.1.325"

// write turns a conversation into a transcript.
func write(_ context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	w := newScribe(s, draft.NativeID(s, Name, isUUID), "")
	if w.cwd == "" {
		w.cwd = env.Home
		w.Lose("", "directory", "the program keeps sessions by directory; this one is put under the home directory")
	}
	agents, err := subagents(s)
	if err != nil {
		return nil, err
	}
	w.started = agents
	w.tree()
	if w.Data.Len() == 0 {
		return &transcript.Output{Losses: w.Losses}, nil // nothing that the program could hold
	}
	w.remarks()
	files := []transcript.OutputFile{{Path: path.Join(encodeDir(w.cwd), w.id+".jsonl"), Data: w.Data.Bytes()}}
	for _, a := range agents {
		files = append(files, w.agentFiles(a)...)
	}
	return &transcript.Output{
		Base:    filepath.Join(env.Dir("CLAUDE_CONFIG_DIR", ".claude"), "projects"),
		Files:   files,
		Resume:  plain.Command(resume(w.id)...),
		Dir:     w.cwd,
		Losses:  w.Losses,
		Records: w.records,
	}, nil
}

// scribe writes the lines of one file.
type scribe struct {
	draft.Draft
	id, agent string // of the session, and of the subagent whose file this is, if it is one
	cwd       string
	branch    string         // of git
	where     map[string]any // the place of the last message, if not where the session began
	version   string         // of the program
	fork      string         // the session that this one was forked from, or ""
	started   []subagent
	own       bool              // the session came from the program
	used      map[string]bool   // the uuids
	records   map[string]string // the entries of lines, where their ids differ

	live     map[string]bool // the entries on the path to the session's leaf
	entries  map[string]*session.Entry
	edits    map[string]bool             // the edits that change what is sent
	nodeOf   map[string]*entryNode       // the node of an entry, or of the one before it
	replies  map[string]*answer          // by entry
	calls    map[*session.Content]string // the ids of calls and results
	messages map[string]bool             // the ids of replies
}

func newScribe(s *transcript.Script, id, agent string) *scribe {
	w := &scribe{
		Draft: draft.Draft{Script: s}, id: id, agent: agent, cwd: s.Header.CWD,
		used: make(map[string]bool), live: make(map[string]bool), records: make(map[string]string), edits: make(map[string]bool),
		entries: make(map[string]*session.Entry), nodeOf: make(map[string]*entryNode), replies: make(map[string]*answer),
		calls: make(map[*session.Content]string), messages: make(map[string]bool),
	}
	w.own = s.NativeID != ""
	w.branch, w.version, w.fork = w.Fact(factBranch, ""), w.Fact(factVersion, wireVersion), w.Fact(factFork, "")
	return w
}

// remarks writes the lines about the session as a whole.
func (w *scribe) remarks() {
	switch title := w.Script.Name; title {
	case "":
	case w.Script.Facts[factAITitle]:
		w.remark("ai-title", "aiTitle", title)
	default:
		w.remark("custom-title", "customTitle", title)
	}
	tags := w.Script.Tags()
	if len(tags) > 0 {
		w.remark("tag", "tag", tags[0])
	}
	if len(tags) > 1 {
		w.Lose("", "tags", "the program has one for each session")
	}
}

func (w *scribe) remark(typ, member, text string) {
	w.Line(object("type", typ, member, text, "sessionId", w.id).JSON())
}

// object returns an object with the given members: each is a name and a value.
func object(members ...any) residue.Object {
	var o residue.Object
	for pair := range slices.Chunk(members, 2) {
		o.Set(pair[0].(string), pair[1])
	}
	return o
}

// row is a line that is not placed in the tree yet: its type, further members, and its
// message.
type row struct {
	typ     string
	more    residue.Object
	message any
}

// uuid returns the id of the n-th line of an entry. The first line has the entry's own id, so
// that it is read back as the same entry; a copy has another.
func (w *scribe) uuid(e *session.Entry, d *row, n int, of string) string {
	id := e.ID
	if n > 0 || of != "" || !isUUID(id) {
		id = transcript.HashID(Name, w.id+w.agent, e.ID+of, string(rune('0'+n)))
	}
	for w.used[id] {
		id = transcript.HashID(Name, id)
	}
	w.used[id] = true
	if id != e.ID && (n == 0 || d.typ == "user") { // the other lines of a reply are not records
		w.records[id] = e.ID
	}
	if d.typ == "user" && e.Message != nil && isMixed(e.Message.Content) {
		w.records[id+moreText] = e.ID
	}
	return id
}

// isMixed reports whether a message has results and something else.
func isMixed(content []session.Content) bool {
	results, rest := split(content)
	return len(results) > 0 && len(rest) > 0
}

// line writes a line of the tree after another one.
func (w *scribe) line(e *session.Entry, d row, id, parent string) {
	o := object("parentUuid", nil)
	switch {
	case parent == "":
	case d.isBoundary(): // nothing before it is sent
		o.Set("logicalParentUuid", parent)
	default:
		o.Set("parentUuid", parent)
	}
	o.Set("isSidechain", w.agent != "")
	o.SetText("agentId", w.agent)
	o.Set("userType", "external")
	if e.Message != nil {
		w.where, _ = e.Message.Metadata[transcript.MetaWhere].(map[string]any)
	}
	o.Set("cwd", w.whereOr(whereCWD, w.cwd))
	o.Set("sessionId", w.id)
	o.Set("version", w.version)
	o.Set("gitBranch", w.whereOr(factBranch, w.branch))
	o.Set("type", d.typ)
	o.Merge(d.more)
	if d.message != nil {
		o.Set("message", d.message)
	}
	o.Set("uuid", id)
	o.Put("timestamp", rawjson.AppendTime(nil, e.Timestamp.Truncate(time.Millisecond)))
	w.Line(o.JSON())
}

// whereOr returns the directory or the branch of the current message, or of the last one
// if the line is not a message.
func (w *scribe) whereOr(member, first string) string {
	if now, ok := w.where[member].(string); ok {
		return now
	}
	return first
}

// resume returns the command to run in the directory of the conversation: Claude
// Code looks for it there and nowhere else.
func resume(id string) []string { return []string{"claude", "--resume", id} }
