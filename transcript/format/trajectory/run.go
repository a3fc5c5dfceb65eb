package trajectory

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

// factRun is the fact of a conversation that holds what is said of the run: the
// task, the outcome, the cost.
const factRun = "run"

// run adds the messages of one run of an agent.
type run struct {
	to     transcript.Sink
	format string
	id     string // of the conversation
	span   transcript.Span
	chat   openai.ChatDecoder
	n      int // messages so far
}

// begin begins the conversation of a record. The members named are its messages;
// all others are facts.
func begin(to transcript.Sink, format string, f *transcript.File, rec records.Record, native string, messages ...string) (*run, error) {
	c := transcript.Conversation{ID: records.ID(format, f, native, rec.N, rec.Value), Title: native}
	if format == tauBench { // "task 7 trial 2" tells nobody what was wanted
		c.Title = ""
	}
	facts := make(map[string]any)
	for _, field := range rec.Except(messages...) {
		facts[field.Name] = loose.Value(field.Value).Any()
	}
	if len(facts) > 0 {
		c.Extra = map[string]any{factRun: facts}
	}
	return &run{to: to, format: format, id: c.ID, span: rec.Span}, to.Begin(c)
}

// stem returns the name of a file without what follows the first dot: runs are
// named after their tasks.
func stem(f *transcript.File) string {
	name, _, _ := strings.Cut(filepath.Base(f.Path), ".")
	return name
}

// add adds a message in its place.
func (r *run) add(m *session.MessageEntry, at time.Time) error {
	r.n++
	r.to.Count(m.Role+" message", "message", 1)
	return r.to.Add(transcript.Record{
		ID: transcript.HashID(r.id, strconv.Itoa(r.n)), From: []transcript.Span{r.span},
		Entry: session.Entry{Type: session.TypeMessage, Timestamp: at, Message: m},
	})
}

// openai adds a message that is shaped as OpenAI's are. The members named have no
// place in such a message, and are kept beside it.
func (r *run) openai(v loose.Value, beside ...string) error {
	var message, rest residue.Object
	for name, value := range v.Members() {
		if slices.Contains(beside, name) {
			rest.Set(name, value.Raw())
		} else {
			message.Set(name, value.Raw())
		}
	}
	e, err := r.chat.Message(message.JSON())
	if err != nil || !v.IsObject() {
		r.to.Problem(transcript.Problem{Pos: r.span.Pos, Reason: "a message is not an object"})
		return nil
	}
	if len(rest) > 0 {
		e.Message.Extra = residue.Keep(e.Message.Extra, r.format, rest.JSON())
	}
	response := v.Get("extra", "response")
	e.Message.ResponseID = response.Get("id").Text()
	e.Message.Model = response.Get("model").Text()
	e.Message.Usage = provider.OpenAIChatUsage(response.Get("usage"))
	return r.add(e.Message, v.Get("extra", "timestamp").Time(time.UTC))
}

// has reports whether one of the paths is there, in lines or in an array.
func has(s *shape.Shape, paths ...string) bool {
	for _, path := range paths {
		if s.Has(path, "[]."+path) {
			return true
		}
	}
	return false
}
