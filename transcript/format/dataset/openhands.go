package dataset

import (
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

const (
	openHands = "openhands"
	// openHandsEvent is the type of the custom entry that keeps an event which the model does
	// not see.
	openHandsEvent = "openhands.event"
)

// readOpenHands reads a run of an evaluation (output.jsonl), or an event of the one
// conversation that is the file.
func readOpenHands(r *reader, rec records.Record) error {
	if history := rec.Get("history"); history.IsArray() {
		b := r.beginRun(rec, rec.Get("instance_id").Text(), rec.Except(r.turns...))
		return newEvents(b).all(history)
	}
	if !isEvent(rec.Value) {
		return bad("it is neither a run nor an event")
	}
	if r.events == nil {
		first := rec
		first.N = 1
		r.events = newEvents(r.beginRun(first, stem(r.file), nil)) // an event is not a fact of the conversation
	}
	r.events.span = rec.Span
	r.events.event(rec.Value)
	return r.events.err
}

func isEvent(v loose.Value) bool { return v.Has("action") || v.Has("observation") }

// eventReader turns events into messages.
type eventReader struct {
	*builder
	callOf map[string]string // the call that an action was, by the event's id
	counts map[string]bool   // the responses whose usage was taken
}

func newEvents(b *builder) *eventReader {
	return &eventReader{builder: b, callOf: make(map[string]string), counts: make(map[string]bool)}
}

// all adds events; in old files they are pairs of an action and its observation.
func (r *eventReader) all(history loose.Value) error {
	for v := range history.Items() {
		if !v.IsArray() {
			r.event(v)
		}
		for event := range v.Items() {
			r.event(event)
		}
	}
	return r.err
}

func (r *eventReader) event(v loose.Value) {
	var m *session.MessageEntry
	switch {
	case v.Has("action"):
		m = r.action(v, v.Get("action").Text())
	case v.Has("observation"):
		m = r.observation(v, v.Get("observation").Text())
	}
	at := v.Get("timestamp").Time(time.UTC)
	if m == nil {
		r.to.Count("other event", "remark", 1)
		r.put(transcript.Record{Entry: session.Entry{
			Type: session.TypeCustom, Timestamp: at, Custom: &session.CustomEntry{CustomType: openHandsEvent, Data: v.Map()},
		}})
		return
	}
	rest := residue.Object(v.Except("timestamp", "content", "message", "tool_call_metadata"))
	m.Extra = residue.Keep(m.Extra, openHands, rest.JSON())
	r.addAt(m, at)
}

// action returns an action as a message, or nil if it has neither text nor a call.
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
	return r.callAs(v, action, args)
}

// callAs returns an action as the call of a tool.
func (r *eventReader) callAs(v loose.Value, action string, args loose.Value) *session.MessageEntry {
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
	r.callOf[v.Get("id").Name()] = id
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
			if v := loose.Try([]byte(call.Get("function", "arguments").Text())); v.IsObject() {
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

// observation returns the outcome of an action as a tool result, or nil if nothing was
// called.
func (r *eventReader) observation(v loose.Value, kind string) *session.MessageEntry {
	id := v.Get("tool_call_metadata", "tool_call_id").Text()
	if id == "" {
		id = r.callOf[v.Get("cause").Name()]
	}
	if id == "" {
		return nil
	}
	result := session.ToolResult(id, v.Get("content").Text(), kind == "error")
	for _, name := range []string{"screenshot", "set_of_marks"} {
		url, parts := v.Get("extras", name).Text(), &result.ToolResult.Parts
		if url != "" && *parts == nil {
			*parts = text(v.Get("content"))
		}
		if url != "" {
			*parts = append(*parts, image(url))
		}
	}
	return &session.MessageEntry{Role: session.RoleTool, Content: []session.Content{result}}
}

func finalWords(args loose.Value) string {
	for _, name := range []string{"final_thought", "message", "thought"} {
		if text := args.Get(name).Text(); text != "" {
			return text
		}
	}
	return ""
}
