package dataset

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

const (
	sharegpt  = "sharegpt"
	imageMark = "<image>"
	// besideSystem marks a system prompt that stands beside the turns.
	besideSystem = `{"beside":true}`
)

// Who speaks in a turn.
const (
	fromHuman       = "human"
	fromModel       = "gpt"
	fromSystem      = "system"
	fromCall        = "function_call"
	fromObservation = "observation"
)

// ShareGPT returns the format of ShareGPT, and of LLaMA-Factory's additions to it:
// tools, pictures, and pairs of a chosen and a rejected answer.
func ShareGPT() *transcript.Format {
	f := simple(sharegpt, "ShareGPT", func(s *shape.Shape) bool {
		return has(s, "conversations[].from") || has(s, "conversations[].role")
	}, readShareGPT)
	f.Write = writeShareGPT
	return f
}

func readShareGPT(r *recordReader, rec records.Record) error {
	turns := rec.Get("conversations")
	if !turns.IsArray() {
		return records.Bad(errors.New("it has no conversations"))
	}
	b, err := r.begin(rec, rec.Get("id").Name(), transcript.Conversation{}, "conversations", "system", "chosen", "rejected")
	if err != nil {
		return err
	}
	d := &turnDecoder{b: b}
	for image := range rec.Get("images").Items() {
		d.images = append(d.images, image.Text())
	}
	if system := rec.Get("system"); system.IsString() {
		m := &session.MessageEntry{Role: session.RoleSystem, Content: []session.Content{session.Text(system.Text())}}
		m.Extra = residue.Keep(nil, sharegpt, json.RawMessage(besideSystem))
		if err := b.add(m); err != nil {
			return err
		}
	}
	for turn := range turns.Items() {
		if err := b.add(d.message(turn)); err != nil {
			return err
		}
	}
	return d.pair(rec.Get("chosen"), rec.Get("rejected"))
}

// turnDecoder makes messages of turns.
type turnDecoder struct {
	b      *builder
	images []string // that have no mark yet
}

// pair adds the answers that were preferred and not. The conversation stands at
// the former.
func (d *turnDecoder) pair(chosen, rejected loose.Value) error {
	fork := d.b.last
	best := ""
	for _, answer := range []loose.Value{chosen, rejected} {
		if !answer.IsObject() {
			continue
		}
		d.b.last = fork
		if err := d.b.add(d.message(answer)); err != nil {
			return err
		}
		if best == "" {
			best = d.b.last
		}
	}
	if best == "" {
		return nil
	}
	return d.b.stand(best)
}

// message makes a message of a turn. What the writer would not write again in the
// same way is kept with it.
func (d *turnDecoder) message(turn loose.Value) *session.MessageEntry {
	value, from := turn.Get("value"), turn.Get("from")
	if !value.Exists() {
		value = turn.Get("content") // some call them as OpenAI does
	}
	if !from.Exists() {
		from = turn.Get("role")
	}
	m := &session.MessageEntry{}
	switch from.Text() {
	case fromHuman, "user":
		m.Role, m.Content = session.RoleUser, d.withImages(value.Text())
	case fromSystem:
		m.Role, m.Content = session.RoleSystem, text(value)
	case fromCall, "tool_call":
		m.Role, m.Content = session.RoleAssistant, d.calls(value)
	case fromObservation, "tool", "function_response", "ipython":
		m.Role, m.Content = session.RoleTool, []session.Content{d.b.result(value.Text())}
	default: // gpt, chatgpt, bing, bard, assistant, model
		m.Role, m.Content = session.RoleAssistant, d.withImages(value.Text())
		m.Model = modelOf(from.Text())
	}
	var images []string
	if made := turnsOf(m, &images); len(made) == 1 {
		m.Extra = residue.Keep(m.Extra, sharegpt, residue.Of(loose.Value(made[0]), turn))
	}
	return m
}

// modelOf returns the model that a turn is of, if it says more than that it is
// one.
func modelOf(from string) string {
	switch from {
	case fromModel, "assistant", "model", "bot", "":
		return ""
	}
	return from
}

func text(v loose.Value) []session.Content { return []session.Content{session.Text(v.Text())} }

// calls returns the calls of a turn: an object, or a list of them. What is
// neither stays text.
func (d *turnDecoder) calls(value loose.Value) []session.Content {
	v := value
	if value.IsString() {
		parsed, err := loose.Parse([]byte(value.Text()))
		if err != nil {
			return text(value)
		}
		v = parsed
	}
	if v.IsObject() && v.Has("name") {
		return []session.Content{d.b.call(v)}
	}
	var blocks []session.Content
	for call := range v.Items() {
		if !call.Has("name") {
			return text(value)
		}
		blocks = append(blocks, d.b.call(call))
	}
	if blocks == nil {
		return text(value)
	}
	return blocks
}

// withImages puts the pictures where their marks are.
func (d *turnDecoder) withImages(s string) []session.Content {
	var blocks []session.Content
	for len(d.images) > 0 {
		before, after, found := strings.Cut(s, imageMark)
		if !found {
			break
		}
		if before != "" {
			blocks = append(blocks, session.Text(before))
		}
		blocks = append(blocks, image(d.images[0]))
		s, d.images = after, d.images[1:]
	}
	if s != "" || blocks == nil {
		blocks = append(blocks, session.Text(s))
	}
	return blocks
}
