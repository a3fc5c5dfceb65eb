package geminicli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/draft"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

const isoTime = "2006-01-02T15:04:05.000Z"

// write turns what the model is sent now into a recording.
func write(_ context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	w := &writer{Draft: draft.Draft{Script: s}, id: draft.NativeID(s, name, isUUID().MatchString), created: cmp.Or(s.Header.CreatedAt, s.Now), cwd: s.Header.CWD}
	if w.cwd == "" {
		w.cwd = env.Home
		w.Lose("", "directory", "Gemini CLI keeps sessions by directory; this one is put under the home directory")
	}
	w.header()
	w.messages()
	w.LoseLabels("Gemini CLI")
	w.LoseBranches()
	project, extra := w.project(env)
	file := transcript.OutputFile{
		Path: fmt.Sprintf("tmp/%s/chats/session-%s-%.8s.jsonl", project, w.created.UTC().Format("2006-01-02T15-04"), w.id),
		Data: w.Data.Bytes(),
	}
	return &transcript.Output{
		Files:  append([]transcript.OutputFile{file}, extra...),
		Base:   geminiDir(env),
		Resume: plain.Command(resume(w.id)...),
		Dir:    w.cwd,
		Losses: w.Losses,
	}, nil
}

var isUUID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
})

type writer struct {
	draft.Draft
	id      string
	created time.Time
	cwd     string // the directory under which Gemini CLI finds the recording
}

func (w *writer) header() {
	h := w.Script.Header
	var o residue.Object
	o.Set("sessionId", w.id)
	o.Set("projectHash", projectHash(w.cwd))
	o.Set("startTime", w.created.UTC().Format(isoTime))
	o.Set("lastUpdated", w.lastUsed().UTC().Format(isoTime))
	o.Set("kind", "main")
	title := w.Script.Name
	if w.Script.Context.Compaction != "" {
		title = w.Script.Title() // the prompt that the program would use as a title is left out
	}
	o.SetText("summary", title)
	if h.CWD != "" {
		o.Set("directories", []any{h.CWD})
	}
	w.Line(o.JSON())
}

// lastUsed returns when the recording counts as last used. When Gemini CLI starts, it deletes
// those that were not used for 30 days, or for as long as its settings say, which is a day or
// more. So an older conversation is used now: it was written to be resumed. No reader takes a
// time from here: the messages have theirs.
func (w *writer) lastUsed() time.Time {
	last := w.Script.Updated()
	if w.Script.Now.Sub(last) > 24*time.Hour {
		return w.Script.Now
	}
	return last
}

func projectHash(cwd string) string {
	sum := sha256.Sum256([]byte(cwd))
	return hex.EncodeToString(sum[:])
}

// messages writes the context. A recording keeps results with their calls, so we look for
// them after the message.
func (w *writer) messages() {
	entries := transcript.JoinReplies(w.Script.Context.Entries)
	for i := range entries {
		e := &entries[i]
		if e.Message == nil {
			w.summary(e)
			continue
		}
		switch e.Message.Role {
		case session.RoleTool:
		case session.RoleSystem:
			w.Lose(e.ID, "system prompt", "Gemini CLI has its own")
		default:
			w.message(e, answersTo(entries[i+1:]))
		}
	}
}

// answersTo returns the tool entries at the beginning of a list.
func answersTo(entries []session.Entry) []session.Entry {
	n := slices.IndexFunc(entries, func(e session.Entry) bool { return e.Message == nil || e.Message.Role != session.RoleTool })
	if n < 0 {
		n = len(entries)
	}
	return entries[:n]
}

func (w *writer) message(e *session.Entry, answers []session.Entry) {
	var results []session.Content
	for i := range answers {
		results = append(results, answers[i].Message.Content...)
	}
	for i := range e.Message.Content {
		if t := e.Message.Content[i].Thinking; t != nil && (t.Signature != "" || t.Redacted != "") {
			w.Lose(e.ID, "thinking signature", "a recording has the thoughts' text only")
		}
	}
	made := loose.Value(encodeMessage(e.Message, results))
	if whole := loose.Value(residue.Restore(made, residue.In(e.Extra, name))); isCurrent(whole) {
		made = whole
	}
	if e.Message.Role != session.RoleAssistant && w.isPassedOver(e.Message) {
		made = marked(made)
	}
	w.leftOut(e.ID, e.Message.Content, made)
	for i := range answers {
		w.leftOut(answers[i].ID, answers[i].Message.Content, made)
	}
	w.put(e, residue.Object(made.Except()))
}

// leftOut lists the blocks of an entry that its message does not have, and texts that have
// another place there.
func (w *writer) leftOut(id string, blocks []session.Content, made loose.Value) {
	called := false
	for i := range blocks {
		switch c := &blocks[i]; {
		case c.Raw != nil:
			if !bytes.Contains(made, c.Raw) {
				w.Lose(id, string(c.Type), "Gemini CLI has no such content")
			}
		case c.ToolUse != nil:
			called = true
		case c.ToolResult != nil:
			w.leftOut(id, c.ToolResult.Parts, made)
		case c.Text != nil && called:
			w.Lose(id, transcript.LossPlace, "the text of an answer comes before its calls in a recording")
			called = false // once is enough
		case c.Text == nil && c.Thinking == nil && !isPart(c):
			w.Lose(id, string(c.Type), "Gemini CLI has no such content")
		}
	}
}

// isCurrent reports whether a message is in the form that the program reads. Early
// versions had other forms.
func isCurrent(v loose.Value) bool {
	kind := v.Get("type").Text()
	return (kind == "user" || kind == "gemini") && v.Has("content")
}

// marker is put before a message that the program would take for a command and not send to
// the model. It is a zero-width space, which is not trimmed.
const marker = "\u200b"

// isPassedOver reports whether the program would leave out a message on resuming although it
// was sent to the model.
func (w *writer) isPassedOver(m *session.MessageEntry) bool {
	if injected, _ := m.Metadata[session.MetaInjected].(bool); injected && w.Script.NativeID != "" {
		return false // it is the program's own
	}
	text := ""
	for _, c := range m.Content {
		if c.Text != nil {
			text += c.Text.Content
		}
	}
	text = strings.TrimSpace(text)
	return slices.ContainsFunc([]string{"/", "?", "<session_context>", "<hook_context>"},
		func(beginning string) bool { return strings.HasPrefix(text, beginning) })
}

// marked is a message with the marker before it.
func marked(v loose.Value) loose.Value {
	var part residue.Object
	part.Set("text", marker)
	list := []json.RawMessage{part.JSON()}
	for p := range loose.Value(partsOf(v)).Items() {
		list = append(list, p.Raw())
	}
	o := residue.Object(v.Except())
	o.Set("content", residue.List(list))
	return loose.Value(o.JSON())
}

// put writes a message with its id and time in front.
func (w *writer) put(e *session.Entry, rest residue.Object) {
	at := cmp.Or(e.Timestamp, w.created)
	var o residue.Object
	o.Set("id", e.ID)
	o.Set("timestamp", at.UTC().Format(isoTime))
	w.Line(append(o, rest...).JSON())
}

// summary writes a summary as a message of the user: a recording has no other place for it.
func (w *writer) summary(e *session.Entry) {
	text := ""
	switch {
	case e.Compaction != nil:
		w.Lose(e.ID, "history", "what comes before the compaction is left out; its summary is written as a message")
		if e.Compaction.Summary == "" { // the entries that follow have it
			return
		}
		text = session.CompactionLead + e.Compaction.Summary
	case e.BranchSummary != nil:
		text = session.BranchLead + e.BranchSummary.Summary
	case e.Merge != nil:
		text = session.MergeLead + e.Merge.Summary
	}
	m := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(text)}}
	w.put(e, residue.Object(loose.Value(encodeMessage(m, nil)).Except()))
}

// project returns the directory of the project, and the files that register it if it is new.
// Older versions name the directory by a hash; newer ones have a list of names, and rename a
// directory that they find under its hash.
func (w *writer) project(env transcript.Env) (string, []transcript.OutputFile) {
	cwd := w.cwd
	data, err := vfs.ReadFile(filepath.Join(geminiDir(env), "projects.json"), vfs.SmallFile)
	if isOlder := func() bool { return isDir(filepath.Join(geminiDir(env), "tmp", projectHash(cwd))) }; cwd == "" ||
		err != nil && (!errors.Is(err, fs.ErrNotExist) || isOlder()) {
		return projectHash(cwd), nil
	}
	projects := loose.Value(data).Get("projects")
	if slug := projects.Get(cwd).Text(); slug != "" {
		return slug, nil
	}
	slug := newSlug(cwd, projects)
	return slug, []transcript.OutputFile{
		{Path: "tmp/" + slug + "/.project_root", Merge: func([]byte) ([]byte, error) { return []byte(cwd), nil }},
		{Path: "projects.json", Merge: func(old []byte) ([]byte, error) { return register(old, cwd, slug) }},
	}
}

var notSlug = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z0-9]+`) })

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// newSlug derives from a directory a name that no other project has.
func newSlug(cwd string, projects loose.Value) string {
	base := cwd[strings.LastIndexAny(cwd, `/\`)+1:]
	base = cmp.Or(strings.Trim(notSlug().ReplaceAllString(strings.ToLower(base), "-"), "-"), "project")
	taken := make(map[string]bool)
	for _, slug := range projects.Members() {
		taken[slug.Text()] = true
	}
	slug := base
	for n := 1; taken[slug]; n++ {
		slug = fmt.Sprintf("%s-%d", base, n)
	}
	return slug
}

// register adds a project to the list.
func register(old []byte, cwd, slug string) ([]byte, error) {
	list, err := draft.Members("projects.json", old)
	if err != nil {
		return nil, err
	}
	projects := residue.Object(loose.Value(list.JSON()).Get("projects").Except())
	projects.Set(cwd, slug)
	list.Set("projects", projects.JSON())
	return list.JSON(), nil
}

func resume(id string) []string { return []string{"gemini", "--resume", id} }
