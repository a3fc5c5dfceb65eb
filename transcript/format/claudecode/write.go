package claudecode

import (
	"context"
	"path"
	"path/filepath"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// wireVersion is the version of Claude Code whose files we imitate. A session that came from
// Claude Code keeps its own version.
const wireVersion = "2.1.325"

// write turns a conversation into a transcript.
func write(_ context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	w := newScribe(s, nativeID(s), "")
	if w.cwd == "" {
		w.cwd = env.Home
		w.lose("", "directory", "the program keeps sessions by directory; this one is put under the home directory")
	}
	agents, err := subagents(s)
	if err != nil {
		return nil, err
	}
	w.started = agents
	w.tree(s)
	if len(w.buf) == 0 {
		return &transcript.Output{Losses: w.losses}, nil // nothing that the program could hold
	}
	w.remarks(s)
	out := &transcript.Output{
		Base:    filepath.Join(env.Dir("CLAUDE_CONFIG_DIR", ".claude"), "projects"),
		Files:   []transcript.OutputFile{{Path: path.Join(encodeDir(w.cwd), w.id+".jsonl"), Data: w.buf}},
		Resume:  plain.Command(resume(w.id)...),
		Dir:     w.cwd,
		Losses:  w.losses,
		Records: w.records,
	}
	for _, a := range agents {
		out.Files = append(out.Files, w.agentFiles(a)...)
	}
	out.Losses = w.losses
	return out, nil
}

// nativeID returns the id that a session has in the program.
func nativeID(s *transcript.Script) string {
	for _, id := range []string{s.NativeID, s.Header.ID} {
		if isUUID(id) {
			return id
		}
	}
	return transcript.HashID(Name, s.Header.ID)
}

// scribe writes the lines of one file.
type scribe struct {
	id, agent string // of the session, and of the subagent whose file this is, if it is one
	cwd       string
	branch    string         // of git
	where     map[string]any // where the last message was said, if not where the session began
	version   string         // of the program
	fork      string         // the session that this one was forked from, or ""
	started   []subagent
	own       bool // the session came from the program
	buf       []byte
	used      map[string]bool   // the uuids
	records   map[string]string // the entries of lines, where their ids differ
	losses    []transcript.Loss

	live     map[string]bool // the entries on the path to the session's leaf
	entries  map[string]*session.Entry
	edits    map[string]bool             // the edits that change what is sent
	placed   map[string]*entryNode       // the node of an entry, or of the one before it
	replies  map[string]*answer          // by entry
	calls    map[*session.Content]string // the ids of calls and results
	messages map[string]bool             // the ids of replies
}

func newScribe(s *transcript.Script, id, agent string) *scribe {
	w := &scribe{
		id: id, agent: agent, cwd: s.Header.CWD,
		used: make(map[string]bool), live: make(map[string]bool), records: make(map[string]string), edits: make(map[string]bool),
		entries: make(map[string]*session.Entry), placed: make(map[string]*entryNode), replies: make(map[string]*answer),
		calls: make(map[*session.Content]string), messages: make(map[string]bool),
	}
	w.own = s.NativeID != ""
	w.branch, _ = s.Facts[factBranch].(string)
	if w.version, _ = s.Facts[factVersion].(string); w.version == "" {
		w.version = wireVersion
	}
	w.fork, _ = s.Facts[factFork].(string)
	return w
}

func (w *scribe) lose(entry, what, why string) {
	w.losses = append(w.losses, transcript.Loss{EntryID: entry, What: what, Why: why})
}

// remarks writes the lines about the session as a whole.
func (w *scribe) remarks(s *transcript.Script) {
	switch s.Name {
	case "":
	case s.Facts[factAITitle]:
		w.remark("ai-title", "aiTitle", s.Name)
	default:
		w.remark("custom-title", "customTitle", s.Name)
	}
	tags := s.Tags()
	if len(tags) > 0 {
		w.remark("tag", "tag", tags[0])
	}
	if len(tags) > 1 {
		w.lose("", "tags", "the program has one for each session")
	}
}

func (w *scribe) remark(typ, member, text string) {
	w.open()
	w.str("type", typ)
	w.str(member, text)
	w.str("sessionId", w.id)
	w.end()
}

func (w *scribe) open() { w.buf = append(w.buf, '{') }

func (w *scribe) end() { w.buf = append(w.buf, '}', '\n') }

func (w *scribe) key(name string) {
	if w.buf[len(w.buf)-1] != '{' {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(rawjson.AppendString(w.buf, name), ':')
}

func (w *scribe) str(name, value string) {
	w.key(name)
	w.buf = rawjson.AppendString(w.buf, value)
}

func (w *scribe) raw(name, value string) {
	w.key(name)
	w.buf = append(w.buf, value...)
}

// draft is a line that is not placed in the tree yet: its type, further members, and its
// message.
type draft struct{ typ, more, message string }

// uuid returns the id of the n-th line of an entry. The first line has the entry's own id, so
// that it is read back as the same entry; a copy has another.
func (w *scribe) uuid(e *session.Entry, d *draft, n int, of string) string {
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
func (w *scribe) line(e *session.Entry, d draft, id, parent string) {
	w.open()
	switch {
	case parent == "":
		w.raw("parentUuid", "null")
	case d.isBoundary(): // nothing before it is sent
		w.raw("parentUuid", "null")
		w.str("logicalParentUuid", parent)
	default:
		w.str("parentUuid", parent)
	}
	w.raw("isSidechain", map[bool]string{false: "false", true: "true"}[w.agent != ""])
	if w.agent != "" {
		w.str("agentId", w.agent)
	}
	w.str("userType", "external")
	if e.Message != nil {
		w.where, _ = e.Message.Metadata[transcript.MetaWhere].(map[string]any)
	}
	w.str("cwd", w.placeOr(whereCWD, w.cwd))
	w.str("sessionId", w.id)
	w.str("version", w.version)
	w.str("gitBranch", w.placeOr(factBranch, w.branch))
	w.str("type", d.typ)
	if d.more != "" {
		w.buf = append(append(w.buf, ','), d.more...)
	}
	if d.message != "" {
		w.raw("message", d.message)
	}
	w.str("uuid", id)
	w.key("timestamp")
	w.buf = rawjson.AppendTime(w.buf, e.Timestamp.Truncate(time.Millisecond))
	w.end()
}

// placeOr returns the directory or the branch of the current message, or of the last one
// if the line is not a message.
func (w *scribe) placeOr(member, first string) string {
	if now, ok := w.where[member].(string); ok {
		return now
	}
	return first
}

// resume returns the command to run in the directory of the conversation: Claude
// Code looks for it there and nowhere else.
func resume(id string) []string { return []string{"claude", "--resume", id} }
