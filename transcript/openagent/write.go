package openagent

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/loose"
	"github.com/coppice-dev/coppice/transcript/residue"
)

// onlyText is why other content is lost.
const onlyText = "a message is text and tool calls there"

// encode makes a message of an entry. The program reads six members, and no
// others.
func encode(e *session.Entry) json.RawMessage {
	m := e.Message
	var o residue.Object
	o.Set("role", role(m.Role))
	o.Set("content", textOf(m.Content))
	o.Set("timestamp", e.Timestamp.UTC().Format(timeForm))
	o.Set("token_count", tokens(m))
	o.Set("tool_calls", calls(m.Content))
	metadata := m.Metadata
	if metadata == nil {
		metadata = map[string]any{}
	}
	o.Set("metadata", metadata)
	return o.JSON()
}

// role is one of the four that the program knows.
func role(r string) string {
	switch r {
	case session.RoleUser, session.RoleAssistant, session.RoleSystem, session.RoleTool:
		return r
	case session.RoleBashExecution:
		return session.RoleTool
	}
	return session.RoleSystem
}

func tokens(m *session.MessageEntry) any {
	if m.Tokens == nil {
		return nil
	}
	return *m.Tokens
}

func calls(blocks []session.Content) any {
	var list []json.RawMessage
	for _, b := range blocks {
		if b.ToolUse == nil {
			continue
		}
		input, err := b.ToolUse.InputJSON()
		if err != nil {
			input = json.RawMessage("{}")
		}
		call := residue.Object{}
		call.Set("tool", b.ToolUse.Name)
		call.Set("args", input)
		list = append(list, call.JSON())
	}
	if list == nil {
		return nil
	}
	return residue.List(list)
}

func textOf(blocks []session.Content) string {
	var texts []string
	for _, b := range blocks {
		switch {
		case b.Text != nil:
			texts = append(texts, b.Text.Content)
		case b.ToolResult != nil:
			texts = append(texts, b.ToolResult.Content)
		}
	}
	return strings.Join(texts, "\n")
}

func write(_ context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	out := &transcript.Output{Base: places(env)[0].Dir}
	id := s.NativeID
	if id == "" {
		id = s.Header.CreatedAt.Local().Format("2006-01-02_150405")
	}
	out.Resume = "openagent-terminal, and in it /load " + id // it has no flag for that
	var messages []json.RawMessage
	total, updated := 0, s.Header.CreatedAt
	for i := range s.Path {
		e := &s.Path[i]
		if e.Message == nil {
			out.Losses = append(out.Losses, lossOfEntry(e)...)
			continue
		}
		made := encode(e)
		if kept := residue.In(e.Message.Extra, name); kept != nil {
			made = residue.Restore(loose.Value(made), kept)
		}
		messages = append(messages, made)
		out.Losses = append(out.Losses, transcript.Lost(e, onlyText, session.ContentTypeText, session.ContentTypeToolUse, session.ContentTypeToolResult)...)
		if e.Message.Tokens != nil {
			total += *e.Message.Tokens
		}
		updated = e.Timestamp
	}
	out.Losses = append(out.Losses, s.OtherBranches()...)
	meta := metadata(s, id, updated, len(messages), total)
	var whole residue.Object
	whole.Set("metadata", meta)
	whole.Set("messages", residue.List(messages))
	out.Files = []transcript.OutputFile{
		{Path: id + ".json", Data: whole.Indented()},
		{Path: indexFile, Merge: func(old []byte) ([]byte, error) { return mergeIndex(old, id, meta) }},
	}
	return out, nil
}

func metadata(s *transcript.Script, id string, updated time.Time, messages, tokens int) json.RawMessage {
	var o residue.Object
	o.Set("session_id", id)
	o.Set("created_at", s.Header.CreatedAt.UTC().Format(timeForm))
	o.Set("updated_at", updated.UTC().Format(timeForm))
	o.Set("message_count", messages)
	o.Set("total_tokens", tokens)
	var title any
	if s.Name != "" {
		title = s.Name
	}
	o.Set("title", title)
	tags := []any{}
	for _, tag := range s.Tags() {
		tags = append(tags, tag)
	}
	o.Set("tags", tags)
	return o.JSON()
}

// mergeIndex puts a session's metadata into the index in place of what it had
// there.
func mergeIndex(old []byte, id string, meta json.RawMessage) ([]byte, error) {
	var index residue.Object
	var sessions []json.RawMessage
	if len(old) > 0 {
		v, err := loose.Parse(old)
		if err != nil {
			return nil, &session.Error{Op: "write", Path: filepath.Base(indexFile), Kind: session.ErrCorrupt, Err: err}
		}
		index = residue.Object(v.Except())
		for s := range v.Get("sessions").Items() {
			if s.Get("session_id").Text() != id {
				sessions = append(sessions, s.Raw())
			}
		}
	}
	index.Set("sessions", residue.List(append(sessions, meta)))
	if !loose.Value(index.JSON()).Has("version") {
		index.Set("version", "1.0")
	}
	return index.Indented(), nil
}

func lossOfEntry(e *session.Entry) []transcript.Loss {
	switch e.Type {
	case session.TypeCompaction, session.TypeBranchSummary, session.TypeMerge, session.TypeContextEdit:
		return []transcript.Loss{{EntryID: e.ID, What: string(e.Type), Why: "all messages are sent there, without summaries"}}
	}
	return nil
}
