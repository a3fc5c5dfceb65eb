package codex

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/draft"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// write turns the conversation's path into a rollout. What comes before the compaction
// in force is only shown; the model is sent the context, item by item.
func write(_ context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	w := &writer{Draft: draft.Draft{Script: s}, id: threadID(s), created: cmp.Or(s.Header.CreatedAt, s.Now), index: make(map[string]int), states: statesOf(s.Path)}
	for i, e := range s.Path {
		w.index[e.ID] = i
	}
	w.meta()
	if err := w.conversation(); err != nil {
		return nil, err
	}
	if c := s.Context; c.Model != "" {
		w.answers(c.Model, c.ThinkingLevel, s.Updated())
	}
	w.listLosses()
	local := w.created.In(s.Now.Location())
	out := &transcript.Output{
		Files: []transcript.OutputFile{{
			Path: fmt.Sprintf("sessions/%s/rollout-%s-%s.jsonl", local.Format("2006/01/02"), local.Format("2006-01-02T15-04-05"), w.id),
			Data: w.Data.Bytes(),
		}},
		Base:   env.Dir("CODEX_HOME", ".codex"),
		Resume: plain.Command(resume(w.id)...),
		Losses: w.Losses,
	}
	if s.Name != "" {
		out.Files = append(out.Files, w.indexFile())
	}
	return out, nil
}

// threadID returns the id that the thread will have: Codex takes UUIDs only.
func threadID(s *transcript.Script) string {
	return draft.NativeID(s, name, func(id string) bool { return id != "" && idPattern().FindString(id) == id })
}

type writer struct {
	draft.Draft
	id      string
	created time.Time
	index   map[string]int  // of entries on the path, by id
	states  []session.State // at each of them
	model   string
	effort  string
	total   *session.Usage
	spentOn map[string]bool // responses whose usage was written
}

func (w *writer) line(kind string, at time.Time, payload json.RawMessage) {
	var o residue.Object
	o.Set("timestamp", cmp.Or(at, w.created).UTC().Format("2006-01-02T15:04:05.000Z"))
	o.Set("type", kind)
	o.Set("payload", payload)
	w.Line(o.JSON())
}

// wireVersion is the version of Codex whose rollouts we imitate.
const wireVersion = "0.106.0"

func (w *writer) meta() {
	h, facts := w.Script.Header, w.Script.Facts
	var o, git residue.Object
	o.Set("id", w.id)
	o.Set("timestamp", w.created.UTC().Format("2006-01-02T15:04:05.000Z"))
	o.Set("cwd", h.CWD)
	o.Set("originator", w.Fact("originator", "codex_cli_rs"))
	o.Set("cli_version", w.Fact("cli_version", wireVersion))
	if source, ok := facts[factSource]; ok {
		o.Set("source", source)
	} else {
		o.Set("source", "cli")
	}
	if prompt, ok := facts[factPrompt]; ok {
		o.Set("base_instructions", prompt)
	}
	// Codex continues only with the provider that is named here. Without a name it uses
	// the configured one, which is right for a conversation from elsewhere.
	o.SetText("model_provider", w.Fact("model_provider", ""))
	git.SetText("branch", w.Fact("git_branch", ""))
	git.SetText("commit_hash", w.Fact("git_commit", ""))
	git.SetText("repository_url", w.Fact("git_repository", ""))
	if len(git) > 0 {
		o.Set("git", git.JSON())
	}
	w.line(kindMeta, w.created, o.JSON())
	if w.Script.Name != "" {
		var title residue.Object
		title.Set("type", "thread_name_updated")
		title.Set("thread_id", w.id)
		title.Set("thread_name", w.Script.Name)
		w.line(kindEvent, w.created, title.JSON())
	}
}

// conversation writes the path up to the compaction in force as it was, and from
// there on what the model is sent.
func (w *writer) conversation() error {
	c := w.Script.Context
	at, compacted := w.index[c.Compaction]
	if !compacted || c.Compaction == "" {
		return w.entries(c.Entries, 0)
	}
	if err := w.before(w.Script.Path[:at]); err != nil {
		return err
	}
	kept := 0
	for i, e := range c.Entries {
		place, ok := w.index[e.ID]
		if ok && place <= at || kept == i && e.IsRepeated() { // up to the compaction itself, or what it keeps or repeats
			kept = i + 1
		}
	}
	if err := w.compacted(&w.Script.Path[at], c.Entries[:kept]); err != nil {
		return err
	}
	return w.entries(c.Entries[kept:], at)
}

// before writes the entries that the model no longer sees.
func (w *writer) before(path []session.Entry) error {
	for i := 0; i < len(path); i++ {
		e := &path[i]
		if e.Compaction != nil {
			history := []session.Entry{*e}
			for ; i+1 < len(path) && (path[i+1].IsRepeated() || path[i+1].ContextEdit != nil); i++ {
				history = append(history, path[i+1])
			}
			if err := w.compacted(e, history); err != nil {
				return err
			}
			continue
		}
		if e.Message == nil && e.BranchSummary == nil && e.Merge == nil && e.Custom == nil {
			continue
		}
		if err := w.entry(e); err != nil {
			return err
		}
	}
	return nil
}

// compacted writes a compaction: from here on, the given entries are the history.
func (w *writer) compacted(e *session.Entry, entries []session.Entry) error {
	history := []json.RawMessage{}
	for i := range entries {
		if entries[i].ID == e.ID && strings.HasPrefix(e.Compaction.Summary, summaryPrefix) {
			continue
		}
		items, err := w.items(entries[i : i+1])
		if err != nil {
			return err
		}
		history = append(history, items...)
	}
	if summary := e.Compaction.Summary; strings.HasPrefix(summary, summaryPrefix) {
		history = append(history, textItem(session.RoleUser, summary)) // where Codex itself puts it
	}
	var o residue.Object
	o.Set("message", e.Compaction.Summary)
	o.Set("replacement_history", residue.List(history))
	w.line(kindCompacted, e.Timestamp, o.JSON())
	return nil
}

// entries writes a context's entries, and between them what happened there on the path,
// from the given place on.
func (w *writer) entries(list []session.Entry, from int) error {
	path := w.Script.Path
	for i := range list {
		if place, ok := w.index[list[i].ID]; ok {
			for ; from < place; from++ {
				w.unsent(&path[from])
			}
		}
		if w.Script.NativeID != "" && strings.HasPrefix(list[i].ID, session.InterruptedPrefix) {
			continue // Codex says itself that its call was aborted
		}
		if err := w.entry(&list[i]); err != nil {
			return err
		}
	}
	for ; from < len(path); from++ {
		w.unsent(&path[from])
	}
	return nil
}

// entry writes an entry as the items that the model is sent, and as the events
// that are shown.
func (w *writer) entry(e *session.Entry) error {
	if e.Custom != nil {
		w.unsent(e)
		return nil
	}
	w.turn(e)
	items, err := w.items([]session.Entry{*e})
	if err != nil {
		return err
	}
	for _, item := range items {
		w.line(kindItem, e.Timestamp, item)
	}
	if e.Message != nil {
		w.show(e)
		w.count(e)
	}
	return nil
}

// turn writes which model answers from here on, if that changes.
func (w *writer) turn(e *session.Entry) {
	if e.Message == nil {
		return
	}
	if model, effort := w.inForce(e); model != "" {
		w.answers(model, effort, e.Timestamp)
	}
}

// answers writes which model answers from a time on, unless it already did.
func (w *writer) answers(model, effort string, from time.Time) {
	if model == w.model && effort == w.effort {
		return
	}
	w.model, w.effort = model, effort
	var policy, o residue.Object
	policy.Set("type", "read-only")
	o.Set("cwd", w.Script.Header.CWD)
	o.Set("approval_policy", "on-request")
	o.Set("sandbox_policy", policy.JSON())
	o.Set("model", model)
	o.SetText("effort", effort)
	o.Set("summary", "auto")
	w.line(kindContext, from, o.JSON())
}

// inForce returns the model and the thinking level at an entry of the path.
func (w *writer) inForce(e *session.Entry) (model, effort string) {
	at, ok := w.index[e.ID]
	if !ok {
		return w.model, w.effort
	}
	return w.states[at].Model, w.states[at].ThinkingLevel
}

// statesOf returns what is in force at each entry of a path.
func statesOf(path []session.Entry) []session.State {
	states := make([]session.State, len(path))
	var now session.State
	for i := range path {
		switch e := &path[i]; {
		case e.ModelChange != nil:
			now.Model = e.ModelChange.ModelID
		case e.ThinkingLevel != nil:
			now.ThinkingLevel = e.ThinkingLevel.ThinkingLevel
		case e.Message != nil && e.Message.Model != "":
			now.Model = e.Message.Model
		}
		states[i] = now
	}
	return states
}

// show writes the events from which Codex rebuilds what the user sees.
func (w *writer) show(e *session.Entry) {
	m := e.Message
	isUser := m.Role == session.RoleUser
	if isUser && isInjected(m.Content) || e.IsRepeated() || m.Metadata[session.MetaInjected] == injectedByFork || !isUser && m.Role != session.RoleAssistant {
		return
	}
	for i := range m.Content {
		var o residue.Object
		switch c := &m.Content[i]; {
		case c.Text != nil && isUser:
			o.Set("type", "user_message")
			o.Set("message", c.Text.Content)
			o.Set("images", []any{})
		case c.Text != nil:
			o.Set("type", "agent_message")
			o.Set("message", c.Text.Content)
		case c.Thinking != nil && c.Thinking.Content != "":
			o.Set("type", "agent_reasoning")
			o.Set("text", c.Thinking.Content)
		default:
			continue
		}
		w.line(kindEvent, e.Timestamp, o.JSON())
	}
}

// count writes what a response cost, after its first message or at its own entry.
func (w *writer) count(e *session.Entry) {
	bill, ok := session.BillOf(e)
	if !ok || w.spentOn[bill.Response] {
		return
	}
	if w.spentOn == nil {
		w.spentOn = make(map[string]bool)
	}
	w.spentOn[bill.Response] = true
	u := &bill.Usage
	w.total = w.total.Plus(u)
	var o, info residue.Object
	info.Set("total_token_usage", tokenUsage(w.total))
	info.Set("last_token_usage", tokenUsage(u))
	info.Set("model_context_window", nil)
	o.Set("type", "token_count")
	o.Set("info", info.JSON())
	o.Set("rate_limits", nil)
	w.line(kindEvent, e.Timestamp, o.JSON())
}

func tokenUsage(u *session.Usage) json.RawMessage {
	input := u.Sent()
	var o residue.Object
	o.Set("input_tokens", input)
	o.Set("cached_input_tokens", u.CacheRead)
	if u.CacheWrite > 0 {
		o.Set("cache_write_input_tokens", u.CacheWrite)
	}
	o.Set("output_tokens", u.Output)
	o.Set("reasoning_output_tokens", u.Reasoning)
	o.Set("total_tokens", input+u.Output)
	return o.JSON()
}

// unsent writes an entry that is not sent to the model: an event or a state of the world that
// Codex itself had written, or what a response cost.
func (w *writer) unsent(e *session.Entry) {
	if e.Custom == nil {
		return
	}
	w.count(e)
	kind, ok := strings.CutPrefix(e.Custom.CustomType, name+".")
	var o residue.Object
	envelope := kindEvent
	switch {
	case !ok:
		return
	case kind == kindWorld && !w.isEdited():
		envelope = kindWorld
	case kind == "error" || kind == "turn_aborted" || kind == eventSettings:
		o.Set("type", kind)
	default:
		return
	}
	data, err := json.Marshal(e.Custom.Data)
	if err != nil {
		return
	}
	for member, value := range loose.Value(data).Members() {
		o.Set(member, value.Raw())
	}
	w.line(envelope, e.Timestamp, o.JSON())
}

// isEdited reports whether something was taken out of the context. A state of the world would
// then claim that the model knows what is no longer there. Edits right after a compaction do not
// count: they are how a history of Codex that leaves out system messages is read, and Codex knew
// of it when it wrote its states.
func (w *writer) isEdited() bool {
	compacting := false
	for i := range w.Script.Path {
		e := &w.Script.Path[i]
		if e.ContextEdit != nil && !compacting {
			return true
		}
		compacting = e.Compaction != nil || e.ContextEdit != nil
	}
	return false
}

// listLosses lists what a rollout has no place for.
func (w *writer) listLosses() {
	for i := range w.Script.All {
		switch e := &w.Script.All[i]; {
		case e.Label != nil:
			w.Lose(e.ID, "label", "Codex has no labels")
		case e.Custom != nil && !strings.HasPrefix(e.Custom.CustomType, name+".") && !strings.HasPrefix(e.Custom.CustomType, "coppice."):
			w.Lose(e.ID, "custom entry", "Codex has no entries of extensions")
		}
	}
	w.LoseBranches()
}

// indexFile adds the thread's name to the list in which Codex keeps them.
func (w *writer) indexFile() transcript.OutputFile {
	var o residue.Object
	o.Set("id", w.id)
	o.Set("thread_name", w.Script.Name)
	o.Set("updated_at", w.Script.Updated().UTC().Format(time.RFC3339))
	entry := append(o.JSON(), '\n')
	return transcript.OutputFile{Path: "session_index.jsonl", Merge: func(old []byte) ([]byte, error) {
		if last := lastOf(w.id, old); string(last) == string(entry) {
			return old, nil
		}
		if len(old) > 0 && !bytes.HasSuffix(old, []byte("\n")) {
			old = append(bytes.Clone(old), '\n')
		}
		return append(bytes.Clone(old), entry...), nil
	}}
}

// lastOf returns the last line of the list that is about a thread.
func lastOf(id string, list []byte) (last []byte) {
	for line := range bytes.Lines(list) {
		if loose.Value(line).Get("id").Text() == id {
			last = line
		}
	}
	return last
}

func resume(id string) []string { return []string{"codex", "resume", id} }
