package trajectory

import (
	"context"
	"errors"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

const (
	openHands = "openhands"
	// openHandsEvent is the type of the custom entry that keeps an event which
	// the model is not told of.
	openHandsEvent = "openhands.event"
)

// OpenHands returns the format of OpenHands: the runs of an evaluation
// (output.jsonl), and the events of one conversation.
func OpenHands() *transcript.Format {
	return &transcript.Format{
		Name: openHands, Title: "OpenHands",
		Detect: func(f *transcript.File) bool {
			s := shape.OfFile(f)
			event := func(at string) bool {
				return s.Has(at+"source") && (s.Has(at+"action") && s.Has(at+"args") || s.Has(at+"observation"))
			}
			return event("history[].") || event("history[][].") || event("[].history[].") || event("[].history[][].") ||
				event("[].") || event("")
		},
		Read: readOpenHands,
	}
}

func readOpenHands(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	var events *eventReader // of a file that is events
	return records.Each(ctx, f, to, func(rec records.Record) error {
		if history := rec.Get("history"); history.IsArray() {
			r, err := begin(to, openHands, f, rec, rec.Get("instance_id").Text(), "history")
			if err != nil {
				return err
			}
			return newEvents(r).all(history)
		}
		if !isEvent(rec.Value) {
			return records.Bad(errors.New("it is neither a run nor an event"))
		}
		if events == nil {
			first := rec
			first.N = 1
			r, err := begin(to, openHands, f, first, stem(f), names(rec.Value)...)
			if err != nil {
				return err
			}
			events = newEvents(r)
		}
		events.run.span = rec.Span
		return events.event(rec.Value)
	})
}

func isEvent(v loose.Value) bool { return v.Has("action") || v.Has("observation") }

// names returns the names of all members: an event is no fact of a conversation.
func names(v loose.Value) []string {
	var list []string
	for name := range v.Members() {
		list = append(list, name)
	}
	return list
}

// eventReader makes messages of events.
type eventReader struct {
	run    *run
	calls  map[string]string // the call that an action was, by the event's id
	counts map[string]bool   // the responses whose usage was taken
}

func newEvents(r *run) *eventReader {
	return &eventReader{run: r, calls: make(map[string]string), counts: make(map[string]bool)}
}

// all adds events; in old files they are pairs of an action and what came of it.
func (r *eventReader) all(history loose.Value) error {
	for v := range history.Items() {
		if !v.IsArray() {
			if err := r.event(v); err != nil {
				return err
			}
			continue
		}
		for event := range v.Items() {
			if err := r.event(event); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *eventReader) event(v loose.Value) error {
	var m *session.MessageEntry
	switch {
	case v.Has("action"):
		m = r.action(v, v.Get("action").Text())
	case v.Has("observation"):
		m = r.observation(v, v.Get("observation").Text())
	}
	at := v.Get("timestamp").Time(time.UTC)
	if m == nil {
		r.run.to.Count("other event", "remark", 1)
		return r.run.to.Add(transcript.Record{From: []transcript.Span{r.run.span}, Entry: session.Entry{
			Type: session.TypeCustom, Timestamp: at, Custom: &session.CustomEntry{CustomType: openHandsEvent, Data: v.Map()},
		}})
	}
	rest := residue.Object(v.Except("timestamp", "content", "message", "tool_call_metadata"))
	m.Extra = residue.Keep(m.Extra, openHands, rest.JSON())
	return r.run.add(m, at)
}

// action returns what somebody did as a message, or nil if it is nothing that
// was said or called.
func (r *eventReader) action(v loose.Value, action string) *session.MessageEntry {
	args := v.Get("args")
	model := v.Get("source").Text() == "agent"
	switch action {
	case "system":
		return message(session.RoleSystem, args.Get("content").Text())
	case "message":
		m := message(session.RoleUser, args.Get("content").Text())
		if model {
			m.Role = session.RoleAssistant
		}
		for url := range args.Get("image_urls").Items() {
			m.Content = append(m.Content, image(url.Text()))
		}
		r.response(m, v)
		return m
	case "finish":
		m := message(session.RoleAssistant, finalWords(args))
		r.response(m, v)
		return m
	case "null", "change_agent_state", "recall", "condensation":
		return nil
	}
	if !model {
		return nil
	}
	return r.call(v, action, args)
}

// call returns an action as the call of a tool.
func (r *eventReader) call(v loose.Value, action string, args loose.Value) *session.MessageEntry {
	m := &session.MessageEntry{Role: session.RoleAssistant}
	if thought := args.Get("thought").Text(); thought != "" {
		m.Content = append(m.Content, session.Text(thought))
	}
	id, name, input := "event-"+v.Get("id").Name(), action, args
	if meta := v.Get("tool_call_metadata"); meta.Has("tool_call_id") {
		id, name = meta.Get("tool_call_id").Text(), meta.Get("function_name").Text()
		if asked := arguments(meta, id); asked != nil {
			input = asked
		}
	}
	r.calls[v.Get("id").Name()] = id
	m.Content = append(m.Content, session.ToolUseJSON(id, name, records.OneLine(input)))
	r.response(m, v)
	return m
}

// arguments returns the arguments of a call as the model gave them, or nil.
func arguments(meta loose.Value, id string) loose.Value {
	for choice := range meta.Get("model_response", "choices").Items() {
		for call := range choice.Get("message", "tool_calls").Items() {
			if call.Get("id").Text() != id {
				continue
			}
			if v, err := loose.Parse([]byte(call.Get("function", "arguments").Text())); err == nil && v.IsObject() {
				return v
			}
		}
	}
	return nil
}

// response says which response a message is from. Its usage counts once, however
// many calls it made.
func (r *eventReader) response(m *session.MessageEntry, v loose.Value) {
	response := v.Get("tool_call_metadata", "model_response")
	m.ResponseID = response.Get("id").Text()
	m.Model = response.Get("model").Text()
	if m.ResponseID != "" && !r.counts[m.ResponseID] {
		m.Usage = provider.OpenAIChatUsage(response.Get("usage"))
		r.counts[m.ResponseID] = true
	}
}

// observation returns what came of an action as a tool's answer, or nil if
// nothing was called.
func (r *eventReader) observation(v loose.Value, kind string) *session.MessageEntry {
	id := v.Get("tool_call_metadata", "tool_call_id").Text()
	if id == "" {
		id = r.calls[v.Get("cause").Name()]
	}
	if id == "" {
		return nil
	}
	result := session.ToolResult(id, v.Get("content").Text(), kind == "error")
	var pictures []session.Content
	for _, url := range []string{v.Get("extras", "screenshot").Text(), v.Get("extras", "set_of_marks").Text()} {
		if url != "" {
			pictures = append(pictures, image(url))
		}
	}
	if pictures != nil {
		result.ToolResult.Parts = append([]session.Content{session.Text(result.ToolResult.Content)}, pictures...)
	}
	return &session.MessageEntry{Role: session.RoleTool, Content: []session.Content{result}}
}

func message(role session.MessageRole, text string) *session.MessageEntry {
	return &session.MessageEntry{Role: role, Content: []session.Content{session.Text(text)}}
}

func image(url string) session.Content {
	return session.Content{Type: session.ContentTypeImage, Image: &session.ImageContent{Source: provider.SourceAt(url)}}
}

func finalWords(args loose.Value) string {
	for _, name := range []string{"final_thought", "message", "thought"} {
		if text := args.Get(name).Text(); text != "" {
			return text
		}
	}
	return ""
}
