package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

// factRequest is the fact of a conversation that holds the members of its
// request besides the messages.
const factRequest = "request"

func (w *wire) read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	r := &reader{wire: w, file: f, to: to, turns: make(map[string]turn)}
	s := shape.OfFile(f)
	switch {
	case isEvents(f.Head()) || s.Has("[].candidates"):
		return r.stream()
	case s.Has("[]") && r.isList(s):
		return r.list()
	}
	err := records.Each(ctx, f, to, r.record)
	if err == nil && r.messages != nil {
		err = r.conversation()
	}
	return err
}

// isList reports whether an array is a list of messages, not of conversations.
func (r *reader) isList(s *shape.Shape) bool {
	for _, member := range r.wire.message {
		if s.Has("[]." + member) {
			return !s.Has("[]."+r.wire.list, "[].choices", "[].output")
		}
	}
	return false
}

// reader reads a file.
type reader struct {
	wire *wire
	file *transcript.File
	to   transcript.Sink

	turns map[string]turn // the responses that were read, by their id

	// Messages on lines of their own are one conversation.
	messages []json.RawMessage
	spans    []transcript.Span
}

// turn is where a response is, for requests that continue from it.
type turn struct{ conversation, last string }

// stream reads a stream, which is one response.
func (r *reader) stream() error {
	data, err := r.file.ReadAll()
	if err != nil {
		return err
	}
	if r.wire.fold == nil {
		return records.Refuse(r.file, fmt.Errorf("%s has no streams of this kind", r.wire.title))
	}
	body, err := r.wire.fold(bytes.NewReader(data))
	if err != nil {
		return records.Refuse(r.file, err)
	}
	r.to.Count("stream", "response", 1)
	return r.record(records.Record{Value: body, Span: transcript.Span{Len: int64(len(data))}, N: 1, Only: true})
}

// list reads a file that is a list of messages.
func (r *reader) list() error {
	whole, err := records.Whole(r.file)
	if err != nil {
		return err
	}
	for m := range r.usable(whole.Value, whole).Items() {
		if !m.IsObject() {
			r.to.Problem(transcript.Problem{Reason: fmt.Sprintf("a message must be an object, not %.40s", m)})
			continue
		}
		r.messages = append(r.messages, json.RawMessage(m))
	}
	r.spans = []transcript.Span{whole.Span}
	return r.conversation()
}

// record reads a body, or a message on a line of its own.
func (r *reader) record(rec records.Record) error {
	if !rec.Only && r.isMessage(rec.Value) {
		r.messages, r.spans = append(r.messages, json.RawMessage(rec.Value)), append(r.spans, rec.Span)
		return nil
	}
	return r.document(rec)
}

// isMessage reports whether an object is a single message.
func (r *reader) isMessage(v loose.Value) bool {
	if v.Has(r.wire.list) || v.Has("body") || v.Has("choices") || v.Has("output") || v.Get("type").Text() == "message" && v.Has("usage") {
		return false
	}
	return slices.ContainsFunc(r.wire.message, func(member string) bool { return v.Has(member) })
}

// conversation adds the messages that are a conversation together.
func (r *reader) conversation() error {
	all := residue.List(r.messages)
	body, err := r.wire.decode(all)
	if err != nil {
		return records.Refuse(r.file, err)
	}
	if err := r.to.Begin(transcript.Conversation{ID: records.ID(r.wire.name, r.file, "", 1, all)}); err != nil {
		return err
	}
	for i := range body.Entries {
		from := r.spans
		if len(r.spans) == len(body.Entries) {
			from = r.spans[i : i+1]
		}
		if err := r.add(transcript.Record{Entry: body.Entries[i], From: from}); err != nil {
			return err
		}
	}
	return nil
}

// document reads a body, whatever it is wrapped in.
func (r *reader) document(rec records.Record) error {
	request, response, native := unwrap(rec.Value)
	var bodies []*provider.Body
	for _, raw := range []loose.Value{request, response} {
		if raw == nil {
			continue
		}
		if list := raw.Get(r.wire.list); list.IsArray() {
			if usable := r.usable(list, rec); len(usable) != len(list) {
				request := residue.Object(raw.Except())
				request.Set(r.wire.list, json.RawMessage(usable))
				raw = loose.Value(request.JSON())
			}
		}
		body, err := r.wire.decode(raw)
		if err != nil {
			return records.Bad(err)
		}
		bodies = append(bodies, body)
	}
	c := transcript.Conversation{ID: r.conversationID(bodies[0], native, rec)}
	parent := ""
	if before, ok := r.turns[response.Get("previous_response_id").Text()]; ok {
		c.ID, parent = before.conversation, before.last
	}
	if b := bodies[0]; b.Kind == provider.KindRequest && len(b.Fields) > 0 {
		c.Extra = map[string]any{factRequest: loose.Value(residue.Object(b.Fields).JSON()).Map()}
	}
	if err := r.to.Begin(c); err != nil {
		return err
	}
	for i, body := range bodies {
		last := ""
		if i+1 < len(bodies) && len(bodies[i+1].Alternatives) > 0 {
			last = transcript.HashID(c.ID, "prompt") // the answers must share it
		}
		if err := r.body(c.ID, parent, last, body, rec.Span); err != nil {
			return err
		}
		parent = last
	}
	return nil
}

// usable returns a list of messages without empty ones and those that a session cannot hold,
// and reports what it left out. A message takes two bytes in a file and a thousand times as
// much as an entry.
func (r *reader) usable(list loose.Value, rec records.Record) loose.Value {
	var kept []json.RawMessage
	empty, all := 0, 0
	for m := range list.Items() {
		all++
		switch err := cmp.Or(session.CheckBlocks(m.Get("content")), session.CheckBlocks(m.Get("parts"))); {
		case m.IsObject() && !m.Has("role") && !m.Has("content") && !m.Has("parts") && !m.Has("type"):
			empty++
		case err != nil:
			r.to.Problem(transcript.Problem{Line: rec.Line, Reason: fmt.Sprintf("message %d is only kept as bytes: it has %v", all, err)})
		default:
			kept = append(kept, json.RawMessage(m))
		}
	}
	if empty > 0 {
		r.to.Problem(transcript.Problem{Line: rec.Line, Reason: fmt.Sprintf("messages without a role and content: %d", empty)})
	}
	if len(kept) == all {
		return list
	}
	return loose.Value(residue.List(kept))
}

// unwrap finds the request and the response in a line: of a batch, of a log, or
// bare. native is the name that the line has for it.
func unwrap(v loose.Value) (request, response loose.Value, native string) {
	for _, member := range []string{"custom_id", "key", "id"} {
		if native = v.Get(member).Text(); native != "" {
			break
		}
	}
	switch {
	case v.Get("body").IsObject():
		return v.Get("body"), nil, native
	case v.Get("params").IsObject() && v.Has("custom_id"): // Anthropic's batches
		return v.Get("params"), nil, native
	case v.Get("result", "message").IsObject():
		return nil, v.Get("result", "message"), native
	case v.Get("response", "body").IsObject():
		return nil, v.Get("response", "body"), native
	case v.Get("request").IsObject() && v.Get("response").IsObject():
		return v.Get("request"), v.Get("response"), native
	case v.Get("request").IsObject():
		return v.Get("request"), nil, native
	case v.Get("response").IsObject() && !v.Has("choices"):
		return nil, v.Get("response"), native
	case v.Has("previous_response_id") && v.Has("output"):
		return nil, v, ""
	case v.Has("messages") || v.Has("contents"):
		return v, nil, native
	}
	return v, nil, ""
}

// conversationID names a conversation by its response, or else by its place in the file.
func (r *reader) conversationID(b *provider.Body, native string, rec records.Record) string {
	if b.Kind == provider.KindResponse && b.Entries[0].Message.ResponseID != "" {
		return b.Entries[0].Message.ResponseID
	}
	return records.ID(r.wire.name, r.file, native, rec.N, rec.Value)
}

// body adds the records of a body, the first after the parent, and the last with
// an id if it is given one. Further answers of a response are branches.
func (r *reader) body(conversation, parent, last string, b *provider.Body, span transcript.Span) error {
	from := []transcript.Span{span}
	if b.Kind == provider.KindRequest && b.Model != "" {
		change := session.ModelChange(r.wire.provider, b.Model)
		if err := r.to.Add(transcript.Record{Entry: change, From: from}); err != nil {
			return err
		}
		r.to.Count("model of a request", "model change", 1)
	}
	answers := append([][]session.Entry{b.Entries}, b.Alternatives...)
	if len(answers) > 1 && parent == "" {
		parent = transcript.Root // which they share
	}
	leaf := ""
	for n, entries := range answers {
		for i := range entries {
			record := transcript.Record{ID: recordID(conversation, &entries[i], n, i, len(answers)), Entry: entries[i], From: from}
			if i == 0 {
				record.Parent = parent
			}
			if record.ID == "" && i == len(entries)-1 {
				record.ID = last
			}
			if err := r.add(record); err != nil {
				return err
			}
			if n == 0 {
				leaf = record.ID
			}
			r.remember(conversation, &record)
		}
	}
	if len(answers) > 1 {
		return r.to.Begin(transcript.Conversation{ID: conversation, Leaf: leaf})
	}
	return nil
}

// recordID returns the id of a message of a response. Messages of requests have
// none.
func recordID(conversation string, e *session.Entry, answer, place, answers int) string {
	id := ""
	if e.Message != nil {
		id = e.Message.ResponseID
	}
	if id == "" && answers == 1 {
		return ""
	}
	id = cmp.Or(id, conversation)
	if answer > 0 || place > 0 {
		id += "#" + strconv.Itoa(answer) + "." + strconv.Itoa(place)
	}
	return id
}

func (r *reader) remember(conversation string, record *transcript.Record) {
	if m := record.Entry.Message; m != nil && m.ResponseID != "" {
		r.turns[m.ResponseID] = turn{conversation, record.ID}
	}
}

func (r *reader) add(record transcript.Record) error {
	r.to.Count(record.Entry.Message.Role+" message", "message", 1)
	return r.to.Add(record)
}
