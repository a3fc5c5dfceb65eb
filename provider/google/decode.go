package google

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

const (
	roleModel = "model"
	roleUser  = "user"
)

// The forms of contents: see wire.Residue.
const (
	formSnake   = "snake "  // the system prompt's name is spelt with an underscore
	formString  = "string"  // the system prompt is a string; it may be spelt so too
	formNothing = "nothing" // an answer without content
)

// The names of a system prompt.
const (
	systemCamel = "systemInstruction"
	systemSnake = "system_instruction"
)

// Decode reads a body of Gemini: a request, a response, a list of contents, or
// one content.
func Decode(data []byte) (*provider.Body, error) {
	data, err := wire.Compact(data)
	if err != nil {
		return nil, fmt.Errorf("google: %w", err)
	}
	d := Decoder{names: wire.Names{}}
	if list, ok := wire.Elements(data); ok {
		entries, err := d.contents(list)
		return &provider.Body{Kind: provider.KindMessages, Entries: entries}, err
	}
	o := wire.Members(data)
	switch {
	case rawjson.Kind(o.Get("contents")) == 'a':
		return wire.DecodeRequest(o, "model", "contents", d.system, d.contents)
	case rawjson.Kind(o.Get("candidates")) == 'a':
		return d.response(o)
	case o.Has("parts") || o.Has("role"):
		return &provider.Body{Kind: provider.KindMessage, Entries: d.content(o)}, nil
	case o.Has("error"):
		return nil, fmt.Errorf("google: the body is an error, not a conversation: %.200s", o.Get("error"))
	}
	return nil, errors.New("google: neither contents, nor candidates, nor parts")
}

// Decoder reads contents one after the other. It remembers the calls, so that
// results without ids find theirs. The zero value is ready.
type Decoder struct {
	pairs wire.Pairs
	names wire.Names // of the tools that were called, by id
}

// Content reads one content. A user's content with function results gives several
// entries.
func (d *Decoder) Content(raw []byte) ([]session.Entry, error) {
	raw, err := wire.Compact(raw)
	if err != nil {
		return nil, fmt.Errorf("google: %w", err)
	}
	o, err := wire.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("google: a content must be an object: %w", err)
	}
	return d.content(o), nil
}

func (d *Decoder) contents(list []json.RawMessage) ([]session.Entry, error) {
	return wire.DecodeList(list, wire.Google, "content", d.content)
}

// content reads a content. One without a role is the user's.
func (d *Decoder) content(o wire.Object) []session.Entry {
	m := &session.MessageEntry{Role: session.RoleUser}
	var r wire.Residue
	r.Miss(o, "role", "parts")
	switch o.Str("role") {
	case roleModel:
		o.Take("role")
		m.Role = session.RoleAssistant
		d.pairs.Turn()
	case roleUser:
		o.Take("role")
	}
	if list, ok := wire.TakeBlocks(&o, "parts"); ok {
		m.Content = d.parts(list, m.Role)
	}
	r.Fields = o
	if len(m.Content) == 0 || wire.HasRaw(m.Content) {
		r.Mark(&m.Extra, wire.Google)
	}
	r.Keep(&m.Extra, wire.Google)
	return wire.Split(m, wire.Google)
}

// system takes the system prompt of a request. Anything that is neither a content nor a
// string stays.
func (d *Decoder) system(o *wire.Object) (e session.Entry, ok bool) {
	name := systemCamel
	var r wire.Residue
	if !o.Has(name) && o.Has(systemSnake) {
		name, r.Form = systemSnake, formSnake
	}
	m := &session.MessageEntry{Role: session.RoleSystem}
	if text, ok := o.TakeStr(name); ok {
		m.Content = []session.Content{session.Text(text)}
		r.Form += formString
	} else if inner, ok := o.TakeObject(name); ok {
		r.Miss(inner, "parts")
		if list, ok := wire.TakeBlocks(&inner, "parts"); ok {
			m.Content = d.parts(list, m.Role)
		}
		r.Envelope = inner
	} else {
		return e, false
	}
	if wire.HasRaw(m.Content) {
		r.Mark(&m.Extra, wire.Google)
	}
	r.Keep(&m.Extra, wire.Google)
	return session.Entry{Type: session.TypeMessage, Message: m}, true
}

// response reads the answers of a response.
func (d *Decoder) response(o wire.Object) (*provider.Body, error) {
	list, _ := o.TakeElements("candidates")
	b := &provider.Body{Kind: provider.KindResponse, Model: o.Str("modelVersion")}
	usage := wire.Usage(&o, "usageMetadata", wire.Google, provider.GeminiUsage)
	if len(list) == 0 { // the prompt was refused, say
		return nil, fmt.Errorf("google: the response has no answer: %.200s", o.JSON())
	}
	for i, raw := range list {
		candidate, err := wire.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("google: candidate %d must be an object, not %.40s", i, raw)
		}
		e := d.candidate(o, candidate)
		if i == 0 {
			e.Message.Usage = usage // of all the candidates together
			b.Entries = []session.Entry{e}
		} else {
			b.Alternatives = append(b.Alternatives, []session.Entry{e})
		}
	}
	return b, nil
}

// candidate reads an answer. The response around it is kept with it, and the usage is for all
// answers together.
func (d *Decoder) candidate(response, candidate wire.Object) session.Entry {
	e := session.Entry{Type: session.TypeMessage}
	m := &session.MessageEntry{Role: session.RoleAssistant, Provider: "google"}
	e.Message = m
	var r wire.Residue
	if content, ok := candidate.TakeObject("content"); ok {
		r.Miss(content, "role", "parts")
		if content.Str("role") == roleModel {
			content.Take("role")
		}
		if list, ok := wire.TakeBlocks(&content, "parts"); ok {
			m.Content = d.parts(list, m.Role)
		}
		r.Fields = content
	} else {
		r.Form = formNothing
	}
	response = append(wire.Object(nil), response...)
	m.ResponseID, _ = response.TakeText("responseId")
	m.Model, _ = response.TakeText("modelVersion")
	if created, err := time.Parse(time.RFC3339Nano, response.Str("createTime")); err == nil {
		e.Timestamp = created.UTC()
	}
	if native, ok := candidate.TakeText("finishReason"); ok {
		reason, keep := wire.GoogleStops.Decode(native)
		if m.StopReason = reason; keep != "" {
			candidate.SetStr("finishReason", keep)
		}
	}
	r.Envelope = wire.Object{{Name: "response", Value: response.JSON()}, {Name: "candidate", Value: candidate.JSON()}}
	r.Mark(&m.Extra, wire.Google)
	return e
}
