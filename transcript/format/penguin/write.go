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
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// members are the members of a session that Penguin reads, in its order.
var members = []string{
	"id", "created_at", "last_active", "metadata", "messages",
	"llm_request_lifecycles", "tool_call_records", "tool_result_records",
}

func write(_ context.Context, s *transcript.Script, env transcript.Env) (*transcript.Output, error) {
	out := &transcript.Output{Base: places(env)[0].Dir, Losses: s.OtherBranches()}
	id := cmp.Or(s.NativeID, "session_"+s.Header.CreatedAt.Local().Format("20060102_150405")+"_"+transcript.HashID(s.Header.ID)[:8])
	out.Resume = plain.Command(resume(id)...)
	d := draft{script: s, id: id, active: s.Header.CreatedAt}
	for i := range s.Path {
		d.add(&s.Path[i])
	}
	out.Losses = append(out.Losses, d.losses...)
	out.Files = []transcript.OutputFile{
		{Path: id + ".json", Data: d.document()},
		{Path: indexFile, Merge: d.mergeIndex},
	}
	return out, nil
}

// draft is a session that is being written.
type draft struct {
	script   *transcript.Script
	id       string
	messages []json.RawMessage
	tokens   int
	active   time.Time
	losses   []transcript.Loss
}

func (d *draft) add(e *session.Entry) {
	switch {
	case e.Message != nil:
		made := encode(e)
		if kept := residue.In(e.Message.Extra, name); kept != nil {
			made[0] = residue.Restore(loose.Value(made[0]), kept)
		}
		d.messages = append(d.messages, made...)
		d.tokens += tokens(e.Message)
		if e.Timestamp.After(d.active) {
			d.active = e.Timestamp
		}
		d.losses = append(d.losses, transcript.Lost(e, "a message is text, pictures and tool calls there",
			session.ContentTypeText, session.ContentTypeImage, session.ContentTypeToolUse, session.ContentTypeToolResult)...)
	case e.Compaction != nil, e.BranchSummary != nil, e.Merge != nil, e.ContextEdit != nil:
		d.losses = append(d.losses, transcript.Loss{EntryID: e.ID, What: string(e.Type), Why: "all messages that fit are sent there"})
	}
}

func (d *draft) document() []byte {
	facts, _ := d.script.Facts[factSession].(map[string]any)
	var o residue.Object
	for _, member := range members {
		switch value, known := facts[member]; {
		case member == "id":
			o.Set(member, d.id)
		case member == "messages":
			o.Set(member, residue.List(d.messages))
		case member == "metadata":
			o.Set(member, d.metadata(value))
		case known:
			o.Set(member, value)
		case member == "created_at":
			o.Set(member, d.script.Header.CreatedAt.Local().Format(timeForm))
		case member == "last_active":
			o.Set(member, d.active.Local().Format(timeForm))
		case facts == nil:
			o.Set(member, []any{})
		}
	}
	return o.Indented()
}

func (d *draft) metadata(known any) map[string]any {
	old, _ := known.(map[string]any)
	metadata := maps.Clone(old)
	if metadata == nil {
		metadata = make(map[string]any)
	}
	metadata["message_count"] = len(d.messages)
	if _, counted := metadata["token_count"]; !counted {
		metadata["token_count"] = d.tokens
	}
	if d.script.Name != "" {
		metadata["title"] = d.script.Name
	}
	if !d.goesOn() {
		delete(metadata, "continued_to")
	}
	return metadata
}

// goesOn reports whether the session continues in another. A whole conversation that is
// written as one session does not.
func (d *draft) goesOn() bool {
	return slices.ContainsFunc(d.script.All, func(e session.Entry) bool {
		return e.Custom != nil && e.Custom.CustomType == session.CustomContinuedTo
	})
}

// mergeIndex replaces the session's line in the index.
func (d *draft) mergeIndex(old []byte) ([]byte, error) {
	var index residue.Object
	if len(old) > 0 {
		v, err := loose.Parse(old)
		if err != nil {
			return nil, &session.Error{Op: "write", Path: indexFile, Kind: session.ErrCorrupt, Err: err}
		}
		index = residue.Object(v.Except())
	}
	entry := residue.Object(loose.Value(index.JSON()).Get(d.id).Except())
	entry.Set("created_at", d.script.Header.CreatedAt.Local().Format(timeForm))
	entry.Set("last_active", d.active.Local().Format(timeForm))
	entry.Set("message_count", len(d.messages))
	entry.Set("token_count", d.tokens)
	entry.Set("title", cmp.Or(d.script.Name, defaultTitle(d.id)))
	facts, _ := d.script.Facts[factSession].(map[string]any)
	metadata, _ := facts["metadata"].(map[string]any)
	for _, member := range slices.Sorted(maps.Keys(metadata)) {
		if member == "continued_from" || member == "continued_to" && d.goesOn() {
			entry.Set(member, metadata[member])
		}
	}
	index.Set(d.id, entry.JSON())
	return index.Indented(), nil
}

func resume(id string) []string { return []string{"penguin", "--resume", id} }
