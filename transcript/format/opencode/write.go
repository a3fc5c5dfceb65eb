package opencode

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/draft"
	"github.com/coppice-dev/coppice/transcript/internal/place"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// write makes a file that `opencode import` reads. opencode keeps sessions in a database,
// which is not ours to write; the file is put beside it until it is imported. opencode adds
// the messages that it does not have yet, by their ids, so a conversation that was continued
// here can be exported and imported again.
func write(ctx context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	w := &writer{Draft: draft.Draft{Script: s}, id: sessionID(s), created: cmp.Or(s.Header.CreatedAt, s.Now), byEntry: make(map[string]string), used: make(map[string]bool)}
	w.known = parts(ctx, env, w.id)
	w.messages()
	w.LoseLabels("opencode")
	w.LoseBranches()
	var doc residue.Object
	doc.Set("info", w.info())
	doc.Set("messages", residue.List(w.list))
	base := filepath.Join(place.Data(env), "opencode", "coppice")
	path := w.id + ".json"
	return &transcript.Output{
		Files:  []transcript.OutputFile{{Path: path, Data: append(doc.Indented(), '\n')}},
		Base:   base,
		Resume: plain.Command(load(filepath.Join(base, path))...) + " && " + plain.Command(resume(w.id)...),
		Losses: w.Losses,
	}, nil
}

func load(path string) []string { return []string{"opencode", "import", path} }

var isSessionID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ses_[A-Za-z0-9_-]+$`) })

func sessionID(s *transcript.Script) string {
	if isSessionID().MatchString(s.NativeID) {
		return s.NativeID
	}
	return idOf("ses_", s.Header.ID)
}

// idOf derives an id in opencode's form from the id of an entry.
func idOf(prefix, id string) string {
	return prefix + strings.ReplaceAll(transcript.HashID(prefix, id), "-", "")[:26]
}

// writer writes the messages of a session.
type writer struct {
	draft.Draft
	id      string
	created time.Time
	list    []jsonText

	at      int64             // the time of the last message, in milliseconds
	count   int               // of the ids made for that time
	byEntry map[string]string // the message that each entry became
	used    map[string]bool   // the ids of messages
	user    string            // the last message of the user
	model   model             // of the last answer
	total   session.Usage
	known   known
}

// model is a model as opencode names it.
type model struct{ provider, name string }

// info returns the session's info object.
func (w *writer) info() jsonText {
	s := w.Script
	var o, at residue.Object
	o.Set("id", w.id)
	o.Set("slug", w.Fact("slug", "coppice-"+idOf("", w.id)[:8]))
	o.Set("projectID", "global") // the import replaces it by its directory's
	o.Set("directory", s.Header.CWD)
	if parent := s.Header.ParentSession; parent != "" && s.Header.Relation == session.RelationSubagent {
		o.Set("parentID", w.Fact("parentID", idOf("ses_", parent)))
	}
	o.Set("title", cmp.Or(s.Title(), "Untitled"))
	o.Set("version", w.Fact("version", "1.18.33"))
	o.SetText("agent", w.Fact("agent", ""))
	o.Set("cost", float64(w.total.CostMicroUSD)/1e6)
	o.Set("tokens", tokens(&w.total))
	at.Set("created", w.created.UnixMilli())
	at.Set("updated", max(w.at, w.created.UnixMilli()))
	o.Set("time", at.JSON())
	return o.JSON()
}

// isInjected reports whether a program wrote a message, not the user.
func isInjected(m *session.MessageEntry) bool {
	injected, _ := m.Metadata[session.MetaInjected].(bool)
	return injected
}

// messages writes what a model is sent now, and before it the messages that a compaction
// replaced: opencode keeps those too, and does not send them.
func (w *writer) messages() {
	before, entries := w.arrange()
	w.model = firstModel(slices.Concat(entries, before))
	for _, part := range [][]session.Entry{before, entries} {
		part = transcript.JoinReplies(part)
		for i := range part {
			w.entry(&part[i], part[i+1:])
		}
	}
}

// arrange returns the entries in the order of the file: those left out of the context, then
// the context, with a compaction after the messages that it kept.
func (w *writer) arrange() (before, entries []session.Entry) {
	place := make(map[string]int)
	for i := range w.Script.Path {
		place[w.Script.Path[i].ID] = i
	}
	entries = slices.Clone(w.Script.Context.Entries)
	first := slices.IndexFunc(entries, func(e session.Entry) bool { return e.Compaction != nil })
	if first < 0 {
		return nil, entries
	}
	if c := &entries[first]; c.Compaction.Summary == "" { // the summary is in what follows, in a form that only its provider reads
		w.Lose(c.ID, "history", "opencode has no compaction without a summary; what comes before it is left out")
		return nil, slices.Delete(entries, first, first+1)
	}
	at, kept := place[entries[first].ID], first+1
	for kept < len(entries) {
		if i, ok := place[entries[kept].ID]; !ok && !isInterruption(&entries[kept]) || ok && i > at {
			break
		}
		kept++
	}
	begins := at
	if kept > first+1 {
		begins = place[entries[first+1].ID]
	}
	before = slices.DeleteFunc(slices.Clone(w.Script.Path[:begins]), func(e session.Entry) bool {
		return e.Message == nil && e.Compaction == nil || e.Message != nil && e.Message.Role == session.RoleSystem
	})
	compaction := entries[first]
	return before, slices.Concat(entries[:first], entries[first+1:kept], []session.Entry{compaction}, entries[kept:])
}

// isInterruption reports whether an entry is a context's stand-in for results that never
// came.
func isInterruption(e *session.Entry) bool { return strings.HasPrefix(e.ID, session.InterruptedPrefix) }

// firstModel returns the model that answers first. opencode wants one for each prompt.
func firstModel(entries []session.Entry) model {
	for i := range entries {
		if m := entries[i].Message; m != nil && m.Role == session.RoleAssistant && m.Model != "" {
			return modelOf(m)
		}
	}
	return model{"unknown", "unknown"}
}

func modelOf(m *session.MessageEntry) model {
	return model{cmp.Or(m.Provider, "unknown"), cmp.Or(m.Model, "unknown")}
}

func (w *writer) entry(e *session.Entry, after []session.Entry) {
	switch {
	case e.Compaction != nil:
		w.compaction(e)
	case e.BranchSummary != nil:
		w.writeSummary(e, session.BranchLead+e.BranchSummary.Summary)
	case e.Merge != nil:
		w.writeSummary(e, session.MergeLead+e.Merge.Summary)
	case e.Message == nil:
	case e.Message.Role == session.RoleSystem:
		w.Lose(e.ID, "system prompt", "opencode has its own")
	case e.Message.Role == session.RoleAssistant:
		w.answer(e, resultsAfter(after))
	case e.Message.Role != session.RoleTool:
		m := w.begin(e)
		m.content(e.Message)
		m.end(w.prompt(m))
	}
}

// resultsAfter returns the first result of each call that follows an answer, with its time.
func resultsAfter(entries []session.Entry) map[string]result {
	found := make(map[string]result)
	for i := range entries {
		m := entries[i].Message
		if m == nil || m.Role != session.RoleTool {
			break
		}
		for _, c := range m.Content {
			if c.ToolResult != nil && found[c.ToolResult.ToolUseID].ToolResultContent == nil {
				found[c.ToolResult.ToolUseID] = result{c.ToolResult, entries[i].Timestamp}
			}
		}
	}
	return found
}

// writeSummary writes a summary as a message of the user.
func (w *writer) writeSummary(e *session.Entry, text string) {
	m := w.begin(e)
	m.text(text, true)
	m.end(w.prompt(m))
}

// compaction writes the request for a summary, and the summary.
func (w *writer) compaction(e *session.Entry) {
	m := w.begin(e)
	part := m.part("compaction", "")
	part.Set("auto", false)
	if kept := w.byEntry[e.Compaction.FirstKeptEntryID]; kept != "" {
		part.Set("tail_start_id", kept)
	}
	m.add(part)
	m.end(w.prompt(m))
	asked := w.user
	summary := w.begin(&session.Entry{ID: e.ID + " summary", Timestamp: e.Timestamp})
	w.byEntry[e.ID] = summary.id
	if e.Compaction.Summary == "" { // only what follows counts; a message without parts is not written
		summary.add(summary.part("step-start", ""))
	}
	summary.text(e.Compaction.Summary, false)
	info := w.reply(summary, w.model, nil)
	info.Set("parentID", asked)
	info.Set("summary", true)
	info.Set("mode", "compaction")
	info.Set("agent", "compaction")
	info.Set("finish", "stop")
	summary.end(info)
}

// answer writes the thoughts, text and calls of a model, with the answers of tools.
func (w *writer) answer(e *session.Entry, results map[string]result) {
	m := w.begin(e)
	w.model = modelOf(e.Message)
	m.add(m.part("step-start", ""))
	m.results = results
	m.content(e.Message)
	finish := m.part("step-finish", "")
	reason := stopReason(e.Message)
	finish.Set("reason", reason)
	finish.Set("cost", cost(e.Message.Usage))
	finish.Set("tokens", tokens(e.Message.Usage))
	m.add(finish)
	info := w.reply(m, w.model, e.Message.Usage)
	info.Set("finish", reason)
	if failed, ok := e.Message.Metadata["error"].(map[string]any); ok && failed["name"] == "MessageAbortedError" {
		info.Set("error", failed)
	}
	w.total = *w.total.Plus(e.Message.Usage)
	m.end(info)
}

func stopReason(m *session.MessageEntry) string {
	if slices.ContainsFunc(m.Content, func(c session.Content) bool { return c.ToolUse != nil }) {
		return "tool-calls"
	}
	if m.StopReason == "length" || m.StopReason == "max_tokens" {
		return "length"
	}
	return "stop"
}

// prompt returns the info object of a message of the user.
func (w *writer) prompt(m *message) residue.Object {
	o := m.info("user")
	var used residue.Object
	used.Set("providerID", w.model.provider)
	used.Set("modelID", w.model.name)
	o.Set("agent", "build")
	o.Set("model", used.JSON())
	w.user = m.id
	return o
}

// reply returns the info object of a message of a model.
func (w *writer) reply(m *message, by model, u *session.Usage) residue.Object {
	o := m.info("assistant")
	var path residue.Object
	path.Set("cwd", w.Script.Header.CWD)
	path.Set("root", w.Script.Header.CWD)
	o.Set("parentID", cmp.Or(w.user, idOf("msg_", w.id))) // it need not exist
	o.Set("modelID", by.name)
	o.Set("providerID", by.provider)
	o.Set("mode", "build")
	o.Set("agent", "build")
	o.Set("path", path.JSON())
	o.Set("cost", cost(u))
	o.Set("tokens", tokens(u))
	return o
}

func cost(u *session.Usage) float64 {
	if u == nil {
		return 0
	}
	return float64(u.CostMicroUSD) / 1e6
}

// tokens returns the counts in opencode's form: thinking is not part of the output.
func tokens(u *session.Usage) jsonText {
	if u == nil {
		u = &session.Usage{}
	}
	var o, cache residue.Object
	cache.Set("read", u.CacheRead)
	cache.Set("write", u.CacheWrite)
	o.Set("input", u.Input)
	o.Set("output", max(u.Output-u.Reasoning, 0))
	o.Set("reasoning", u.Reasoning)
	o.Set("cache", cache.JSON())
	return o.JSON()
}

// isNative recognises the ids of messages that came from opencode.
func isNative(id string) bool { return strings.HasPrefix(id, "msg_") }

// messageID returns the id of the message that an entry becomes. They ascend, as
// opencode's do: the first digits are the time.
func (w *writer) messageID(e *session.Entry) string {
	if native, _, _ := strings.Cut(e.ID, "/"); isNative(native) && !w.used[native] {
		return native
	}
	return w.ascending("msg_", e.ID)
}

// ascending returns an id that sorts after all earlier ones.
func (w *writer) ascending(prefix, id string) string {
	w.count++
	stamp := uint64(w.at)*0x1000 + uint64(w.count)
	return fmt.Sprintf("%s%012x%s", prefix, stamp&0xffffffffffff, idOf("", w.id+id)[:14])
}
