package pi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/draft"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

func write(_ context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	w := &writer{Draft: draft.Draft{Script: s}, tools: make(map[string]string), moved: make(map[string]string), off: session.RevertedIn(s.Path), mend: repairsFor(s)}
	id := draft.NativeID(s, name, validID().MatchString)
	w.Line(w.header(id))
	for _, e := range s.All {
		w.entry(e)
		w.interrupted(e.ID)
	}
	w.leaf()
	return &transcript.Output{
		Files:  []transcript.OutputFile{{Path: w.path(id, env), Data: w.Data.Bytes()}},
		Base:   agentDir(env),
		Resume: plain.Command(resume(id)...),
		Losses: w.Losses,
	}, nil
}

// validID matches what pi accepts as a session id.
var validID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$`) })

type writer struct {
	draft.Draft
	last  string            // the id of the last entry written
	at    time.Time         // and its time
	tools map[string]string // the names of tools by the ids of their calls
	moved map[string]string // the parent to use instead of an entry, by its id
	off   map[string]bool   // compactions that were taken back
	mend  *repairs
}

func (w *writer) header(id string) json.RawMessage {
	h := w.Script.Header
	var o residue.Object
	o.Set("type", "session")
	o.Set("version", 3)
	o.Set("id", id)
	o.Set("timestamp", created(h, w.Script.Now).Format(isoTime))
	o.Set("cwd", h.CWD)
	for _, fact := range slices.Sorted(maps.Keys(w.Script.Facts)) {
		o.Set(fact, w.Script.Facts[fact])
	}
	return o.JSON()
}

// path returns where pi looks for the session: in a directory named after the
// working directory.
func (w *writer) path(id string, env transcript.Env) string {
	cwd := cmp.Or(w.Script.Header.CWD, env.Home)
	dir := strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(strings.TrimLeft(cwd, `/\`))
	stamp := strings.NewReplacer(":", "-", ".", "-").Replace(created(w.Script.Header, w.Script.Now).Format(isoTime))
	return fmt.Sprintf("sessions/--%s--/%s_%s.jsonl", dir, stamp, id)
}

// entry writes an entry, as several lines if it holds several tool results, or
// not at all if it only moves the leaf or is part of another.
func (w *writer) entry(e session.Entry) {
	if e.ParentID != nil {
		if stand, ok := w.moved[*e.ParentID]; ok {
			e.ParentID = parentOf(stand)
		}
	}
	if whole := w.mend.whole[e.ID]; whole != nil {
		e.Message = whole
	}
	_, gone := w.mend.gone[e.ID]
	switch {
	case e.Leaf != nil || gone:
		w.skip(e)
		return
	case e.Message != nil:
		w.message(e)
		return
	case e.Merge != nil:
		w.Lose(e.ID, "merge", "pi has no merges; its summary is written as a message")
		e = mergeMessage(e)
	case e.Compaction != nil && w.off[e.ID]:
		w.Lose(e.ID, "compaction", "it was taken back, which pi cannot express; it is written as a note")
		e = note(e)
	case e.Revert != nil:
		w.Lose(e.ID, "revert", "pi cannot take anything back; it is written as a note")
		e = note(e)
	case !writable(e):
		e = note(e)
	}
	w.line(e)
}

// skip leaves out an entry. What follows it follows its parent.
func (w *writer) skip(e session.Entry) {
	w.moved[e.ID] = ""
	if e.ParentID != nil {
		w.moved[e.ID] = *e.ParentID
	}
}

// interrupted writes the results that an entry's calls never got.
func (w *writer) interrupted(id string) {
	for _, e := range w.mend.after[id] {
		parent := id
		if stand, ok := w.moved[id]; ok {
			parent = stand
		}
		e.ParentID = parentOf(parent)
		w.line(e)
		w.moved[id] = e.ID
	}
}

func parentOf(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}

func writable(e session.Entry) bool {
	return e.ModelChange != nil || e.ThinkingLevel != nil || e.Compaction != nil || e.BranchSummary != nil ||
		e.Label != nil || e.SessionInfo != nil || e.ContextEdit != nil || e.Custom != nil
}

// note turns an entry that pi does not have into a custom entry: pi keeps it and sends the
// model nothing.
func note(e session.Entry) session.Entry {
	var data map[string]any
	if text, err := json.Marshal(e); err == nil {
		data = loose.Value(text).Rest("type", "id", "parent_id", "timestamp", name)
	}
	return session.Entry{
		Type: session.TypeCustom, ID: e.ID, ParentID: e.ParentID, Timestamp: e.Timestamp,
		Custom: &session.CustomEntry{CustomType: "coppice." + string(e.Type), Data: data},
	}
}

func mergeMessage(e session.Entry) session.Entry {
	if e.Merge.Summary == "" {
		return note(e)
	}
	return session.Entry{
		Type: session.TypeMessage, ID: e.ID, ParentID: e.ParentID, Timestamp: e.Timestamp,
		Message: &session.MessageEntry{Role: session.RoleCustom, Content: []session.Content{session.Text(e.Merge.Summary)}},
	}
}

// message writes a message. Each tool result becomes a message of its own; other blocks of
// the message follow the results as the user's.
func (w *writer) message(e session.Entry) {
	noteTools(w.tools, e.Message)
	if w.Script.NativeID == "" {
		m := *e.Message
		if m.Content = w.supportedBlocks(e.ID, m.Content); len(m.Content) == 0 && len(e.Message.Content) > 0 {
			w.skip(e)
			return
		}
		e.Message = &m
	}
	parts := split(e)
	for i, part := range parts {
		if i > 0 {
			part.ID = fmt.Sprintf("%s-%d", e.ID, i+1)
			part.ParentID = &w.last
			part.Extra = nil
		}
		id := part.ID
		w.line(part)
		w.last = id
	}
	if len(parts) > 1 {
		w.moved[e.ID] = w.last
	}
}

// noteTools remembers the names of the tools that a message calls.
func noteTools(tools map[string]string, m *session.MessageEntry) {
	if m == nil {
		return
	}
	for _, c := range m.Content {
		if c.ToolUse != nil {
			tools[c.ToolUse.ID] = c.ToolUse.Name
		}
	}
}

// split separates tool results from one another and from the rest.
func split(e session.Entry) []session.Entry {
	results := slices.ContainsFunc(e.Message.Content, func(c session.Content) bool { return c.ToolResult != nil })
	if !results {
		return []session.Entry{e}
	}
	var parts []session.Entry
	var rest []session.Content
	one := func(role session.MessageRole, content []session.Content) {
		part, message := e, *e.Message
		message.Role, message.Content = role, content
		if len(parts) > 0 {
			message.Usage = nil
		}
		part.Message = &message
		parts = append(parts, part)
	}
	for _, c := range e.Message.Content {
		if c.ToolResult == nil {
			rest = append(rest, c)
			continue
		}
		one(session.RoleTool, []session.Content{c})
	}
	if len(rest) > 0 {
		one(session.RoleUser, rest)
	}
	return parts
}

// supportedBlocks returns the blocks of another program's message that pi can hold. It fails on
// kinds of blocks that it does not know, and on results of calls that were never made.
func (w *writer) supportedBlocks(id string, content []session.Content) []session.Content {
	var list []session.Content
	for _, c := range content {
		switch what := describeUnfit(&c); {
		case what != "":
			w.Lose(id, string(c.Type), "pi holds text and images that are in the file; it became "+what)
		case c.Raw != nil:
			w.Lose(id, cmp.Or(string(c.Type), "content"), "pi has no such block")
			continue
		case c.ToolResult != nil:
			if _, called := w.tools[c.ToolResult.ToolUseID]; !called {
				w.Lose(id, "tool result", "the call that it answers is not in the session")
				continue
			}
			if c.ToolResult.Parts != nil {
				result := *c.ToolResult
				result.Parts, c.ToolResult = w.supportedBlocks(id, result.Parts), &result
			}
		}
		list = append(list, c)
	}
	return list
}

func (w *writer) line(e session.Entry) {
	kept := residue.In(e.Extra, name)
	text := encodeEntry(e, w.tools)
	w.Line(residue.Restore(loose.Value(text), kept))
	w.last, w.at = e.ID, e.Timestamp
}

// leaf makes the file end at the conversation's leaf, because pi continues from the last
// entry. If nothing of the path is written, it ends at the beginning.
func (w *writer) leaf() {
	leaf := w.Script.Leaf
	if stand, ok := w.moved[leaf]; ok {
		leaf = stand
	}
	if leaf == w.last {
		return
	}
	w.line(session.Entry{
		Type: session.TypeCustom, ID: transcript.HashID(name, "leaf", leaf, w.last), ParentID: parentOf(leaf), Timestamp: w.at,
		Custom: &session.CustomEntry{CustomType: "coppice.leaf"},
	})
}

func resume(id string) []string { return []string{"pi", "--session", id} }
