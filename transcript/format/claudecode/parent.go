package claudecode

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/transcript"
)

// maxNested is how far above a subagent's file the session's own may be:
// <session>.jsonl beside <session>/subagents/workflows/<id>/.
const maxNested = 6

// parentFile returns the file of the session that started a subagent, or nil. It is
// beside the subagent's file or above it.
func (r *reader) parentFile(id string) *transcript.File {
	if !isUUID(id) || !filepath.IsAbs(r.file.Path) {
		return nil
	}
	dir := filepath.Dir(r.file.Path)
	for range maxNested {
		if f, err := transcript.OpenFile(filepath.Join(dir, id+".jsonl")); err == nil {
			return f
		}
		dir = filepath.Dir(dir)
	}
	return nil
}

// sessionOfAgent returns the session whose directory holds a subagent's file, or "".
func sessionOfAgent(path string) string {
	dir := filepath.Dir(path)
	for range maxNested {
		if filepath.Base(dir) == "subagents" {
			if id := filepath.Base(filepath.Dir(dir)); isUUID(id) {
				return id
			}
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// familyOf returns the family of the session in a file, or "".
func (r *reader) familyOf(f *transcript.File) string {
	l := firstLine(f)
	if l == nil {
		return ""
	}
	return r.familyFrom(l)
}

// familyFrom returns the family of a session, given the first line of its tree. A fork
// that repeats lines of its original belongs to the original's family. It need not
// begin with the same line: the program leaves out progress, and what is before a
// compaction.
func (r *reader) familyFrom(l *line) string {
	own := family(l.uuid)
	for range maxForks {
		if !l.repeats() {
			break
		}
		f := r.parentFile(string(l.forkOf))
		if f == nil {
			break
		}
		first := firstLine(f)
		if first == nil {
			break
		}
		if of := family(first.uuid); of != "" {
			own = of
		}
		l = first
	}
	return own
}

// maxForks is how many forks of forks are followed: files may name each other.
const maxForks = 32

// firstLine returns the first line of the tree in a file, or nil.
func firstLine(f *transcript.File) *line {
	for head := f.Head(); len(head) > 0; {
		text, rest, _ := bytes.Cut(head, []byte{'\n'})
		head = rest
		var l line
		if l.parse(text) == nil && !l.isRemark() {
			return &l
		}
	}
	return nil
}

// callOf looks in the file of a session for the call that started a subagent. The
// program says it in several ways: when it queues the task, when it shows what
// the subagent does, and with the outcome.
func callOf(ctx context.Context, f *transcript.File, agent string) string {
	if agent == "" {
		return ""
	}
	weak := ""
	for text, err := range f.Lines(ctx) {
		if err != nil {
			break
		}
		if !bytes.Contains(text.Data, []byte(agent)) {
			continue
		}
		var l line
		if l.parse(text.Data) != nil {
			continue
		}
		switch string(l.typ) {
		case "queue-operation":
			if call := queuedCall(l.content, agent); call != "" {
				return call
			}
		case "progress":
			if call := progressCall(text.Data, agent); call != "" {
				return call
			}
		case "user":
			if agentOf(l.result) == agent && weak == "" {
				weak = onlyCall(&l)
			}
		}
	}
	return weak
}

// queuedCall reads a task that was queued: as JSON or with tags.
func queuedCall(raw []byte, agent string) string {
	text, _ := rawjson.String(raw)
	var task struct {
		TaskID    string `json:"task_id"`
		ToolUseID string `json:"tool_use_id"`
	}
	if json.Unmarshal([]byte(text), &task) == nil && task.TaskID == agent {
		return task.ToolUseID
	}
	if between(text, "<task-id>", "</task-id>") == agent {
		return between(text, "<tool-use-id>", "</tool-use-id>")
	}
	return ""
}

// progressCall reads what was shown of a subagent's work.
func progressCall(raw []byte, agent string) string {
	var p struct {
		ParentToolUseID string
		Data            struct{ Type, AgentID string }
	}
	if json.Unmarshal(raw, &p) == nil && p.Data.Type == "agent_progress" && p.Data.AgentID == agent {
		return p.ParentToolUseID
	}
	return ""
}

// onlyCall returns the call that a line answers, if it is one.
func onlyCall(l *line) string {
	l.parseMessage()
	results, _ := split(l.contents())
	if len(results) != 1 || results[0].ToolResult == nil {
		return ""
	}
	return results[0].ToolResult.ToolUseID
}
