package conversation

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/internal/boundary"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// Message is what a human, a model, a tool or the system said. It is a value: you own what you
// are given, and changing it does not change anything else.
type Message struct {
	ID        string
	Role      string
	Content   []session.Content
	Category  Category
	Timestamp time.Time
	Metadata  map[string]any
	Tokens    *int // nil means unknown, not zero

	// What is known about a model's reply.
	Model, Provider, StopReason, ResponseID string
	Usage                                   *session.Usage

	// Extra are the members of a stored message that this version does not know.
	Extra session.Fields
}

// NewMessage returns a message with an id and the present time. content is anything that
// ParseContent accepts; if category is 0, Categorise chooses one.
func NewMessage(role string, content any, category Category) (Message, error) {
	blocks, err := ParseContent(content)
	if err != nil {
		return Message{}, err
	}
	m := Message{Role: role, Content: blocks, Category: category}.withDefaults(time.Now())
	return m, m.Validate()
}

// newID returns an id that sorts by time and is unique across processes.
func newID() string { return session.NewID() }

// withDefaults fills in what was left empty.
func (m Message) withDefaults(now time.Time) Message {
	if m.ID == "" {
		m.ID = newID()
	}
	if m.Timestamp.IsZero() {
		m.Timestamp = now.UTC()
	}
	if m.Category == 0 {
		m.Category = Categorise(m.Role, m.Content, "")
	}
	return m
}

// Validate returns what is wrong with a message, or nil. The error matches
// session.ErrInvalid.
func (m Message) Validate() error {
	var faults []error
	if m.ID == "" {
		faults = append(faults, errors.New("it has no id"))
	}
	if m.Role == "" {
		faults = append(faults, errors.New("it has no role"))
	}
	if m.Category < CategorySystem || m.Category > CategorySystemOutput {
		faults = append(faults, fmt.Errorf("unknown category %d", int(m.Category)))
	}
	if m.Timestamp.IsZero() {
		faults = append(faults, errors.New("it has no time"))
	}
	if m.Tokens != nil && *m.Tokens < 0 {
		faults = append(faults, fmt.Errorf("it has %d tokens", *m.Tokens))
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("message %.80q: %w: %w", m.ID, session.ErrInvalid, errors.Join(faults...))
}

// Clone returns a copy that shares nothing changeable with the message.
func (m Message) Clone() Message { return fromEntry(m.entry().Clone()) }

// Text returns the message's text, without images, calls and the like.
func (m Message) Text() string { return session.TextOf(m.Content) }

// unanswered returns an error if the message has calls that no tool will answer.
func (m Message) unanswered() error {
	for i := range m.Content {
		if call := m.Content[i].ToolUse; call != nil {
			return fmt.Errorf("the model called %q, and there are no tools: set ManagerOptions.Agent, or add the result yourself: %w", call.Name, session.ErrInvalid)
		}
	}
	return nil
}

// entry returns the message as it is stored in a log.
func (m Message) entry() session.Entry {
	return session.Entry{Type: session.TypeMessage, ID: m.ID, Timestamp: m.Timestamp, Message: &session.MessageEntry{
		Role: m.Role, Content: m.Content, Category: m.Category.String(), Tokens: m.Tokens, Metadata: m.Metadata,
		Model: m.Model, Provider: m.Provider, StopReason: m.StopReason, ResponseID: m.ResponseID, Usage: m.Usage,
		Extra: m.Extra,
	}}
}

// fromEntry returns the message of an entry, which must have one. It shares the entry's
// content.
func fromEntry(e session.Entry) Message {
	stored := e.Message
	m := Message{
		ID: e.ID, Role: stored.Role, Content: stored.Content, Timestamp: e.Timestamp, Metadata: stored.Metadata, Tokens: stored.Tokens,
		Model: stored.Model, Provider: stored.Provider, StopReason: stored.StopReason, ResponseID: stored.ResponseID, Usage: stored.Usage,
		Extra: stored.Extra,
	}
	m.Category = window.CategoryOf(&e)
	return m
}

// EstimateTokens returns an estimate for when there is nothing better. It is the most
// cautious of window's estimates.
func (m Message) EstimateTokens() int {
	e := m.entry()
	return boundary.Estimate(&e)
}

// tokens returns the message's tokens, or an estimate if they were not counted.
func (m Message) tokens() int {
	if m.Tokens != nil {
		return *m.Tokens
	}
	return m.EstimateTokens()
}

// Dict returns the message as a map that JSON can write: the inverse of
// MessageFromDict.
func (m Message) Dict() (map[string]any, error) { return dict(m) }

// MessageFromDict reads and validates what Dict wrote.
func MessageFromDict(d map[string]any) (Message, error) {
	var m Message
	err := fromDict(d, &m)
	return m, err
}

func dict(v json.Marshaler) (map[string]any, error) {
	raw, err := v.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var d map[string]any
	err = decode(raw, &d)
	return d, err
}

func fromDict(d map[string]any, into json.Unmarshaler) error {
	raw, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("%w: %w", session.ErrInvalid, err)
	}
	return into.UnmarshalJSON(raw)
}
