package google

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
)

// Encode writes the entries of a context as the contents of a request, and the
// system messages at its beginning as its system prompt.
//
// Given the entries of a session.Context, where every call has its result, the request
// keeps the rules that Check knows. For that, everything a model said before its calls
// were answered becomes one message, ids are made unique, and empty blocks are left
// out.
func Encode(entries []session.Entry) (*provider.Messages, error) {
	return encode(entries, false, "")
}

// EncodeVerbatim is Encode for files that keep a conversation: messages that came from this
// format comes back with equal values, even where the provider would refuse it.
func EncodeVerbatim(entries []session.Entry) (*provider.Messages, error) {
	return encode(entries, true, "")
}

// encode writes entries. unsigned, if it is not "", stands in place of the signatures of calls
// that have none.
func encode(entries []session.Entry, verbatim bool, unsigned string) (*provider.Messages, error) {
	e := encoder{names: wire.Names{}, verbatim: verbatim}
	var fields wire.Object
	system, list := wire.CutSystem(wire.Sent(entries, verbatim, media.Google, &e.notes), wire.Google)
	if err := e.system(system, &fields); err != nil {
		return nil, err
	}
	runs := wire.Runs{Verbatim: verbatim, ModelsTurns: true, IsThought: func(part wire.Object) bool { return part.Has("thought") }}
	if err := runs.Encode(list, wire.Google, "parts", e.content); err != nil {
		return nil, err
	}
	if unsigned != "" {
		sign(&runs, unsigned)
	}
	e.open(&runs, list)
	fields.Put("contents", runs.JSON())
	return &provider.Messages{Fields: session.Fields(fields), Notes: e.notes.List}, nil
}

// open puts a content of the user before a first one with calls, which would be refused.
func (e *encoder) open(runs *wire.Runs, list []wire.Message) {
	if runs.Verbatim || len(runs.List) == 0 || !runs.List[0].Calls {
		return
	}
	e.notes.Of(list[0].Entry)
	e.notes.Add("the model speaks first, so a message of the user is added before it")
	part := wire.Object{{Name: "text", Value: wire.Quote("(The conversation begins with your message.)")}}
	runs.List = slices.Insert(runs.List, 0, wire.Run{Message: wire.Object{
		{Name: "role", Value: wire.Quote(roleUser)},
		{Name: "parts", Value: wire.List([]json.RawMessage{part.JSON()})},
	}})
}

// sign signs the first call of each of the model's messages that has no signature: another model
// made it, and a model that signs its own refuses the present turn without. Earlier turns are
// signed too, so that a request begins with the bytes of the one before it. Calls beside the
// first have none.
func sign(runs *wire.Runs, signature string) {
	for i := range runs.List {
		run := &runs.List[i]
		if !run.Model || !run.Calls {
			continue
		}
		parts := slices.Clone(run.Elements("parts"))
		first := slices.IndexFunc(parts, func(raw json.RawMessage) bool {
			o := wire.Members(raw)
			return slices.ContainsFunc(callNames, o.Has)
		})
		if first < 0 {
			continue
		}
		part := wire.Members(parts[first])
		if part.Str(thoughtSignature) == "" && part.Str("thought_signature") == "" {
			part.SetStr(thoughtSignature, signature)
			parts[first] = part.JSON()
			run.SetElements("parts", parts)
		}
	}
}

const thoughtSignature = "thoughtSignature"

type encoder struct {
	notes wire.Notes
	names wire.Names // of the tools that were called, by id
	own   bool       // the current message came from this format
	// unsent are the calls whose ids are not sent, because the provider gave them none.
	unsent map[string]bool

	verbatim bool
}

// of sets the current message.
func (e *encoder) of(m wire.Message) wire.Residue {
	e.notes.Of(m.Entry)
	r, own := wire.ResidueOf(m.Extra, wire.Google)
	e.own = own || m.Part && e.own
	return r
}

// system sets the system prompt.
func (e *encoder) system(list []wire.Message, fields *wire.Object) error {
	if len(list) == 0 {
		return nil
	}
	r := e.of(list[0])
	name := systemCamel
	if strings.HasPrefix(r.Form, formSnake) {
		name = systemSnake
	}
	if strings.HasSuffix(r.Form, formString) && len(list) == 1 && wire.IsPlain(list[0].Content, wire.Google) {
		fields.SetStr(name, list[0].Content[0].Text.Content)
		return nil
	}
	parts, _, err := e.parts(list)
	if err != nil {
		return fmt.Errorf("google: entry %s: %w", list[0].Entry, err)
	}
	o := wire.Object{{Name: "parts", Value: wire.List(parts)}}
	o.Merge(r.Envelope)
	r.Restore(&o)
	fields.SetObject(name, o)
	return nil
}

// content writes the messages that are one, or returns nil if nothing is left.
func (e *encoder) content(list []wire.Message) (wire.Object, error) {
	parts, had, err := e.parts(list)
	if err != nil || len(parts) == 0 && (had > 0 || !e.own || !e.verbatim) {
		return nil, err
	}
	var o wire.Object
	o.SetStr("role", roleUser)
	if list[0].Role == session.RoleAssistant {
		o.SetStr("role", roleModel)
	}
	r := e.of(list[0])
	if list[0].Role == session.RoleSystem && !r.Fields.Has("role") {
		e.notes.Add("a system message amid the conversation is sent as the user's")
	}
	o.Put("parts", wire.List(parts))
	if len(parts) > 0 {
		r.Forget("parts")
	}
	if !e.verbatim {
		r.FixRole(list[0].Role) // without one it counts as the user's
	}
	r.Restore(&o)
	return o, nil
}

// parts writes the blocks of messages, and returns how many there were.
func (e *encoder) parts(list []wire.Message) (parts []json.RawMessage, had int, err error) {
	parts = []json.RawMessage{}
	for _, m := range list {
		e.of(m)
		e.names.Note(m.Content)
		for i := range m.Content {
			had++
			part, err := e.part(&m.Content[i])
			if err != nil {
				return nil, 0, err
			}
			if part != nil {
				parts = append(parts, part)
			}
		}
	}
	return parts, had, nil
}

// part writes a block, or notes why it cannot be written and returns nil.
func (e *encoder) part(c *session.Content) (json.RawMessage, error) {
	r, own := wire.ResidueOf(c.Extra, wire.Google)
	switch {
	case c.Raw != nil && e.own:
		return wire.RawOf(c), nil
	case c.Text != nil && c.Text.Content == "" && !own && (!e.own || !e.verbatim):
		return nil, nil // refused, and says nothing
	case c.Text != nil:
		var o wire.Object
		o.SetStr("text", c.Text.Content)
		r.Restore(&o)
		return o.JSON(), nil
	case c.Thinking != nil && own:
		return thought(c.Thinking, &r), nil
	case c.Thinking != nil:
		e.notes.Add("thinking of another provider is left out")
		return nil, nil
	case c.ToolUse != nil:
		return e.call(c, &r)
	case c.ToolResult != nil:
		return e.result(c.ToolResult, &r), nil
	}
	if part := e.media(c, &r); part != nil {
		return part, nil
	}
	e.notes.Add("%s is left out", wire.Describe(c))
	return nil, nil
}

func thought(t *session.ThinkingContent, r *wire.Residue) json.RawMessage {
	var o wire.Object
	o.SetStr("text", t.Content)
	o.Put("thought", json.RawMessage("true"))
	if t.Signature != "" {
		o.SetStr("thoughtSignature", t.Signature)
	}
	r.Restore(&o)
	return o.JSON()
}

// enclosed returns a part that holds an object, with the members that surrounded it.
func enclosed(name string, inner wire.Object, r *wire.Residue) json.RawMessage {
	r.Restore(&inner)
	var o wire.Object
	o.SetObject(name, inner)
	o.Merge(r.Envelope)
	return o.JSON()
}

func (e *encoder) media(c *session.Content, r *wire.Residue) json.RawMessage {
	source := c.Source()
	if source == nil {
		return nil
	}
	var s spelling
	switch source.Type {
	case provider.SourceBase64:
		s = spellingOf(r.Form, inlineSpellings)
	case provider.SourceURL:
		s = spellingOf(r.Form, fileSpellings)
	case provider.SourceText:
		return wire.Object{{Name: "text", Value: wire.Quote(source.Data)}}.JSON()
	default:
		return nil
	}
	var o wire.Object
	if source.MediaType != "" || e.verbatim {
		o.SetStr(s.mime, source.MediaType)
	}
	o.SetStr(s.data, source.Data)
	return enclosed(s.part, o, r)
}

func spellingOf(form string, spellings []spelling) spelling {
	for _, s := range spellings {
		if form == s.part+"/"+s.mime {
			return s
		}
	}
	return spellings[0]
}

func (e *encoder) call(c *session.Content, r *wire.Residue) (json.RawMessage, error) {
	args, err := wire.Input(c.ToolUse, c.Extra, &e.notes)
	if err != nil {
		return nil, err
	}
	if len(c.ToolUse.Input) > 0 {
		r.Forget("args")
	}
	var o wire.Object
	name := c.ToolUse.Name
	if !e.verbatim && !toolName().MatchString(name) {
		name = safeName(name)
		e.notes.Add("the tool %s is called %s", c.ToolUse.Name, name)
		r.Forget("name")
	}
	if c.ToolUse.ID != "" {
		o.SetStr("id", c.ToolUse.ID)
	}
	o.SetStr("name", name)
	o.Put("args", args)
	e.noteID(c.ToolUse.ID, !slices.Contains(r.Absent, "id") && !r.Fields.Has("id"))
	return enclosed(named(r.Form, callNames), o, r), nil
}

// safeName returns a name that a function may have.
func safeName(name string) string {
	var unheard wire.Notes
	return "_" + unheard.SafeName(name, maxName-1)
}

func named(form string, names []string) string {
	if form != "" {
		return form
	}
	return names[0]
}

// noteID remembers whether a call is sent with its id: its result must match, or the
// provider could not pair them.
func (e *encoder) noteID(id string, sent bool) {
	if e.unsent == nil {
		e.unsent = make(map[string]bool)
	}
	e.unsent[id] = !sent
}

func (e *encoder) result(t *session.ToolResultContent, r *wire.Residue) json.RawMessage {
	var o wire.Object
	if !e.verbatim {
		r.Forget("id")
	}
	if t.ToolUseID != "" && (e.verbatim || !e.unsent[t.ToolUseID]) {
		o.SetStr("id", t.ToolUseID)
	}
	_, called := e.names[t.ToolUseID]
	name := e.names.Answer(t.ToolUseID)
	if !called && !r.Fields.Has("name") {
		e.notes.Add("the result %s answers no call, so its function has no name", t.ToolUseID)
		name = "unknown"
	}
	if !e.verbatim && !toolName().MatchString(name) {
		name = safeName(name)
		r.Forget("name")
	}
	o.SetStr("name", name)
	if was, _ := responseText(r.Fields.Get("response")); was != t.Content {
		r.Forget("response")
	}
	o.Put("response", response(t, r))
	if wire.HasMedia(t.Parts) || wire.HasRaw(t.Parts) {
		e.notes.Add("of a tool's result only the text is sent")
	}
	return enclosed(named(r.Form, resultNames), o, r)
}

// response returns a function's result as the object that it must be.
func response(t *session.ToolResultContent, r *wire.Residue) json.RawMessage {
	form := formOutput
	if r.Text != nil {
		form = *r.Text
	}
	text := t.Content
	if text == "" {
		text = session.TextOf(t.Parts)
	}
	if form == formJSON {
		if rawjson.Kind([]byte(text)) == 'o' && rawjson.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
		form = formOutput // it was edited
	}
	if t.IsError {
		form = formError
	}
	return wire.Object{{Name: form, Value: wire.Quote(text)}}.JSON()
}
