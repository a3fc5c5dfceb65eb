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

// version is the version of the program whose files are written.
const version = "2.1.42"

// write makes a transcript of a conversation.
func write(_ context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	w := &scribe{id: s.NativeID, cwd: s.Header.CWD}
	if !isUUID(w.id) {
		w.id = s.Header.ID
	}
	if !isUUID(w.id) {
		w.id = transcript.HashID(Name, w.id)
	}
	if w.cwd == "" {
		w.cwd = env.Home
		w.lose("", "directory", "the program keeps sessions by directory; this one is put under the home directory")
	}
	w.branch, _ = s.Facts[factBranch].(string)
	w.used, w.replies = make(map[string]bool), answers(s.Path)
	for i := range s.Path {
		w.entry(&s.Path[i])
	}
	if len(w.buf) == 0 {
		return &transcript.Output{Losses: w.losses}, nil // nothing that the program could hold
	}
	if s.Name != "" {
		w.open()
		w.str("type", "custom-title")
		w.str("customTitle", s.Name)
		w.str("sessionId", w.id)
		w.end()
	}
	return &transcript.Output{
		Base:   filepath.Join(env.Dir("CLAUDE_CONFIG_DIR", ".claude"), "projects"),
		Files:  []transcript.OutputFile{{Path: path.Join(encodeDir(w.cwd), w.id+".jsonl"), Data: w.buf}},
		Resume: "cd " + plain.ShellWord(w.cwd) + " && " + plain.Command(resume(w.id)...),
		Losses: append(w.losses, s.OtherBranches()...),
	}, nil
}

// scribe writes lines.
type scribe struct {
	id, cwd string
	buf     []byte
	parent  string
	used    map[string]bool // the uuids
	branch  string          // of git
	losses  []transcript.Loss
	replies map[string]*answer // by entry
}

func (w *scribe) lose(entry, what, why string) {
	w.losses = append(w.losses, transcript.Loss{EntryID: entry, What: what, Why: why})
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

// entry writes the lines of an entry.
func (w *scribe) entry(e *session.Entry) {
	switch {
	case e.Message != nil:
		w.message(e)
	case e.Compaction != nil:
		w.compaction(e)
	case e.BranchSummary != nil && e.BranchSummary.Summary != "":
		w.line(e, 0, "user", `"isMeta":true`, textMessage("user", e.BranchSummary.Summary))
	case e.Merge != nil && e.Merge.Summary != "":
		w.line(e, 0, "user", `"isMeta":true`, textMessage("user", e.Merge.Summary))
	case e.ContextEdit != nil:
		w.lose(e.ID, "context edit", "the program sends every result again")
	case e.Revert != nil:
		w.lose(e.ID, "undo", "the program cannot take a compaction back")
	}
}

// uuid returns the id of the n-th line of an entry. The first has the entry's
// own, so that what comes back is the same entry.
func (w *scribe) uuid(e *session.Entry, n int) string {
	id := e.ID
	if n > 0 || !isUUID(id) {
		id = transcript.HashID(Name, w.id, e.ID, string(rune('0'+n)))
	}
	for w.used[id] {
		id = transcript.HashID(Name, id)
	}
	w.used[id] = true
	return id
}

// line writes a line of the tree. more are further members, message the message.
func (w *scribe) line(e *session.Entry, n int, typ, more, message string) {
	id := w.uuid(e, n)
	w.open()
	if w.parent == "" {
		w.raw("parentUuid", "null")
	} else {
		w.str("parentUuid", w.parent)
	}
	w.common(typ, more)
	if message != "" {
		w.raw("message", message)
	}
	w.str("uuid", id)
	w.key("timestamp")
	w.buf = rawjson.AppendTime(w.buf, e.Timestamp.Truncate(time.Millisecond))
	w.end()
	w.parent = id
}

func (w *scribe) common(typ, more string) {
	w.raw("isSidechain", "false")
	w.str("userType", "external")
	w.str("cwd", w.cwd)
	w.str("sessionId", w.id)
	w.str("version", version)
	w.str("gitBranch", w.branch)
	w.str("type", typ)
	if more != "" {
		w.buf = append(append(w.buf, ','), more...)
	}
}

// compaction writes a boundary and the summary.
func (w *scribe) compaction(e *session.Entry) {
	id := w.uuid(e, 0)
	w.open()
	w.raw("parentUuid", "null")
	if w.parent != "" {
		w.str("logicalParentUuid", w.parent)
	}
	w.common("system", `"subtype":"compact_boundary","content":"Conversation compacted","isMeta":false,"level":"info"`)
	w.key("compactMetadata")
	w.buf = append(w.buf, `{"trigger":"manual","preTokens":`...)
	w.buf = append(rawjson.AppendInt(w.buf, int64(e.Compaction.TokensBefore)), '}')
	w.str("uuid", id)
	w.key("timestamp")
	w.buf = rawjson.AppendTime(w.buf, e.Timestamp.Truncate(time.Millisecond))
	w.end()
	w.parent = id
	w.line(e, 1, "user", `"isCompactSummary":true,"isVisibleInTranscriptOnly":true`, textMessage("user", e.Compaction.Summary))
	if kept := e.Compaction.FirstKeptEntryID; kept != "" && kept != e.ID {
		w.lose(e.ID, "messages kept by a compaction", "the program sends nothing before its summary")
	}
}

func textMessage(role, text string) string {
	m := append([]byte(`{"role":"`+role+`","content":`), rawjson.AppendString(nil, text)...)
	return string(append(m, '}'))
}

// resume returns the command to run in the directory of the conversation: Claude
// Code looks for it there and nowhere else.
func resume(id string) []string { return []string{"claude", "--resume", id} }
