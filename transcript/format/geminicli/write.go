package geminicli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

const isoTime = "2006-01-02T15:04:05.000Z"

// write makes a recording of what the model is sent now.
func write(_ context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	w := &writer{script: s, id: sessionID(s), created: s.Header.CreatedAt}
	if w.created.IsZero() {
		w.created = s.Now
	}
	w.header()
	w.messages()
	w.listLosses()
	project, extra := w.project(env)
	file := transcript.OutputFile{
		Path: fmt.Sprintf("tmp/%s/chats/session-%s-%.8s.jsonl", project, w.created.UTC().Format("2006-01-02T15-04"), w.id),
		Data: w.data.Bytes(),
	}
	return &transcript.Output{
		Files:  append([]transcript.OutputFile{file}, extra...),
		Base:   geminiDir(env),
		Resume: plain.Command(resume(w.id)...),
		Losses: w.losses,
	}, nil
}

var isUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func sessionID(s *transcript.Script) string {
	for _, id := range []string{s.NativeID, s.Header.ID} {
		if isUUID.MatchString(id) {
			return id
		}
	}
	return transcript.HashID(name, s.Header.ID)
}

type writer struct {
	script  *transcript.Script
	id      string
	created time.Time
	data    bytes.Buffer
	losses  []transcript.Loss
}

func (w *writer) line(text json.RawMessage) {
	w.data.Write(text)
	w.data.WriteByte('\n')
}

func (w *writer) lose(id, what, why string) {
	w.losses = append(w.losses, transcript.Loss{EntryID: id, What: what, Why: why})
}

func (w *writer) header() {
	h := w.script.Header
	var o residue.Object
	o.Set("sessionId", w.id)
	o.Set("projectHash", projectHash(h.CWD))
	o.Set("startTime", w.created.UTC().Format(isoTime))
	o.Set("lastUpdated", w.script.Now.UTC().Format(isoTime))
	o.Set("kind", "main")
	o.SetText("summary", w.script.Name)
	if h.CWD != "" {
		o.Set("directories", []any{h.CWD})
	}
	w.line(o.JSON())
}

func projectHash(cwd string) string {
	sum := sha256.Sum256([]byte(cwd))
	return hex.EncodeToString(sum[:])
}

// messages writes the context. The results of calls stand in the message that
// made them, so they are looked for behind it.
func (w *writer) messages() {
	entries := transcript.JoinReplies(w.script.Context.Entries)
	for i := range entries {
		e := &entries[i]
		if e.Message == nil {
			w.summary(e)
			continue
		}
		switch e.Message.Role {
		case session.RoleTool:
		case session.RoleSystem:
			w.lose(e.ID, "system prompt", "Gemini CLI has its own")
		default:
			w.message(e, resultsAfter(entries[i+1:]))
		}
	}
}

// resultsAfter returns the results that follow a message.
func resultsAfter(entries []session.Entry) []session.Content {
	var results []session.Content
	for _, e := range entries {
		if e.Message == nil || e.Message.Role != session.RoleTool {
			break
		}
		results = append(results, e.Message.Content...)
	}
	return results
}

func (w *writer) message(e *session.Entry, results []session.Content) {
	for i := range e.Message.Content {
		if t := e.Message.Content[i].Thinking; t != nil && (t.Signature != "" || t.Redacted != "") {
			w.lose(e.ID, "thinking signature", "a recording has the thoughts' text only")
		}
	}
	made := loose.Value(encodeMessage(e.Message, results))
	if whole := loose.Value(residue.Restore(made, residue.In(e.Extra, name))); isCurrent(whole) {
		made = whole
	}
	if e.Message.Role != session.RoleAssistant && w.isPassedOver(e.Message) {
		made = marked(made)
	}
	for i := range e.Message.Content {
		if c := &e.Message.Content[i]; c.Raw != nil && !bytes.Contains(made, c.Raw) {
			w.lose(e.ID, string(c.Type), "Gemini CLI has no such content")
		}
	}
	w.put(e, residue.Object(made.Except()))
}

// isCurrent reports whether a message is in the form that the program reads. Early
// versions had other forms.
func isCurrent(v loose.Value) bool {
	kind := v.Get("type").Text()
	return (kind == "user" || kind == "gemini") && v.Has("content")
}

// marker stands before a message that the program would take for a command of its
// own, and not send to the model. It is a space of no width, which is not trimmed.
const marker = "\u200b"

// isPassedOver reports whether the program would leave a message out when it resumes,
// although the model was sent it.
func (w *writer) isPassedOver(m *session.MessageEntry) bool {
	if injected, _ := m.Metadata["injected"].(bool); injected && w.script.NativeID != "" {
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
	at := e.Timestamp
	if at.IsZero() {
		at = w.created
	}
	var o residue.Object
	o.Set("id", e.ID)
	o.Set("timestamp", at.UTC().Format(isoTime))
	w.line(append(o, rest...).JSON())
}

// summary writes what stands for a part of the conversation as the user's words:
// a recording has nothing else for it.
func (w *writer) summary(e *session.Entry) {
	text := ""
	switch {
	case e.Compaction != nil:
		w.lose(e.ID, "history", "what stands before the compaction is left out; its summary is written as a message")
		if e.Compaction.Summary == "" { // it is in what follows
			return
		}
		text = "Previous conversation summary: " + e.Compaction.Summary
	case e.BranchSummary != nil:
		text = "Summary of a branch of the conversation that was left: " + e.BranchSummary.Summary
	case e.Merge != nil:
		text = "Summary of another branch of the conversation: " + e.Merge.Summary
	}
	m := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(text)}}
	w.put(e, residue.Object(loose.Value(encodeMessage(m, nil)).Except()))
}

func (w *writer) listLosses() {
	onPath := make(map[string]bool)
	for _, e := range w.script.Path {
		onPath[e.ID] = true
	}
	elsewhere := 0
	for _, e := range w.script.All {
		switch {
		case !onPath[e.ID] && e.Message != nil:
			elsewhere++
		case e.Label != nil:
			w.lose(e.ID, "label", "Gemini CLI has no labels")
		}
	}
	if elsewhere > 0 {
		w.lose("", "branch", fmt.Sprintf("a recording is one branch; %d messages on others are left out", elsewhere))
	}
}

// project returns the directory of the project, and the files that make it known
// if it is new. Older versions name it by a hash; newer ones have a list of names.
func (w *writer) project(env transcript.Env) (string, []transcript.OutputFile) {
	cwd := w.script.Header.CWD
	data, err := vfs.ReadFile(filepath.Join(geminiDir(env), "projects.json"), vfs.SmallFile)
	if err != nil || cwd == "" {
		return projectHash(cwd), nil
	}
	projects := loose.Value(data).Get("projects")
	if slug := projects.Get(cwd).Text(); slug != "" {
		return slug, nil
	}
	slug := newSlug(cwd, projects)
	return slug, []transcript.OutputFile{
		{Path: "tmp/" + slug + "/.project_root", Data: []byte(cwd)},
		{Path: "projects.json", Merge: func(old []byte) ([]byte, error) { return register(old, cwd, slug) }},
	}
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// newSlug makes a name of a directory's that no other project has.
func newSlug(cwd string, projects loose.Value) string {
	base := cwd[strings.LastIndexAny(cwd, `/\`)+1:]
	base = strings.Trim(notSlug.ReplaceAllString(strings.ToLower(base), "-"), "-")
	if base == "" {
		base = "project"
	}
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
	list, err := loose.Parse(old)
	if err != nil {
		return nil, fmt.Errorf("projects.json: %w", err)
	}
	projects := residue.Object(list.Get("projects").Except())
	projects.Set(cwd, slug)
	o := residue.Object(list.Except())
	o.Set("projects", projects.JSON())
	return o.JSON(), nil
}

func resume(id string) []string { return []string{"gemini", "--resume", id} }
