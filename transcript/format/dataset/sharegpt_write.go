package dataset

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// writeShareGPT writes a conversation as one record: a file of one line.
func writeShareGPT(_ context.Context, s *transcript.Script, _ transcript.Env) (*transcript.Output, error) {
	out := &transcript.Output{Losses: s.OtherBranches()}
	var record residue.Object
	record.Set("id", s.Header.ID)
	facts, _ := s.Facts[factRecord].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if name != "images" { // those that are still there are written below
			record.Set(name, facts[name])
		}
	}
	if s.NativeID != "" && facts["id"] == nil {
		record.Remove("id") // it had none
	}
	var turns []json.RawMessage
	var images []string
	path := transcript.InPlace(s.Path)
	for i := range path {
		e := &path[i]
		switch {
		case e.Compaction != nil:
			out.Losses = append(out.Losses, transcript.Loss{EntryID: e.ID, What: "compaction", Why: "the whole conversation is written"})
		case e.Message == nil:
		case string(residue.In(e.Message.Extra, sharegpt)) == besideSystem && i == firstMessage(path):
			record.Set("system", session.TextOf(e.Message.Content))
		default:
			out.Losses = append(out.Losses, transcript.Lost(e, "a turn is text, pictures or calls there",
				session.ContentTypeText, session.ContentTypeImage, session.ContentTypeToolUse, session.ContentTypeToolResult)...)
			turns = append(turns, restored(e.Message, &images)...)
		}
	}
	record.Set("conversations", residue.List(turns))
	if len(images) > 0 {
		record.Set("images", images)
	}
	out.Files = []transcript.OutputFile{{Path: s.Header.ID + ".sharegpt.jsonl", Data: append(record.JSON(), '\n')}}
	return out, nil
}

// firstMessage returns the place of the first message of a path.
func firstMessage(path []session.Entry) int {
	return slices.IndexFunc(path, func(e session.Entry) bool { return e.Message != nil })
}

// restored returns the turns of a message as they were read.
func restored(m *session.MessageEntry, images *[]string) []json.RawMessage {
	turns := turnsOf(m, images)
	if kept := residue.In(m.Extra, sharegpt); kept != nil && len(turns) == 1 {
		turns[0] = residue.Restore(loose.Value(turns[0]), kept)
	}
	return turns
}

// turnsOf returns a message as turns: one for the text, one for the calls, one for each tool
// result. It adds the pictures to the list.
func turnsOf(m *session.MessageEntry, images *[]string) []json.RawMessage {
	var turns []json.RawMessage
	said, calls, first := "", []json.RawMessage(nil), true
	for i := range m.Content {
		switch b := &m.Content[i]; {
		case b.Text != nil:
			said += b.Text.Content
			first = false
		case b.Image != nil && b.Image.Source != nil:
			said += imageMark
			url, ok := provider.URLOf(b.Image.Source)
			if !ok {
				url = b.Image.Source.Data
			}
			*images = append(*images, url)
			first = false
		case b.ToolUse != nil:
			calls = append(calls, callOf(b.ToolUse))
		case b.ToolResult != nil:
			turns = append(turns, turnOf(fromObservation, b.ToolResult.Content))
		}
	}
	if !first || len(m.Content) == 0 {
		turns = append([]json.RawMessage{turnOf(speaker(m.Role), said)}, turns...)
	}
	switch len(calls) {
	case 0:
	case 1:
		turns = append(turns, turnOf(fromCall, string(calls[0])))
	default:
		turns = append(turns, turnOf(fromCall, string(residue.List(calls))))
	}
	return turns
}

func speaker(role string) string {
	switch role {
	case session.RoleAssistant:
		return fromModel
	case session.RoleSystem:
		return fromSystem
	case session.RoleTool:
		return fromObservation
	}
	return fromHuman
}

func turnOf(from, value string) json.RawMessage {
	var o residue.Object
	o.Set("from", from)
	o.Set("value", value)
	return o.JSON()
}

func callOf(t *session.ToolUseContent) json.RawMessage {
	input, err := t.InputJSON()
	if err != nil || string(input) == "null" {
		input = json.RawMessage("{}")
	}
	var o residue.Object
	o.Set("name", t.Name)
	o.Set("arguments", input)
	return o.JSON()
}
