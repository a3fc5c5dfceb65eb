package adk

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/google"
	coppice "github.com/coppice-dev/coppice/session"
)

// The custom entries of this package. Their data, and the parts of an event that a message
// cannot hold, are in the member "adk" of the entry: see record.
const (
	customEvent = "adk.event" // an event without content
	customState = "adk.state" // the whole state at this point
	customDelta = "adk.delta" // a change of shared state
)

// member is the name of the member of an entry, and of a session's header, that has a
// record.
const member = "adk"

// record is this package's data in an entry. An event has Event and perhaps Content, a
// repeated state has State, a change of shared state has Delta or Undo and Marker.
type record struct {
	// Event is an event of ADK without its content.
	Event json.RawMessage `json:"event,omitempty"`
	// Content is the event's content, if the message does not hold it exactly.
	Content json.RawMessage `json:"content,omitempty"`

	// State is the whole state at this point; in a header, the state that the session
	// began with. An empty one counts too, so it is left out only if it is nil.
	State map[string]any `json:"state,omitzero"`
	// Newest is the latest timestamp of the events up to a repeated state.
	Newest time.Time `json:"newest,omitzero"`

	Delta map[string]any `json:"delta,omitempty"`
	// Marker names a change. Undo says that the one with the marker does not count.
	Marker string `json:"marker,omitempty"`
	Undo   bool   `json:"undo,omitempty"`
}

// fields returns a record as a member of an entry.
func (r record) fields() (coppice.Fields, error) {
	raw, err := plainJSON(r)
	return coppice.Fields{{Name: member, Value: raw}}, err
}

// recordOf returns the record among members, or nil.
func recordOf(extra coppice.Fields) (*record, error) {
	for _, f := range extra {
		if f.Name != member {
			continue
		}
		r := &record{}
		if err := json.Unmarshal(f.Value, r); err != nil {
			return nil, fmt.Errorf("its member %q: %w: %w", member, coppice.ErrCorrupt, err)
		}
		return r, nil
	}
	return nil, nil
}

// custom returns a custom entry with a record.
func custom(customType string, r record) (coppice.Entry, error) {
	extra, err := r.fields()
	return coppice.Entry{
		Type: coppice.TypeCustom, Extra: extra,
		Custom: &coppice.CustomEntry{CustomType: customType, Data: map[string]any{}},
	}, err
}

// entryOf returns an event as an entry. See messageOf for before and lost.
func entryOf(event *session.Event, before *genai.Content, lost func(id string) bool) (coppice.Entry, error) {
	bare := *event
	bare.Content = nil
	var r record
	var err error
	if event.Content == nil || len(event.Content.Parts) == 0 {
		bare.Content = event.Content
		if r.Event, err = plainJSON(&bare); err != nil {
			return coppice.Entry{}, err
		}
		e, err := custom(customEvent, r)
		e.Timestamp = timeOf(event)
		return e, err
	}
	e := coppice.Entry{Type: coppice.TypeMessage, Timestamp: timeOf(event)}
	if r.Event, err = plainJSON(&bare); err != nil {
		return coppice.Entry{}, err
	}
	if e.Message, r.Content, err = messageOf(event.Content, before, lost); err != nil {
		return coppice.Entry{}, err
	}
	if e.Message.Role == coppice.RoleAssistant {
		if err := addResponse(e.Message, event); err != nil {
			return coppice.Entry{}, err
		}
	}
	e.Extra, err = r.fields()
	return e, err
}

// timeOf returns the time of an event in a form that an entry can have. For the zero time,
// the session fills in its own.
func timeOf(event *session.Event) time.Time {
	if y := event.Timestamp.Year(); y < 1 || y > 9999 {
		return time.Time{}
	}
	return event.Timestamp.UTC()
}

// addResponse adds the facts of the response to a model's message: who answered, why it
// stopped, what it cost.
func addResponse(m *coppice.MessageEntry, event *session.Event) error {
	m.Model = event.ModelVersion
	if event.UsageMetadata != nil {
		raw, err := json.Marshal(event.UsageMetadata)
		if err != nil {
			return err
		}
		if m.Usage = provider.GeminiUsage(raw); m.Usage != nil {
			m.Usage.Extra = nil // the event has all of it
		}
	}
	if event.FinishReason == "" {
		return nil
	}
	body, err := google.Decode([]byte(fmt.Sprintf(`{"candidates":[{"finishReason":%q}]}`, event.FinishReason)))
	if err == nil && len(body.Entries) > 0 {
		m.StopReason = body.Entries[0].Message.StopReason
	}
	return nil
}

// isEvent reports whether an entry is an event: one of ours, or a message that another
// program appended.
func isEvent(e *coppice.Entry, r *record) bool {
	if r != nil {
		return r.Event != nil
	}
	return e.Message != nil && len(e.Message.Content) > 0 && !e.IsRepeated()
}

// eventOf returns an entry as an event, or nil if it is not one. r is its record.
func eventOf(e *coppice.Entry, r *record) (*session.Event, error) {
	switch {
	case !isEvent(e, r):
		return nil, nil
	case r == nil:
		return foreignEvent(e)
	}
	event := &session.Event{}
	if err := json.Unmarshal(r.Event, event); err != nil {
		return nil, fmt.Errorf("%w: %w", coppice.ErrCorrupt, err)
	}
	switch {
	case r.Content != nil:
		return event, json.Unmarshal(r.Content, &event.Content)
	case e.Message == nil:
		return event, nil
	}
	content, err := contentOf(bareMessage(e.Message))
	event.Content = content
	return event, err
}

// bareEventOf is eventOf for callers who only need the time and the state of an event.
func bareEventOf(e *coppice.Entry, r *record) (*session.Event, error) {
	event := &session.Event{Timestamp: e.Timestamp}
	switch {
	case !isEvent(e, r):
		return nil, nil
	case r == nil:
		return event, nil
	}
	var bare struct {
		Timestamp time.Time `json:"timestamp"`
		Actions   struct {
			StateDelta map[string]any `json:"stateDelta"`
		} `json:"actions"`
	}
	if err := json.Unmarshal(r.Event, &bare); err != nil {
		return nil, fmt.Errorf("%w: %w", coppice.ErrCorrupt, err)
	}
	event.Timestamp, event.Actions.StateDelta = bare.Timestamp, bare.Actions.StateDelta
	return event, nil
}

// bareMessage returns a message as messageOf encoded it, without what addResponse added.
func bareMessage(m *coppice.MessageEntry) *coppice.MessageEntry {
	return &coppice.MessageEntry{Role: m.Role, Content: m.Content, Extra: m.Extra}
}

// foreignEvent turns a message that another program appended into an event.
func foreignEvent(e *coppice.Entry) (*session.Event, error) {
	event := &session.Event{ID: e.ID, InvocationID: e.ID, Timestamp: e.Timestamp, Author: "user"}
	if e.Message.Role == coppice.RoleAssistant {
		event.Author = "model"
		event.ModelVersion = e.Message.Model
	}
	content, err := contentOf(bareMessage(e.Message))
	if err != nil { // a content cannot express it
		content = genai.NewContentFromText(coppice.TextOf(e.Message.Content), genai.RoleUser)
	}
	event.Content = content
	return event, nil
}

// trimmed returns an event without the changes of temporary state, which end with the
// invocation. The event itself does not change.
func trimmed(event *session.Event) *session.Event {
	kept := make(map[string]any, len(event.Actions.StateDelta))
	for k, v := range event.Actions.StateDelta {
		if !strings.HasPrefix(k, session.KeyPrefixTemp) {
			kept[k] = v
		}
	}
	if len(kept) == len(event.Actions.StateDelta) {
		return event
	}
	c := *event
	c.Actions.StateDelta = kept
	return &c
}
