package dataset

import (
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

// builder adds the messages of one conversation. Each has its place as id, so
// that branches can be told where they leave.
type builder struct {
	to   transcript.Sink
	id   string // of the conversation
	span transcript.Span

	n     int      // messages so far
	last  string   // the id of the last one
	calls []string // ids of calls that have no result yet
	made  int      // ids of calls that were made
	chat  openai.ChatDecoder
}

// begin begins the conversation of a record. rest are the members of the record
// besides the messages, which become its facts.
func begin(to transcript.Sink, format string, f *transcript.File, rec records.Record, native string, c transcript.Conversation, rest session.Fields) (*builder, error) {
	c.ID = records.ID(format, f, native, rec.N, rec.Value)
	if len(rest) > 0 {
		facts := make(map[string]any, len(rest))
		for _, field := range rest {
			facts[field.Name] = loose.Value(field.Value).Any()
		}
		c.Extra = map[string]any{factRecord: facts}
	}
	return &builder{to: to, id: c.ID, span: rec.Span, last: transcript.Root}, to.Begin(c)
}

// factRecord is the fact of a conversation that holds the members of its record
// besides the messages.
const factRecord = "record"

// add adds a message after the last one.
func (b *builder) add(m *session.MessageEntry) error {
	return b.addAt(m, time.Time{})
}

func (b *builder) addAt(m *session.MessageEntry, at time.Time) error {
	b.n++
	id := transcript.HashID(b.id, strconv.Itoa(b.n))
	record := transcript.Record{
		ID: id, Parent: b.last, From: []transcript.Span{b.span},
		Entry: session.Entry{Type: session.TypeMessage, Timestamp: at, Message: m},
	}
	b.last = id
	b.to.Count(m.Role+" message", "message", 1)
	return b.to.Add(record)
}

// say adds a message that is text.
func (b *builder) say(role session.MessageRole, text string) error {
	return b.add(&session.MessageEntry{Role: role, Content: []session.Content{session.Text(text)}})
}

// sayAll adds messages that are text, those without any left out.
func (b *builder) sayAll(turns ...turn) error {
	for _, t := range turns {
		if t.text == "" {
			continue
		}
		if err := b.say(t.role, t.text); err != nil {
			return err
		}
	}
	return nil
}

type turn struct {
	role session.MessageRole
	text string
}

// stand says that the conversation stands at a message, though others follow.
func (b *builder) stand(at string) error {
	return b.to.Begin(transcript.Conversation{ID: b.id, Leaf: at})
}

// call returns a call of a tool, which data sets write as an object of name and
// arguments.
func (b *builder) call(v loose.Value) session.Content {
	b.made++
	id := v.Get("id").Text()
	if id == "" {
		id = "call_" + strconv.Itoa(b.made)
	}
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

// image returns a picture, of which data sets have the path or the URL.
func image(url string) session.Content {
	return session.Content{Type: session.ContentTypeImage, Image: &session.ImageContent{Source: provider.SourceAt(url)}}
}
