package claudecode

import (
	"path"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// subagent is a conversation that a call of the session started.
type subagent struct {
	id     string // of the agent
	call   string // that started it, or ""
	script *transcript.Script
}

// subagents returns the conversations that are written with a session.
func subagents(s *transcript.Script) ([]subagent, error) {
	if s.Subagents == nil {
		return nil, nil
	}
	scripts, err := s.Subagents()
	var list []subagent
	for _, script := range scripts {
		from, _ := session.OriginOf(&script.Header)
		_, id, ok := strings.Cut(script.NativeID, "/agent-")
		if !ok || strings.ContainsAny(id, `/\`) {
			id = "a" + hashOf(script.Header.ID)[:16]
		}
		list = append(list, subagent{id, from.ParentCall, script})
	}
	return list, err
}

// agentFiles returns the files of a subagent, if there is anything to write: its transcript,
// and what the program recorded about it. They are below the session's own file.
func (w *scribe) agentFiles(a subagent) []transcript.OutputFile {
	agent := newScribe(a.script, w.id, a.id)
	if agent.cwd == "" {
		agent.cwd = w.cwd
	}
	agent.started = w.started // it may have started others
	agent.tree()
	w.Losses = append(w.Losses, agent.Losses...)
	if agent.Data.Len() == 0 {
		return nil
	}
	file := path.Join(encodeDir(w.cwd), w.id, "subagents", "agent-"+a.id)
	files := []transcript.OutputFile{{
		Path: file + ".jsonl", Data: agent.Data.Bytes(),
		Of: &transcript.OutputOf{Session: a.script.Header.ID, Native: w.id + "/agent-" + a.id, Records: agent.records},
	}}
	if meta, ok := a.script.Facts[factAgent].(map[string]any); ok {
		// A file that the program wrote there stays.
		files = append(files, transcript.OutputFile{Path: file + metaSuffix, Merge: func(old []byte) ([]byte, error) {
			if len(old) > 0 {
				return old, nil
			}
			return rawjson.AppendAny(nil, meta)
		}})
	}
	return files
}

// outcome is the member by which the program finds the subagent of a call: its record of
// the tool's result besides the message.
func (w *scribe) outcome(m *session.MessageEntry) residue.Object {
	results, _ := split(m.Content)
	if len(results) != 1 {
		return nil
	}
	r := results[0].ToolResult
	for _, a := range w.started {
		if a.call != "" && a.call == r.ToolUseID {
			return object("toolUseResult", object(
				"status", "completed", "agentId", a.id, "prompt", "", "content", textBlocks(r.Content),
				"totalDurationMs", 0, "totalTokens", 0, "totalToolUseCount", 0, "usage", usageJSON(nil),
			).JSON())
		}
	}
	return nil
}
