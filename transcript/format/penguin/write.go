package penguin

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/draft"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// members are the members of a session that Penguin reads, in its order.
var members = []string{
	"id", "created_at", "last_active", "metadata", "messages",
	"llm_request_lifecycles", "tool_call_records", "tool_result_records",
}

// write makes the session's document and its line in the index. Without an id of Penguin's, the
// session gets one in its form: the local time at which it began, and a hash.
func write(_ context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	id := cmp.Or(s.NativeID, "session_"+s.Header.CreatedAt.Local().Format("20060102_150405")+"_"+transcript.HashID(s.Header.ID)[:8])
	w := writer{Draft: draft.Draft{Script: s}, id: id, active: s.Header.CreatedAt}
	w.LoseBranches()
	for i := range s.Path {
		w.add(&s.Path[i])
	}
	return &transcript.Output{
		Files: []transcript.OutputFile{
			{Path: id + ".json", Data: w.document()},
			{Path: indexFile, Merge: w.mergeIndex},
		},
		Base:   places(env)[0].Dir,
		Resume: plain.Command(resume(id)...),
		Losses: w.Losses,
	}, nil
}

type writer struct {
	draft.Draft
	id       string
	messages []json.RawMessage
	tokens   int
	active   time.Time
	marked   bool // the message that says what the session continues is there
}

// add adds an entry. Penguin sends all messages that fit and has no place for compactions.
func (w *writer) add(e *session.Entry) {
	switch {
	case e.Continues != nil && !w.marked && w.Script.Header.Relation == session.RelationContinuation:
		// The markers of other sessions are there if a whole conversation is written as one.
		w.marked = true
		made := residue.RestoreIn(e.Extra, name, transition(e))
		w.messages = append(w.messages, made...)
		w.tokens += loose.Value(made[0]).Get("tokens").Int()
	case e.Message == nil:
		w.LoseSummary(e, "all messages that fit are sent there")
	default:
		w.message(e)
	}
}

func (w *writer) message(e *session.Entry) {
	w.messages = append(w.messages, residue.RestoreIn(e.Message.Extra, name, encode(e)...)...)
	w.LoseBlocks(e, "a message is text, pictures and tool calls there",
		session.ContentTypeText, session.ContentTypeImage, session.ContentTypeToolUse, session.ContentTypeToolResult)
	w.tokens += tokens(e.Message)
	if e.Timestamp.After(w.active) {
		w.active = e.Timestamp
	}
}

func (w *writer) document() []byte {
	facts, _ := w.Script.Facts[factSession].(map[string]any)
	var o residue.Object
	for _, member := range members {
		switch value, known := facts[member]; {
		case member == "id":
			o.Set(member, w.id)
		case member == "messages":
			o.Set(member, residue.List(w.messages))
		case member == "metadata":
			o.Set(member, w.metadata(value))
		case known:
			o.Set(member, value)
		case member == "created_at":
			o.Set(member, w.Script.Header.CreatedAt.Local().Format(timeForm))
		case member == "last_active":
			o.Set(member, w.active.Local().Format(timeForm))
		case facts == nil:
			o.Set(member, []any{})
		}
	}
	return o.Indented()
}

func (w *writer) metadata(known any) map[string]any {
	old, _ := known.(map[string]any)
	metadata := maps.Clone(old)
	if metadata == nil {
		metadata = make(map[string]any)
	}
	metadata["message_count"] = len(w.messages)
	if _, counted := metadata["token_count"]; !counted {
		metadata["token_count"] = w.tokens
	}
	if w.Script.Name != "" {
		metadata["title"] = w.Script.Name
	}
	if !w.continues() {
		delete(metadata, "continued_to")
	}
	return metadata
}

// continues reports whether the session continues in another. A whole conversation that is
// written as one session does not.
func (w *writer) continues() bool {
	named, isWhole := false, false
	for i := range w.Script.All {
		e := &w.Script.All[i]
		named = named || e.Custom != nil && e.Custom.CustomType == session.CustomContinuedTo
		isWhole = isWhole || e.Continues != nil && e.Continues.Session == w.Script.Header.ID
	}
	return named && !isWhole
}

// mergeIndex replaces the session's line in the index.
func (w *writer) mergeIndex(old []byte) ([]byte, error) {
	index, err := draft.Members(indexFile, old)
	if err != nil {
		return nil, err
	}
	entry := residue.Object(loose.Value(index.JSON()).Get(w.id).Except())
	entry.Set("created_at", w.Script.Header.CreatedAt.Local().Format(timeForm))
	entry.Set("last_active", w.active.Local().Format(timeForm))
	entry.Set("message_count", len(w.messages))
	entry.Set("token_count", w.tokens)
	entry.Set("title", cmp.Or(w.Script.Name, defaultTitle(w.id)))
	facts, _ := w.Script.Facts[factSession].(map[string]any)
	metadata, _ := facts["metadata"].(map[string]any)
	for _, member := range slices.Sorted(maps.Keys(metadata)) {
		if member == "continued_from" || member == "continued_to" && w.continues() {
			entry.Set(member, metadata[member])
		}
	}
	index.Set(w.id, entry.JSON())
	return index.Indented(), nil
}

func resume(id string) []string { return []string{"penguin", "--resume", id} }
