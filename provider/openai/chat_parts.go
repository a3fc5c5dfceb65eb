package openai

import (
	"encoding/json"
	"strings"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// chatPart reads a part of a message. An unknown part is kept whole.
func chatPart(raw json.RawMessage) session.Content {
	if o := wire.Members(raw); o != nil {
		kind, _ := o.TakeStr("type")
		var r wire.Residue
		if c, ok := partOf(kind, &o, &r); ok {
			r.Fields.Merge(o)
			r.Keep(&c.Extra, wire.Chat)
			return c
		}
	}
	return wire.Raw(raw)
}

// partOf reads a known part.
func partOf(kind string, o *wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	switch kind {
	case "text":
		text, ok := o.TakeStr("text")
		return session.Text(text), ok
	case "refusal":
		text, ok := o.TakeStr("refusal")
		r.Form = formRefusalPart
		return session.Text(text), ok
	case "image_url":
		return imagePart(o, r)
	case "input_audio":
		return audioPart(o, r)
	case "file":
		return filePart(o, r)
	}
	return c, false
}

// audioPart reads a recording, which both APIs write in the same form. It names its format alone:
// wav is audio/wav.
func audioPart(o *wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	inner, _ := o.TakeObject("input_audio")
	data, hasData := inner.TakeStr("data")
	format, hasFormat := inner.TakeStr("format")
	keepInner(r, "input_audio", inner)
	return session.Media(&session.Source{Type: provider.SourceBase64, MediaType: "audio/" + format, Data: data}), hasData && hasFormat
}

// newAudioPart writes a recording.
func newAudioPart(source *session.Source) (o wire.Object) {
	o.SetStr("type", "input_audio")
	var audio wire.Object
	audio.SetStr("data", source.Data)
	audio.SetStr("format", strings.TrimPrefix(source.MediaType, "audio/"))
	o.SetObject("input_audio", audio)
	return o
}

// keepInner keeps the unknown members of an object in a part.
func keepInner(r *wire.Residue, name string, inner wire.Object) {
	if len(inner) > 0 {
		r.Fields.SetObject(name, inner)
	}
}

// imagePart reads a picture, by its address or as a data URL. Some writers leave out the object
// around the URL.
func imagePart(o *wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	if url, ok := o.TakeStr("image_url"); ok {
		r.Form = formString
		return session.ImageFrom(provider.SourceAt(url)), true
	}
	inner, _ := o.TakeObject("image_url")
	url, ok := inner.TakeStr("url")
	keepInner(r, "image_url", inner)
	return session.ImageFrom(provider.SourceAt(url)), ok
}

// filePart reads a file: the id of an upload, or a data URL. Chat Completions takes no addresses,
// so a part with one is kept whole.
func filePart(o *wire.Object, r *wire.Residue) (c session.Content, ok bool) {
	inner, _ := o.TakeObject("file")
	name, _ := inner.TakeText("filename")
	var source *session.Source
	if id, ok := inner.TakeStr("file_id"); ok {
		source = &session.Source{Type: provider.SourceFile, Data: id}
	} else if data, ok := inner.TakeStr("file_data"); ok {
		source = provider.SourceAt(data)
	}
	keepInner(r, "file", inner)
	return session.File(name, source), source != nil && source.Type != provider.SourceURL
}

// parts writes blocks as the parts of a message.
func (e *chatEncoder) parts(blocks []session.Content, role session.MessageRole) []json.RawMessage {
	list := []json.RawMessage{}
	for i := range blocks {
		if part := e.part(&blocks[i], role); part != nil {
			list = append(list, part)
		}
	}
	return list
}

// part returns a block as a part. If it cannot be written, part adds a note and returns nil.
func (e *chatEncoder) part(c *session.Content, role session.MessageRole) json.RawMessage {
	if c.Raw != nil {
		if e.own {
			return wire.RawOf(c)
		}
		e.notes.Add("%s is left out", wire.Describe(c))
		return nil
	}
	r, _ := wire.ResidueOf(c.Extra, wire.Chat)
	if c.Text == nil && role != session.RoleUser && !e.own {
		e.notes.Add("%s is left out: only users can send one", wire.Describe(c))
		return nil
	}
	o, restore := e.newPart(c, &r)
	if o == nil {
		e.notes.Add("%s is left out", wire.Describe(c))
		return nil
	}
	if restore != "" { // what was left of the object in the part
		inner := wire.Members(o.Get(restore))
		inner.Merge(r.Inner(restore))
		if r.Form != formString {
			o.SetObject(restore, inner)
		}
	}
	r.Restore(&o)
	return o.JSON()
}

// newPart returns a part, and the name of the object in it, if it has one.
func (e *chatEncoder) newPart(c *session.Content, r *wire.Residue) (o wire.Object, inner string) {
	source := c.Source()
	switch {
	case c.Text != nil && (r.Form == formRefusalPart || r.Form == formRefusal):
		o.SetStr("type", "refusal")
		o.SetStr("refusal", c.Text.Content)
	case c.Text != nil:
		o.SetStr("type", "text")
		o.SetStr("text", c.Text.Content)
	case source == nil:
		return nil, ""
	case c.Image != nil:
		return newImagePart(source, r)
	case c.Audio != nil && source.Type == provider.SourceBase64:
		return newAudioPart(source), "input_audio"
	case c.File != nil:
		return e.newFilePart(c.File)
	}
	return o, ""
}

// newImagePart writes a picture, in the form that it was read in.
func newImagePart(source *session.Source, r *wire.Residue) (o wire.Object, inner string) {
	url, ok := provider.URLOf(source)
	if !ok {
		return nil, ""
	}
	o.SetStr("type", "image_url")
	if r.Form == formString {
		o.SetStr("image_url", url)
		return o, ""
	}
	var image wire.Object
	image.SetStr("url", url)
	o.SetObject("image_url", image)
	return o, "image_url"
}

// newFilePart writes a file. A file of plain text is sent as a text.
func (e *chatEncoder) newFilePart(f *session.FileContent) (o wire.Object, inner string) {
	var file wire.Object
	switch f.Source.Type {
	case provider.SourceFile:
		file.SetStr("file_id", f.Source.Data)
	case provider.SourceBase64:
		url, _ := provider.URLOf(f.Source)
		file.SetStr("file_data", url)
	case provider.SourceText:
		e.notes.Add("the file %s is sent as text", f.Name)
		o.SetStr("type", "text")
		o.SetStr("text", f.Source.Data)
		return o, ""
	default:
		return nil, ""
	}
	if f.Name != "" {
		file.SetStr("filename", f.Name)
	}
	o.SetStr("type", "file")
	o.SetObject("file", file)
	return o, "file"
}
