package dataset

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// builder adds the messages of one conversation. Messages get their ids from their places.
// After an error it adds nothing more.
type builder struct {
	*reader
	id   string // of the conversation
	span transcript.Span
	err  error

	n     int      // messages so far
	last  string   // the id of the last one, which the next follows; "" in runs
	calls []string // ids of calls without a result
	made  int      // how many ids of calls were made up
	chat  openai.ChatDecoder
}

// factRecord and factRun are the facts of a conversation that hold the members of its
// record besides the messages.
const (
	factRecord = "record"
	factRun    = "run"
)

// begin begins the conversation of a record; native is its name in the file, or "".
func (r *reader) begin(rec records.Record, native string) *builder {
	return r.beginAs(rec, native, transcript.Conversation{}, rec.Except(r.turns...))
}

func (r *reader) beginAs(rec records.Record, native string, c transcript.Conversation, rest session.Fields) *builder {
	c.ID = records.ID(r.name, r.file, native, rec.N, rec.Value)
	b := &builder{reader: r, id: c.ID, span: rec.Span, last: transcript.Root}
	about := factRecord
	if r.run {
		b.last, about = "", factRun
	}
	if len(rest) > 0 {
		c.Extra = map[string]any{about: loose.Value(residue.Object(rest).JSON()).Map()}
	}
	b.err = r.to.Begin(c)
	return b
}

// add adds a message after the last one.
func (b *builder) add(m *session.MessageEntry) { b.addAt(m, time.Time{}) }

func (b *builder) addAt(m *session.MessageEntry, at time.Time) {
	b.n++
	id := transcript.HashID(b.id, strconv.Itoa(b.n))
	b.put(transcript.Record{
		ID: id, Parent: b.last,
		Entry: session.Entry{Type: session.TypeMessage, Timestamp: at, Message: m},
	})
	if !b.run {
		b.last = id
	}
}

func (b *builder) put(rec transcript.Record) {
	if b.err != nil {
		return
	}
	if m := rec.Entry.Message; m != nil {
		b.to.Count(m.Role+" message", "message", 1)
	}
	rec.From = []transcript.Span{b.span}
	b.err = b.to.Add(rec)
}

type turn struct{ role, text string }

// addText adds a message that is text.
func (b *builder) addText(role, text string) { b.add(message(role, text)) }

// addTexts adds messages that are text, except those without any.
func (b *builder) addTexts(turns ...turn) {
	for _, t := range turns {
		if t.text != "" {
			b.addText(t.role, t.text)
		}
	}
}

// setLeaf makes a message the leaf of the conversation although others follow it.
func (b *builder) setLeaf(at string) error {
	if b.err == nil {
		b.err = b.to.Begin(transcript.Conversation{ID: b.id, Leaf: at})
	}
	return b.err
}

// openai reads a message in OpenAI's form.
func (b *builder) openai(v loose.Value) *session.MessageEntry {
	e, err := b.chat.Message(v)
	if err != nil {
		return message(session.RoleUser, string(v))
	}
	return e.Message
}

// turn adds a message of a run, in OpenAI's form. The named members are not part of that
// form, and are kept beside it.
func (b *builder) turn(v loose.Value, beside ...string) {
	var said, rest residue.Object
	for name, value := range v.Members() {
		if slices.Contains(beside, name) {
			rest.Set(name, value.Raw())
		} else {
			said.Set(name, value.Raw())
		}
	}
	e, err := b.chat.Message(said.JSON())
	if err != nil || !v.IsObject() {
		b.to.Problem(transcript.Problem{Pos: b.span.Pos, Reason: "a message is not an object"})
		return
	}
	m := e.Message
	if len(rest) > 0 {
		m.Extra = residue.Keep(m.Extra, b.name, rest.JSON())
	}
	response := v.Get("extra", "response")
	m.ResponseID = response.Get("id").Text()
	m.Model = response.Get("model").Text()
	m.Usage = provider.OpenAIChatUsage(response.Get("usage"))
	b.addAt(m, v.Get("extra", "timestamp").Time(time.UTC))
}

// call returns a call of a tool, which data sets write as an object of name and
// arguments.
func (b *builder) call(v loose.Value) session.Content {
	b.made++
	id := cmp.Or(v.Get("id").Text(), "call_"+strconv.Itoa(b.made))
	b.calls = append(b.calls, id)
	input := v.Get("arguments")
	if text := input.Text(); text != "" { // written as text
		input = loose.Value(text)
	}
	return session.ToolUseJSON(id, v.Get("name").Text(), records.OneLine(input))
}

// result returns a tool's answer, to the first call that has none.
func (b *builder) result(text string) session.Content {
	id := "call_" + strconv.Itoa(b.made+1)
	if len(b.calls) > 0 {
		id, b.calls = b.calls[0], b.calls[1:]
	} else {
		b.made++
	}
	return session.ToolResult(id, text, false)
}

// besides keeps the members of a message that have no place in an entry.
func besides(format string, v loose.Value, known ...string) session.Fields {
	rest := v.Except(known...)
	if len(rest) == 0 {
		return nil
	}
	return residue.Keep(nil, format, residue.Object(rest).JSON())
}

func message(role, text string) *session.MessageEntry {
	return &session.MessageEntry{Role: role, Content: []session.Content{session.Text(text)}}
}

func text(v loose.Value) []session.Content { return []session.Content{session.Text(v.Text())} }

// image returns a picture. Data sets give its path or its URL.
func image(url string) session.Content { return session.ImageFrom(provider.SourceAt(url)) }

func list(v loose.Value) []loose.Value { return slices.Collect(v.Items()) }
