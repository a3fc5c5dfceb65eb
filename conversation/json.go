package conversation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// messageJSON is a message in JSON.
type messageJSON struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Category   category        `json:"category"`
	Timestamp  clock           `json:"timestamp"`
	Metadata   map[string]any  `json:"metadata"`
	Tokens     *int            `json:"tokens,omitempty"`
	Model      string          `json:"model,omitempty"`
	Provider   string          `json:"provider,omitempty"`
	StopReason string          `json:"stop_reason,omitempty"`
	ResponseID string          `json:"response_id,omitempty"`
	Usage      *session.Usage  `json:"usage,omitempty"`
}

// sessionJSON is a session in JSON.
type sessionJSON struct {
	ID         string         `json:"id"`
	CreatedAt  clock          `json:"created_at"`
	LastActive clock          `json:"last_active"`
	Metadata   map[string]any `json:"metadata"`
	Messages   []Message      `json:"messages"`
}

// The members that messageJSON and sessionJSON know.
var (
	messageMembers = []string{
		"id", "role", "content", "category", "timestamp", "metadata", "tokens",
		"model", "provider", "stop_reason", "response_id", "usage",
	}
	sessionMembers = []string{"id", "created_at", "last_active", "metadata", "messages"}
)

// clock is a time in JSON: written in RFC 3339; also read without a zone, as local time.
type clock time.Time

func (c clock) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Time(c).UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
}

func (c *clock) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t, err = time.ParseInLocation("2006-01-02T15:04:05.999999999", text, time.Local)
	}
	if err != nil {
		return fmt.Errorf("time %.40q: neither RFC 3339 nor local time without a zone", text)
	}
	*c = clock(t)
	return nil
}

// category is a Category in JSON: written as a name, also read as a number. An unknown one
// counts as none.
type category Category

func (c category) MarshalJSON() ([]byte, error) { return json.Marshal(Category(c).String()) }

func (c *category) UnmarshalJSON(raw []byte) error {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		if known, err := ParseCategory(name); err == nil {
			*c = category(known)
		}
		return nil
	}
	var number int
	if json.Unmarshal(raw, &number) == nil && Category(number) >= CategorySystem && Category(number) <= CategorySystemOutput {
		*c = category(number)
	}
	return nil
}

// MarshalJSON writes the message. Content that is plain text is a string.
func (m Message) MarshalJSON() ([]byte, error) {
	var content any = m.Content
	if isPlainText(m.Content) {
		content = m.Content[0].Text.Content
	} else if m.Content == nil {
		content = []session.Content{}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	metadata := m.Metadata
	if metadata == nil {
		metadata = map[string]any{}
	}
	return withMembers(messageJSON{
		ID: m.ID, Role: m.Role, Content: raw, Category: category(m.Category), Timestamp: clock(m.Timestamp),
		Metadata: metadata, Tokens: m.Tokens, Model: m.Model, Provider: m.Provider,
		StopReason: m.StopReason, ResponseID: m.ResponseID, Usage: m.Usage,
	}, m.Extra)
}

// UnmarshalJSON reads and validates a message. Members that are missing get
// their defaults; unknown ones are kept.
func (m *Message) UnmarshalJSON(raw []byte) error {
	var j messageJSON
	extra, err := decodeMembers(raw, &j, messageMembers)
	if err != nil {
		return fmt.Errorf("message: %w: %w", session.ErrInvalid, err)
	}
	var content []session.Content
	if j.Content != nil {
		if content, err = parseJSON(j.Content); err != nil {
			return fmt.Errorf("message %.80q: %w", j.ID, err)
		}
	}
	read := Message{
		ID: j.ID, Role: j.Role, Content: content, Timestamp: time.Time(j.Timestamp), Metadata: j.Metadata, Tokens: j.Tokens, Category: Category(j.Category),
		Model: j.Model, Provider: j.Provider, StopReason: j.StopReason, ResponseID: j.ResponseID, Usage: j.Usage,
		Extra: extra,
	}
	if j.Tokens != nil && *j.Tokens == 0 {
		read.Tokens = session.CountedTokens(*j.Tokens)
	}
	read = read.withDefaults(time.Now())
	if err := read.Validate(); err != nil {
		return err
	}
	*m = read
	return nil
}

// MarshalJSON writes the session with all its messages.
func (s Session) MarshalJSON() ([]byte, error) {
	messages, metadata := s.Messages, s.Metadata
	if messages == nil {
		messages = []Message{}
	}
	if metadata == nil {
		metadata = map[string]any{}
	}
	return withMembers(sessionJSON{
		ID: s.ID, CreatedAt: clock(s.CreatedAt), LastActive: clock(s.LastActive), Metadata: metadata, Messages: messages,
	}, s.Extra)
}

// UnmarshalJSON reads and validates a session; unknown members are kept.
func (s *Session) UnmarshalJSON(raw []byte) error {
	var j sessionJSON
	extra, err := decodeMembers(raw, &j, sessionMembers)
	if err != nil {
		return fmt.Errorf("session: %w: %w", session.ErrInvalid, err)
	}
	read := Session{
		ID: j.ID, CreatedAt: time.Time(j.CreatedAt), LastActive: time.Time(j.LastActive), Metadata: j.Metadata,
		Messages: j.Messages, Extra: extra,
	}
	if err := read.Validate(); err != nil {
		return err
	}
	*s = read
	return nil
}

// decodeMembers reads the named members of an object into a struct and returns the others.
// encoding/json alone ignores case: it would take "Messages" for "messages", which would then
// be written twice.
func decodeMembers(raw []byte, into any, named []string) (session.Fields, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	known := make(map[string]json.RawMessage, len(named))
	for _, name := range named {
		if value, ok := all[name]; ok {
			known[name] = value
			delete(all, name)
		}
	}
	exact, err := json.Marshal(known)
	if err != nil {
		return nil, err
	}
	return fieldsOf(all), decode(exact, into)
}

// decode is json.Unmarshal that keeps numbers as written: as a float64, a chat id of 18
// digits would become another chat's.
func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// withMembers encodes a struct with the given members after its own.
func withMembers(v any, extra session.Fields) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil || len(extra) == 0 {
		return raw, err
	}
	raw = raw[:len(raw)-1] // the closing brace
	for _, f := range extra {
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, err
		}
		raw = append(append(append(append(raw, ','), name...), ':'), f.Value...)
	}
	return append(raw, '}'), nil
}
