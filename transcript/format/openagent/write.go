package openagent

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/draft"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// onlyText says why other content is lost.
const onlyText = "a message is text and tool calls there"

// encode turns an entry into a message. The program reads six members, and no others.
func encode(e *session.Entry) json.RawMessage {
	m := e.Message
	var o residue.Object
	o.Set("role", blocks.Role(m.Role))
	o.Set("content", textOf(m.Content))
	o.Set("timestamp", e.Timestamp.Local().Format(timeForm))
	o.Set("token_count", tokens(m))
	o.Set("tool_calls", calls(m.Content))
	metadata := m.Metadata
	if metadata == nil {
		metadata = map[string]any{}
	}
	o.Set("metadata", metadata)
	return o.JSON()
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
	id, err := idFor(s)
	if err != nil {
		return nil, err
	}
	w := draft.Draft{Script: s}
	var messages []json.RawMessage
	total, counted := recorded(s)
	updated := s.Header.CreatedAt
	path := transcript.InPlace(s.Path)
	for i := range path {
		e := &path[i]
		if e.Message == nil {
			w.LoseSummary(e, "all messages are sent there, without summaries")
			continue
		}
		messages = append(messages, residue.RestoreIn(e.Message.Extra, name, encode(e))...)
		w.LoseBlocks(e, onlyText, session.ContentTypeText, session.ContentTypeToolUse, session.ContentTypeToolResult)
		if e.Message.Tokens != nil && len(messages) > counted {
			total += *e.Message.Tokens
		}
		if e.Timestamp.After(updated) { // it is never before the session was created
			updated = e.Timestamp
		}
	}
	w.LoseBranches()
	meta := metadata(s, id, updated, len(messages), total)
	var whole residue.Object
	whole.Set("metadata", meta)
	whole.Set("messages", residue.List(messages))
	return &transcript.Output{
		Files: []transcript.OutputFile{
			{Path: id + ".json", Data: whole.Indented()},
			{Path: indexFile, Merge: func(old []byte) ([]byte, error) { return mergeIndex(old, id, meta) }},
		},
		Base:   places(env)[0].Dir,
		Resume: "openagent-terminal, and in it /load " + id, // it has no flag for that
		Losses: w.Losses,
	}, nil
}

// idFor returns the id of a session, which is when it was created, to the second.
// If another one has it, a number is added, as the program does.
func idFor(s *transcript.Script) (string, error) {
	if s.NativeID != "" {
		return s.NativeID, nil
	}
	second := s.Header.CreatedAt.Local().Format("2006-01-02_150405")
	id := second
	for n := 1; s.Existing != nil; n++ {
		have, err := s.Existing(id + ".json")
		if err != nil {
			return "", err
		}
		if have == nil || isOf(have, s) {
			break
		}
		id = second + "_" + strconv.Itoa(n)
	}
	return id, nil
}

// isOf reports whether a file belongs to a session: it was created at the same moment and
// begins in the same way.
func isOf(file []byte, s *transcript.Script) bool {
	v, err := loose.Parse(file)
	if err != nil || v.Get("metadata", "created_at").Text() != s.Header.CreatedAt.Local().Format(timeForm) {
		return false
	}
	first := v.Get("messages").First()
	for i := range s.Path {
		if m := s.Path[i].Message; m != nil {
			return first.Get("role").Text() == blocks.Role(m.Role) && first.Get("content").Text() == textOf(m.Content)
		}
	}
	return first == nil
}

// recorded returns how many tokens the source said that the session has, and for
// how many messages that holds.
func recorded(s *transcript.Script) (tokens, messages int) {
	number := func(fact string) int {
		switch n := s.Facts[fact].(type) {
		case int:
			return n
		case float64:
			return int(n)
		case json.Number:
			i, _ := n.Int64()
			return int(i)
		}
		return 0
	}
	return number(factTokens), number(factMessages)
}

func metadata(s *transcript.Script, id string, updated time.Time, messages, tokens int) json.RawMessage {
	var o residue.Object
	o.Set("session_id", id)
	o.Set("created_at", s.Header.CreatedAt.Local().Format(timeForm))
	o.Set("updated_at", updated.Local().Format(timeForm))
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
// there. Times with a zone, which other writers left there, become local ones: the
// program fails to sort a list that has both.
func mergeIndex(old []byte, id string, meta json.RawMessage) ([]byte, error) {
	index, err := draft.Members(indexFile, old)
	if err != nil {
		return nil, err
	}
	var sessions []json.RawMessage
	for s := range loose.Value(index.JSON()).Get("sessions").Items() {
		if s.Get("session_id").Text() != id {
			sessions = append(sessions, withLocalTimes(s))
		}
	}
	index.Set("sessions", residue.List(append(sessions, meta)))
	if !loose.Value(index.JSON()).Has("version") {
		index.Set("version", "1.0")
	}
	return index.Indented(), nil
}

// withLocalTimes returns a line of the index with local times.
func withLocalTimes(line loose.Value) json.RawMessage {
	o := residue.Object(line.Except())
	for _, member := range []string{"created_at", "updated_at"} {
		if t, err := time.Parse(time.RFC3339, line.Get(member).Text()); err == nil {
			o.Set(member, t.Local().Format(timeForm))
		}
	}
	return o.JSON()
}
