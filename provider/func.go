package provider

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// Func makes a function a Model: for your own models, and for tests.
type Func struct {
	About Info
	// Answer returns the model's message. An Answer that streams passes each piece of
	// text to tell, which returns an error when the caller has stopped listening. If
	// the message has no content, the pieces are its content. With an error, the
	// message is the part of the answer that there is; it may be nil. An error of this
	// package, such as ErrUnavailable, says whether asking again may help. Default of the
	// message's StopReason: StopToolUse if it has calls, or else StopEndTurn. With a reason
	// that this package does not know, its calls count as cut off: see IsCutOff.
	Answer func(ctx context.Context, r *Request, tell func(text string) error) (*session.MessageEntry, error)
}

// Info returns About.
func (f Func) Info() Info { return f.About }

// Encode returns the request as a JSON object, for the record: it is not sent anywhere.
func (f Func) Encode(r *Request) (*Encoded, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	if r.Memo == nil {
		return written(r)
	}
	return r.Memo.Encode(r, written)
}

// written returns the request that Encode returns, all of it.
func written(r *Request) (*Encoded, error) {
	const usual = 512 // bytes of an entry, so that the body seldom grows
	body := make([]byte, 0, usual*(len(r.Entries)+len(r.Tools)+1))
	body = append(body, `{"entries":[`...)
	for i := range r.Entries {
		if i > 0 {
			body = append(body, ',')
		}
		var err error
		if body, err = r.Entries[i].AppendJSON(body); err != nil {
			return nil, err
		}
	}
	body = append(body, `],"tools":[`...)
	for i := range r.Tools {
		tool := rawjson.Members{{Name: "name", Value: rawjson.Quote(r.Tools[i].Name)}}
		tool.SetText("description", r.Tools[i].Description)
		tool.Put("schema", r.Tools[i].Arguments())
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, tool.JSON()...)
	}
	return &Encoded{Body: append(body, `]}`...)}, nil
}

// Stream calls Answer. If Answer does not call tell, the whole message becomes events
// when it returns.
func (f Func) Stream(ctx context.Context, r *Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := r.Check(); err != nil {
			yield(Event{}, err)
			return
		}
		var told []byte
		stopped := false
		m, err := f.Answer(ctx, r, func(text string) error {
			if stopped || ctx.Err() != nil {
				return context.Cause(ctx)
			}
			told = append(told, text...)
			if stopped = !yield(Event{Type: EventText, Text: text}, nil); stopped {
				return context.Canceled
			}
			return nil
		})
		if stopped {
			return
		}
		f.finish(ctx, m, string(told), err, yield)
	}
}

func (f Func) finish(ctx context.Context, m *session.MessageEntry, told string, cause error, yield func(Event, error) bool) {
	whole := session.MessageEntry{Role: session.RoleAssistant, Provider: f.About.Provider, Model: f.About.Model}
	if m != nil {
		whole = *m
		whole.Role = session.RoleAssistant
	}
	if len(whole.Content) == 0 && told != "" {
		whole.Content = []session.Content{session.Text(told)}
	}
	if cause != nil {
		if whole.StopReason = StopFailed; ctx.Err() != nil {
			whole.StopReason = StopCancelled
		}
		e := Event{}
		if len(whole.Content) > 0 {
			e = Event{Type: EventStop, Response: &Response{Message: &whole, Partial: true}}
		}
		yield(e, f.errorOf(cause))
		return
	}
	if whole.StopReason == "" {
		whole.StopReason = StopEndTurn
		if slices.ContainsFunc(whole.Content, func(c session.Content) bool { return c.ToolUse != nil }) {
			whole.StopReason = StopToolUse
		}
	}
	if told == "" {
		for _, e := range EventsOf(&whole) {
			if !yield(e, nil) {
				return
			}
		}
	}
	yield(Event{Type: EventStop, Response: &Response{Message: &whole}}, nil)
}

// errorOf returns an error of Answer as an *Error, if it is one of those that this package
// names: so it is retried as an error of any other model.
func (f Func) errorOf(err error) error {
	if known := (*Error)(nil); errors.As(err, &known) {
		return err
	}
	for _, kind := range []error{ErrOverflow, ErrLimited, ErrDenied, ErrUnavailable, ErrBroken} {
		if errors.Is(err, kind) {
			known := &Error{Kind: kind, Provider: f.About.Provider}
			if err != kind {
				known.Err = err
			}
			return known
		}
	}
	return err
}

// EventsOf returns the events of a message that came at once, without the EventStop.
func EventsOf(m *session.MessageEntry) []Event {
	var events []Event
	for i, c := range m.Content {
		switch {
		case c.Text != nil && c.Text.Content != "":
			events = append(events, Event{Type: EventText, Block: i, Text: c.Text.Content})
		case c.Thinking != nil && c.Thinking.Content != "":
			events = append(events, Event{Type: EventThinking, Block: i, Text: c.Thinking.Content})
		case c.ToolUse != nil:
			start := &session.ToolUseContent{ID: c.ToolUse.ID, Name: c.ToolUse.Name}
			events = append(events, Event{Type: EventCallStart, Block: i, Call: start}, Event{Type: EventCallEnd, Block: i, Call: c.ToolUse})
		}
	}
	if m.Usage != nil {
		events = append(events, Event{Type: EventUsage, Usage: m.Usage})
	}
	return events
}
