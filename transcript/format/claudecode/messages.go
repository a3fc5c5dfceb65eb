package claudecode

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// user reads a line in the user's name: what the user said, what tools answered,
// or what the program put there.
func (r *reader) user(l *line, t *thread, rec *transcript.Record, parent int32) error {
	l.parseMessage()
	if l.summary {
		return r.bareSummary(l, t, rec, parent)
	}
	results, rest := split(l.contents())
	if len(results) == 0 {
		return r.prompt(l, t, rec, parent, rest)
	}
	m := message(l, t, rec, session.RoleTool, results)
	for i := range results {
		if res := results[i].ToolResult; res != nil {
			if err := r.loadPersisted(res, rec); err != nil {
				return err
			}
		}
	}
	if agent := agentOf(l.result); agent != "" && len(results) == 1 {
		note(m, "subagent", r.agentConversation(agent))
	}
	r.count("tool result line", "message")
	t.addNode(rec, parent, false)
	for i := range results {
		if t == r.main && results[i].ToolResult != nil {
			r.results[keyOf([]byte(results[i].ToolResult.ToolUseID))] = t.last()
		}
	}
	if err := r.emit(t, *rec); err != nil || len(rest) == 0 {
		return err
	}
	// Blocks after the results are the user's own words.
	more := transcript.Record{ID: rec.ID + moreText, From: slices.Clone(rec.From)}
	more.Entry.Timestamp = rec.Entry.Timestamp
	return r.prompt(l, t, &more, t.last(), rest)
}

// moreText is the suffix of a line's id for the text after its results.
const moreText = ":text"

// split separates the answers of tools from the rest.
func split(blocks []session.Content) (results, rest []session.Content) {
	at := slices.IndexFunc(blocks, func(c session.Content) bool { return c.ToolResult != nil })
	if at < 0 {
		return nil, blocks
	}
	for i := range blocks {
		if blocks[i].ToolResult != nil {
			results = append(results, blocks[i])
		} else {
			rest = append(rest, blocks[i])
		}
	}
	return results, rest
}

// prompt reads a message in the user's name.
func (r *reader) prompt(l *line, t *thread, rec *transcript.Record, parent int32, content []session.Content) error {
	m := message(l, t, rec, session.RoleUser, content)
	first := firstText(content)
	by := injected(first)
	if rawjson.Kind(l.origin) == 'o' {
		origin, _ := rawjson.Map(l.origin) // it was walked before: it is whole
		note(m, metaOrigin, origin)
	}
	if by == "" && isNotice(m) {
		by = notification
	}
	if by == "" && l.meta {
		by = "meta"
	}
	if by != "" {
		note(m, session.MetaInjected, by)
	}
	if l.meta != usuallyMeta(by, first) {
		note(m, metaMarked, l.meta)
	}
	if t == r.main {
		r.titles.rename(first)
	}
	what := "prompt line"
	if by != "" {
		what = "injected line"
	}
	r.count(what, "message")
	if t != r.main && len(t.nodes) == 0 {
		r.linkTask(t, first)
	}
	t.addNode(rec, parent, by == "")
	// A prompt ends the turn: the reply before it is complete.
	if by == "" {
		if err := r.closeReply(t); err != nil {
			return err
		}
	}
	return r.emit(t, *rec)
}

// assistant reads a line of a reply.
func (r *reader) assistant(l *line, t *thread, rec *transcript.Record, parent int32) error {
	l.parseMessage()
	if l.failed {
		return r.failure(l, t, rec, parent)
	}
	blocks := l.contents()
	r.noteTasks(t, blocks)
	r.count("assistant line", "message")
	if open := t.reply; open != nil && len(l.messageID) > 0 && open.messageID == string(l.messageID) &&
		open.requestID == string(l.requestID) && len(open.rec.From) < maxHeld {
		open.merge(blocks, l)
		open.rec.Aliases = append(open.rec.Aliases, rec.ID)
		open.rec.From = append(open.rec.From, rec.From...)
		return nil
	}
	if err := r.closeReply(t); err != nil {
		return err
	}
	m := message(l, t, rec, session.RoleAssistant, blocks)
	m.Provider = "anthropic"
	m.Model = string(l.model)
	if m.Model == synthetic {
		m.Model, m.Provider = "", ""
		note(m, "synthetic", true)
	}
	m.ResponseID = t.responseID(l)
	reply := &reply{rec: *rec, msg: m, messageID: string(l.messageID), requestID: string(l.requestID)}
	reply.addUsage(l)
	if m.Provider == "" {
		m.Usage, m.ResponseID = nil, ""
	}
	if m.Provider == "" && firstText(blocks) == resumed && parent >= 0 {
		t.branchOff(&reply.rec, t.id(parent)) // the calls after it are not continued
	} else {
		t.addNode(&reply.rec, parent, false)
	}
	t.reply = reply
	return nil
}

// failure reads the text that the program shows when a request failed. It neither comes from
// a model nor is sent to one.
func (r *reader) failure(l *line, t *thread, rec *transcript.Record, parent int32) error {
	rec.Entry.Type, rec.Entry.Custom = session.TypeCustom, custom(customFailure, l.message)
	r.count("API error line", "custom entry")
	t.addNode(rec, parent, false)
	return r.emit(t, *rec)
}

// resumed is the program's own answer when it resumes a session that ends with the user's
// words.
const resumed = "No response requested."

// synthetic is the model of texts that the program wrote itself.
const synthetic = "<synthetic>"

// responseID returns the id of a reply. Some gateways give one id to several requests:
// the request distinguishes the later ones.
func (t *thread) responseID(l *line) string {
	id, request := string(l.messageID), string(l.requestID)
	if id == "" {
		return ""
	}
	first, seen := t.served[id]
	if !seen {
		if len(t.served) > maxServed {
			clear(t.served)
		}
		if t.served == nil {
			t.served = make(map[string]string)
		}
		t.served[id] = request
		return id
	}
	if first == request {
		return id
	}
	return id + ":" + request
}

// maxServed is how many replies are remembered.
const maxServed = 1024

// noteTasks remembers the calls that start subagents.
func (r *reader) noteTasks(t *thread, blocks []session.Content) {
	for i := range blocks {
		use := blocks[i].ToolUse
		if use == nil || use.Name != "Task" && use.Name != "Agent" || t != r.main {
			continue
		}
		input, _ := use.InputJSON()
		prompt := ""
		_ = rawjson.Object(input, func(k, v []byte) error { // it is valid
			if string(k) == "prompt" {
				prompt, _ = rawjson.String(v)
			}
			return nil
		})
		r.tasks = append(r.tasks, task{use.ID, prompt})
		if len(r.tasks) > maxServed {
			r.tasks = slices.Delete(r.tasks, 0, maxServed/2)
		}
	}
}

// linkTask finds the call that started a subagent: the one that has its prompt.
func (r *reader) linkTask(t *thread, prompt string) {
	for i := len(r.tasks) - 1; i >= 0; i-- {
		if r.tasks[i].prompt == prompt {
			t.conv.ParentCall = r.tasks[i].call
			r.tasks = slices.Delete(r.tasks, i, i+1)
			return
		}
	}
}

// agentOf returns the subagent that a tool's outcome names, or "".
func agentOf(result []byte) string {
	if rawjson.Kind(result) != 'o' {
		return ""
	}
	agent := ""
	_ = rawjson.Object(result, func(k, v []byte) error { // it was walked before: it is whole
		if string(k) == "agentId" {
			agent, _ = rawjson.String(v)
		}
		return nil
	})
	return agent
}

const persistedMark = "<persisted-output>"

// loadPersisted fills in an answer that was too large for the line, from the folder for such
// answers and from nowhere else.
func (r *reader) loadPersisted(res *session.ToolResultContent, rec *transcript.Record) error {
	if !strings.Contains(res.Content, persistedMark) {
		return nil
	}
	name := persistedName(res.Content)
	if name == "" {
		return nil
	}
	data, err := r.persisted(name)
	if errors.Is(err, fs.ErrNotExist) {
		// The program deletes these files after a while. The preview is what the
		// model was sent, so the line is read all the same.
		r.count("persisted output that is gone", "its preview")
		return nil
	}
	if err != nil {
		r.to.Problem(transcript.Problem{Pos: rec.From[0].Pos, Reason: "the tool's output in tool-results/" + name + ": " + err.Error()})
		return nil
	}
	span, err := r.to.Keep("tool result", data)
	if err != nil {
		return err
	}
	rec.From = append(rec.From, span)
	notice := rawjson.AppendString(nil, res.Content)
	res.Extra = append(res.Extra, session.Field{Name: "persisted", Value: notice})
	res.Content = strings.ToValidUTF8(string(data), "\uFFFD")
	r.count("persisted output", "tool result")
	return nil
}

// persisted reads a file of the session's tool-results. A subagent's file is in the
// session's directory, or in one below it.
func (r *reader) persisted(name string) ([]byte, error) {
	id, agent := fileID(r.file.Path)
	if !agent {
		if id == "" {
			return nil, fs.ErrNotExist
		}
		return r.file.Beside(id + "/tool-results/" + name)
	}
	dir := filepath.Dir(r.file.Path)
	for levels := 0; levels < maxNested; levels++ {
		if filepath.Base(dir) == sessionOfAgent(r.file.Path) {
			return r.file.Above(levels).Beside("tool-results/" + name)
		}
		dir = filepath.Dir(dir)
	}
	return nil, fs.ErrNotExist
}

// persistedName returns the name of the file that an answer points to.
func persistedName(text string) string {
	for _, sep := range []string{"/tool-results/", `\tool-results\`} {
		_, rest, ok := strings.Cut(text, sep)
		if !ok {
			continue
		}
		end := strings.IndexAny(rest, " \t\r\n<>\"'`)")
		if end >= 0 {
			rest = rest[:end]
		}
		if rest != "" && filepath.Base(rest) == rest && !strings.ContainsAny(rest, `/\`) && rest != ".." && rest != "." {
			return rest
		}
	}
	return ""
}

// attachment reads what was attached to a turn. A prompt that was typed while
// the model worked is one.
func (r *reader) attachment(l *line, t *thread, rec *transcript.Record, parent int32) error {
	members := rawjson.MembersOf(l.attachment)
	typ, blocks := members.Str("type"), members.Get("prompt")
	prompt, _ := rawjson.String(blocks)
	if typ != "queued_command" || blocks == nil {
		return r.notice(l, t, rec, parent)
	}
	content := contents(blocks)
	m := message(l, t, rec, session.RoleUser, content)
	note(m, metaQueued, queued(members))
	if by := injected(prompt); by != "" {
		note(m, session.MetaInjected, by)
	}
	r.count("queued prompt line", "message")
	t.addNode(rec, parent, false) // it was typed during a turn: the user did not go back
	return r.emit(t, *rec)
}

// queued is the metadata of a message that was typed while the model worked: what else
// its line says, or true if that is nothing unusual.
func queued(attachment rawjson.Members) any {
	more := make(map[string]any)
	for _, f := range attachment {
		if f.Name != "type" && f.Name != "prompt" && !(f.Name == "commandMode" && string(f.Value) == `"prompt"`) {
			var value any
			if json.Unmarshal(f.Value, &value) == nil {
				more[f.Name] = value
			}
		}
	}
	if len(more) == 0 {
		return true
	}
	return more
}

// notice reads what the program sent the model beside the conversation: output of
// hooks, changed files, reminders. It sends them again when it resumes the session.
func (r *reader) notice(l *line, t *thread, rec *transcript.Record, parent int32) error {
	if rawjson.Kind(l.attachment) != 'o' {
		r.count("attachment line", transcript.OnlyKept)
		return nil
	}
	rec.Entry.Type, rec.Entry.Custom = session.TypeCustom, custom(customNotice, l.attachment)
	r.count("attachment line", "custom entry")
	if parent == unknown && l.clears() {
		t.branchOff(rec, transcript.Root)
	} else {
		t.addNode(rec, parent, false)
	}
	return r.emit(t, *rec)
}

// Custom entries that hold lines which only this program understands, unchanged.
const (
	customFailure = Name + ".api_error"          // a message in the place of a reply that failed
	customNotice  = Name + transcript.NoticeKind // reminders, hooks and other text that the program adds for the model
)

func custom(kind string, data []byte) *session.CustomEntry {
	members, _ := rawjson.Map(data) // it was walked before: it is whole
	return &session.CustomEntry{CustomType: kind, Data: members}
}
