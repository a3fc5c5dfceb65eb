package google

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// spelling is how the names of a kind of part are written: the part's own, and
// those of the members in it.
type spelling struct{ part, mime, data string }

// Spellings of parts with data, the usual one first: what Google documents, what
// its Python library writes, and mixtures of both.
var (
	inlineSpellings = []spelling{
		{"inlineData", "mimeType", "data"},
		{"inline_data", "mime_type", "data"},
		{"inline_data", "mimeType", "data"},
		{"inlineData", "mime_type", "data"},
	}
	fileSpellings = []spelling{
		{"fileData", "mimeType", "fileUri"},
		{"file_data", "mime_type", "file_uri"},
		{"file_data", "mimeType", "fileUri"},
	}
	callNames   = []string{"functionCall", "function_call"}
	resultNames = []string{"functionResponse", "function_response"}
)

// parts reads the parts of a content. An unknown part is kept whole, and so is a
// function result in a model's content.
func (d *Decoder) parts(list []json.RawMessage, role string) []session.Content {
	blocks := make([]session.Content, len(list))
	for i, raw := range list {
		c, ok := d.part(raw)
		if !ok || c.ToolResult != nil && role != session.RoleUser {
			c = wire.Raw(raw)
		}
		blocks[i] = c
	}
	return blocks
}

// part reads a part. The residue of a part that holds an object is the object's; what
// was around the object is in its envelope.
func (d *Decoder) part(raw json.RawMessage) (c session.Content, ok bool) {
	o := wire.Members(raw)
	var r wire.Residue
	switch {
	case rawjson.Kind(o.Get("text")) == 's':
		c = textPart(&o)
		r.Fields = o
		r.Keep(&c.Extra, wire.Google)
		if c.Thinking != nil {
			r.Mark(&c.Extra, wire.Google) // sent back only to its own provider
		}
		return c, true
	case o.Has(inlineSpellings[0].part) || o.Has(inlineSpellings[1].part):
		c, ok = mediaPart(&o, &r, inlineSpellings, provider.SourceBase64)
	case o.Has(fileSpellings[0].part) || o.Has(fileSpellings[1].part):
		c, ok = mediaPart(&o, &r, fileSpellings, provider.SourceURL)
	default:
		if inner, is := namedObject(&o, callNames, &r); is {
			c, ok = d.call(inner, &r)
		} else if inner, is := namedObject(&o, resultNames, &r); is {
			c, ok = d.result(inner, &r)
		}
	}
	if !ok {
		return c, false
	}
	r.Envelope = o
	r.Keep(&c.Extra, wire.Google)
	return c, true
}

// namedObject takes the object that a part holds under one of the names, the usual
// one first.
func namedObject(o *wire.Object, names []string, r *wire.Residue) (wire.Object, bool) {
	for i, name := range names {
		if inner, ok := o.TakeObject(name); ok {
			if i > 0 {
				r.Form = name
			}
			return inner, true
		}
	}
	return nil, false
}

func textPart(o *wire.Object) session.Content {
	text, _ := o.TakeStr("text")
	if thought, _ := rawjson.Bool(o.Get("thought")); !thought {
		return session.Text(text)
	}
	o.Take("thought")
	signature, _ := o.TakeText("thoughtSignature")
	return session.Thinking(text, signature)
}

func mediaPart(o *wire.Object, r *wire.Residue, spellings []spelling, source string) (c session.Content, ok bool) {
	for i, s := range spellings {
		inner := wire.Members(o.Get(s.part))
		mime, hasMime := inner.TakeStr(s.mime)
		data, hasData := inner.TakeStr(s.data)
		if !hasMime || !hasData {
			continue
		}
		o.Take(s.part)
		r.Fields = inner
		if i > 0 {
			r.Form = s.part + "/" + s.mime
		}
		return session.Media(&session.Source{Type: source, MediaType: mime, Data: data}), true
	}
	return c, false
}

func (d *Decoder) call(o wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	name, ok := o.TakeText("name")
	if !ok {
		return c, false
	}
	r.Miss(o, "id", "args")
	id, _ := o.TakeText("id") // one that is empty stays
	id = d.pairs.Call(id, name)
	d.note(id, name)
	args := o.Get("args")
	if rawjson.Kind(args) == 'o' {
		o.Take("args")
	}
	r.Fields = o
	return session.ToolUseJSON(id, name, args), true
}

func (d *Decoder) note(id, name string) {
	if d.names == nil {
		d.names = wire.Names{}
	}
	d.names[id] = append(d.names[id], name)
}

// The forms of a function's result.
const (
	formOutput = "output" // the usual one
	formResult = "result"
	formError  = "error"
	formJSON   = "json" // the whole response
)

func (d *Decoder) result(o wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	name, ok := o.TakeText("name")
	if !ok {
		return c, false
	}
	r.Miss(o, "id", "response")
	id, _ := o.TakeText("id") // one that is empty stays
	id = d.pairs.Answer(id, name)
	if d.names.Answer(id) != name {
		o.SetStr("name", name) // the call does not say it
	}
	response := o.Get("response")
	text, form := responseText(response)
	c = session.ToolResult(id, text, form == formError)
	if form != "" {
		o.Take("response")
	}
	if form == formResult || form == formJSON {
		r.Text = &form
	}
	r.Fields = o
	return c, true
}

// responseText returns the text of a function's result: the one member that has
// it, or the whole as JSON. Anything that is not an object has no form, and stays.
func responseText(raw json.RawMessage) (text, form string) {
	o := wire.Members(raw)
	if o == nil {
		if text, ok := rawjson.String(raw); ok {
			return text, ""
		}
		return string(raw), ""
	}
	if len(o) == 1 {
		for _, form := range []string{formOutput, formResult, formError} {
			if text, ok := o.TakeStr(form); ok {
				return text, form
			}
		}
	}
	return string(raw), formJSON
}
