package wire

import (
	"encoding/json"
	"slices"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// Residue is the part of a wire object that the session model has no place for. It is
// kept with the message or block made from the object, as one unknown member named
// after the format. So an encoder of the same format can restore everything, and all
// others see that it is foreign.
//
// It is stored as a patch (see rawjson.Patch) that sets Fields and removes Absent, with
// a few more members.
type Residue struct {
	// Fields are members without a place in the session model, and known members with an
	// unexpected value. When the object is written again, they replace what the encoder would
	// write under their names.
	Fields Object
	// Absent are members that the encoder would write but that the object lacked.
	Absent []string
	// Form says which of several ways to write something was used; empty is the usual
	// one. Each codec has its own forms.
	Form string
	// Text is the original spelling, where the value does not preserve it: the
	// arguments of a call.
	Text *string
	// Join says whether the message was part of the message before it, where the encoder
	// would do otherwise.
	Join *bool
	// Envelope are members of the response that the message came in.
	Envelope Object
}

// Members of a residue as it is kept, besides those of a patch.
const (
	residueForm     = "form"
	residueText     = "text"
	residueJoin     = "join"
	residueEnvelope = "envelope"

	// The old names of set and unset.
	oldFields = "fields"
	oldAbsent = "absent"
)

// Empty reports whether there is nothing to keep.
func (r *Residue) Empty() bool {
	return len(r.Fields) == 0 && len(r.Absent) == 0 && r.Form == "" && r.Text == nil && r.Join == nil && len(r.Envelope) == 0
}

// Miss adds the names that the object does not have to Absent.
func (r *Residue) Miss(o Object, names ...string) {
	for _, name := range names {
		if !o.Has(name) {
			r.Absent = append(r.Absent, name)
		}
	}
}

// Keep adds the residue to extra under the name of a format, unless there is
// nothing to keep.
func (r *Residue) Keep(extra *session.Fields, format string) {
	if !r.Empty() {
		r.Mark(extra, format)
	}
}

// Mark is Keep, but also adds an empty residue, which shows where the object came from.
func (r *Residue) Mark(extra *session.Fields, format string) {
	var o Object
	o.PutPatch(r.Fields, r.Absent)
	if r.Form != "" {
		o.SetStr(residueForm, r.Form)
	}
	if r.Text != nil {
		o.SetStr(residueText, *r.Text)
	}
	if r.Join != nil {
		o.Put(residueJoin, boolean(*r.Join))
	}
	if len(r.Envelope) > 0 {
		o.SetObject(residueEnvelope, r.Envelope)
	}
	(*Object)(extra).Set(format, o.JSON())
}

func boolean(b bool) json.RawMessage {
	if b {
		return json.RawMessage("true")
	}
	return json.RawMessage("false")
}

// ResidueOf returns what was kept for a format; ok is false if nothing was.
func ResidueOf(extra session.Fields, format string) (r Residue, ok bool) {
	o := Members(Object(extra).Get(format))
	if o == nil {
		return Residue{}, false
	}
	r.Fields = Members(either(o, rawjson.PatchSet, oldFields))
	if names, ok := Elements(either(o, rawjson.PatchUnset, oldAbsent)); ok {
		for _, name := range names {
			s, _ := rawjson.String(name)
			r.Absent = append(r.Absent, s)
		}
	}
	r.Form = o.Str(residueForm)
	if text, ok := rawjson.String(o.Get(residueText)); ok {
		r.Text = &text
	}
	if join, ok := rawjson.Bool(o.Get(residueJoin)); ok {
		r.Join = &join
	}
	r.Envelope = Members(o.Get(residueEnvelope))
	return r, true
}

// either returns a member by its name or by its old name.
func either(o Object, name, old string) json.RawMessage {
	if value := o.Get(name); value != nil {
		return value
	}
	return o.Get(old)
}

// Restore adds to a new object the further members that its original had, and removes
// those that the original lacked.
func (r *Residue) Restore(o *Object) {
	o.Merge(r.Fields)
	for _, name := range r.Absent {
		o.Take(name)
	}
}

// Forget drops the kept value of a member that has changed since: the edit counts, not the
// old value.
func (r *Residue) Forget(name string) {
	r.Fields.Take(name)
	r.require(name)
}

// FixRole makes sure that a message is written with its role. Some servers leave out the role
// of an answer, or leave it empty.
func (r *Residue) FixRole(role session.MessageRole) {
	if role == session.RoleAssistant {
		r.Fields.Take("role")
	}
	r.require("role")
}

func (r *Residue) require(name string) {
	r.Absent = slices.DeleteFunc(r.Absent, func(absent string) bool { return absent == name })
}

// Inner returns the residue of an object within the object, which was kept as a
// member of Fields, and removes it from there.
func (r *Residue) Inner(name string) Object {
	inner, _ := r.Fields.TakeObject(name)
	return inner
}

// formats are all the names under which residues are kept.
var formats = []string{Chat, Responses, Anthropic, Google, Bedrock}

// The names of the wire formats.
const (
	Chat      = "openai_chat"
	Responses = "openai_responses"
	Anthropic = "anthropic"
	Google    = "google"
	Bedrock   = "bedrock"
)

// Foreign reports whether extra says that its message or block came from another format
// and not from the given one.
func Foreign(extra session.Fields, format string) bool {
	o := Object(extra)
	if o.Has(format) {
		return false
	}
	return slices.ContainsFunc(formats, o.Has)
}
