package keyed

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// Session is a copy of a conversation at one moment. Changing it does not change anything
// else.
type Session struct {
	Key      string    `json:"key"`
	Messages []Message `json:"messages"`
	Summary  string    `json:"summary,omitempty"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
}

// Message is one message of a conversation.
type Message struct {
	Role    string // "user", "assistant", "system" or "tool"
	Content string
	// ReasoningContent is what a model thought before it answered.
	ReasoningContent string
	// Model is the model that answered, if known.
	Model string
	// ToolCalls are the calls that an assistant's message makes.
	ToolCalls []ToolCall
	// ToolCallID names the call that the message answers. Such a message has the role
	// "tool".
	ToolCallID string

	// Extra are other members of the message's JSON. They are kept as they are.
	Extra session.Fields
}

// ToolCall is a call of a tool.
type ToolCall struct {
	ID   string
	Name string
	// Arguments are JSON values: strings, booleans, maps, slices, and numbers. A number is
	// a float64 unless that would change it; the id of a chat, for example, may be a
	// json.Number.
	Arguments map[string]interface{}

	// Extra are other members of the call's JSON. They are kept as they are.
	Extra session.Fields
}

// MarshalJSON writes the message as picoclaw's files have it.
func (m Message) MarshalJSON() ([]byte, error) {
	return writeObject(m.Extra,
		member{"role", m.Role, true},
		member{"content", m.Content, true},
		member{"reasoning_content", m.ReasoningContent, m.ReasoningContent != ""},
		member{"model_name", m.Model, m.Model != ""},
		member{"tool_calls", m.ToolCalls, len(m.ToolCalls) > 0},
		member{"tool_call_id", m.ToolCallID, m.ToolCallID != ""})
}

// UnmarshalJSON reads a message. A member of an unexpected type goes to Extra, like those
// that we do not know.
func (m *Message) UnmarshalJSON(data []byte) error {
	members, err := readObject("message", data)
	if err != nil {
		return err
	}
	*m = Message{}
	decodeMember(&members, "role", &m.Role)
	decodeMember(&members, "content", &m.Content)
	decodeMember(&members, "reasoning_content", &m.ReasoningContent)
	decodeMember(&members, "model_name", &m.Model)
	decodeMember(&members, "tool_calls", &m.ToolCalls)
	decodeMember(&members, "tool_call_id", &m.ToolCallID)
	m.Extra = sorted(members)
	return nil
}

// MarshalJSON writes the call.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	return writeObject(c.Extra,
		member{"id", c.ID, true},
		member{"name", c.Name, true},
		member{"arguments", c.Arguments, true})
}

// UnmarshalJSON reads a call in either of the two shapes in use: with name and arguments in
// it, or with a function that has them and its arguments as text.
func (c *ToolCall) UnmarshalJSON(data []byte) error {
	members, err := readObject("tool call", data)
	if err != nil {
		return err
	}
	*c = ToolCall{}
	decodeMember(&members, "id", &c.ID)
	if inner, ok := members.TakeObject("function"); ok {
		if members.Str("type") == "function" {
			members.Remove("type") // it carries no information
		}
		for _, f := range inner {
			if !members.Has(f.Name) {
				members.Put(f.Name, f.Value)
			}
		}
	}
	decodeMember(&members, "name", &c.Name)
	c.Arguments = decodeArguments(&members)
	c.Extra = sorted(members)
	return nil
}

// readObject reads the members of an object. The copy shares nothing with data.
func readObject(what string, data []byte) (rawjson.Members, error) {
	members, err := rawjson.ParseMembers(slices.Clone(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return members, nil
}

// decodeMember reads a member if it has the right type, and otherwise leaves it.
func decodeMember[T any](o *rawjson.Members, name string, into *T) {
	var value T
	if raw := o.Get(name); raw != nil && json.Unmarshal(raw, &value) == nil {
		*into = value
		o.Remove(name)
	}
}

// decodeArguments reads the arguments of a call: an object, or the text of one.
func decodeArguments(o *rawjson.Members) map[string]any {
	raw := o.Get("arguments")
	if text, ok := rawjson.String(raw); ok {
		raw = json.RawMessage(text)
	}
	if rawjson.IsNull(raw) {
		o.Remove("arguments")
		return nil
	}
	arguments, err := rawjson.Map(raw)
	if err != nil {
		return nil // it stays in Extra, whatever it is
	}
	o.Remove("arguments")
	return arguments
}

// sorted returns members as unknown fields, by name.
func sorted(o rawjson.Members) session.Fields {
	slices.SortFunc(o, func(a, b rawjson.Member) int { return strings.Compare(a.Name, b.Name) })
	if len(o) == 0 {
		return nil
	}
	return session.Fields(o)
}

// member is a member of a JSON object that we know.
type member struct {
	name  string
	value any
	write bool // whether it is there at all
}

// writeObject writes members, then those that we do not know. A known member that had an
// unexpected type is written as it was.
func writeObject(extra session.Fields, members ...member) ([]byte, error) {
	var o rawjson.Members
	for _, m := range members {
		if !m.write || rawjson.Members(extra).Has(m.name) {
			continue
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		o.Put(m.name, value)
	}
	for _, f := range extra {
		if !rawjson.Valid(f.Value) {
			return nil, fmt.Errorf("%q: %.40q is not JSON", f.Name, f.Value)
		}
	}
	return append(o, extra...).JSON(), nil
}

// clone returns a copy that shares nothing that can be changed.
func (m Message) clone() Message {
	m.Extra = cloneFields(m.Extra)
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		c.Extra = cloneFields(c.Extra)
		if c.Arguments != nil {
			c.Arguments = cloneValue(c.Arguments).(map[string]any)
		}
	}
	return m
}

func cloneFields(fields session.Fields) session.Fields {
	fields = slices.Clone(fields)
	for i := range fields {
		fields[i].Value = slices.Clone(fields[i].Value)
	}
	return fields
}

// cloneValue copies a value of the kinds that encoding/json makes.
func cloneValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for name, value := range v {
			c[name] = cloneValue(value)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i := range v {
			c[i] = cloneValue(v[i])
		}
		return c
	}
	return v
}

// normal returns the message as it will be read back: with valid UTF-8, and with arguments of
// the types that JSON has. The copy shares nothing with m.
func (m Message) normal() (Message, error) {
	m = m.clone() // what json cannot copy, such as a []string, is replaced below
	for _, s := range []*string{&m.Role, &m.Content, &m.ReasoningContent, &m.Model, &m.ToolCallID} {
		*s = strings.ToValidUTF8(*s, "\uFFFD")
	}
	if len(m.ToolCalls) == 0 {
		m.ToolCalls = nil
	}
	if m.ToolCallID != "" {
		m.Role = session.RoleTool
	}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		c.ID, c.Name = strings.ToValidUTF8(c.ID, "\uFFFD"), strings.ToValidUTF8(c.Name, "\uFFFD")
		if c.Arguments == nil {
			continue
		}
		text, err := rawjson.AppendAny(nil, c.Arguments)
		if err == nil {
			c.Arguments, err = rawjson.Map(text)
		}
		if err != nil {
			return m, invalidMessage(fmt.Errorf("arguments of tool call %q: %w", c.ID, err))
		}
	}
	return m, nil
}

func invalidMessage(err error) error {
	return &session.Error{Op: "add message", Kind: session.ErrInvalid, Err: err}
}
