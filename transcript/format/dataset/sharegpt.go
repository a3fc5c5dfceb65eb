package dataset

import (
	"encoding/json"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

const (
	sharegpt  = "sharegpt"
	imageMark = "<image>"
	// besideSystem marks a system prompt that is beside the turns, not among them.
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

func readShareGPT(r *reader, rec records.Record) error {
	turns := rec.Get("conversations")
	if !turns.IsArray() {
		return bad("it has no conversations")
	}
	d := &turnDecoder{builder: r.begin(rec, rec.Get("id").Name())}
	for image := range rec.Get("images").Items() {
		d.images = append(d.images, image.Text())
	}
	if system := rec.Get("system"); system.IsString() {
		m := message(session.RoleSystem, system.Text())
		m.Extra = residue.Keep(nil, sharegpt, json.RawMessage(besideSystem))
		d.add(m)
	}
	for turn := range turns.Items() {
		d.add(d.message(turn))
	}
	return d.pair(rec.Get("chosen"), rec.Get("rejected"))
}

// turnDecoder turns turns into messages.
type turnDecoder struct {
	*builder
	images []string // pictures without a mark so far
}

// pair adds a preferred answer, which becomes the leaf, and a rejected one.
func (d *turnDecoder) pair(chosen, rejected loose.Value) error {
	fork, best := d.last, ""
	for _, answer := range []loose.Value{chosen, rejected} {
		if !answer.IsObject() {
			continue
		}
		d.last = fork
		d.add(d.message(answer))
		if best == "" {
			best = d.last
		}
	}
	if best == "" {
		return d.err
	}
	return d.setLeaf(best)
}

// message turns a turn into a message. It keeps with it whatever the writer would not write
// in the same way.
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
		m.Role, m.Content = session.RoleAssistant, d.callsIn(value)
	case fromObservation, "tool", "function_response", "ipython":
		m.Role, m.Content = session.RoleTool, []session.Content{d.result(value.Text())}
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

// modelOf returns the model of a turn, if the turn says more than that a model spoke.
func modelOf(from string) string {
	switch from {
	case fromModel, "assistant", "model", "bot", "":
		return ""
	}
	return from
}

// callsIn returns the calls of a turn: an object, or a list of them. What is
// neither stays text.
func (d *turnDecoder) callsIn(value loose.Value) []session.Content {
	v := value
	if value.IsString() {
		v = loose.Try([]byte(value.Text()))
	}
	if v.Has("name") {
		return []session.Content{d.call(v)}
	}
	var blocks []session.Content
	for call := range v.Items() {
		if !call.Has("name") {
			return text(value)
		}
		blocks = append(blocks, d.call(call))
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
