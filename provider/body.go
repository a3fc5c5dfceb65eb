package provider

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// Kind says what a body is.
type Kind string

// The kinds of bodies.
const (
	KindRequest  Kind = "request"  // an object with the messages and how to answer them
	KindResponse Kind = "response" // a model's answer
	KindMessages Kind = "messages" // a bare list of messages
	KindMessage  Kind = "message"  // a single message
)

// Body is a decoded body.
type Body struct {
	Kind Kind
	// Entries are the messages, in order. They have a type and a message, and a
	// timestamp where the body has one, but no ids.
	Entries []session.Entry
	// Alternatives are the other answers of a response that has several. Each could
	// take the place of Entries.
	Alternatives [][]session.Entry
	// Model is the model that is asked or that answered; "" if it is not known.
	Model string
	// Fields are the members of a request besides its messages: the model, tools,
	// settings.
	Fields session.Fields
}

// Messages is a context in the form that a provider is sent.
type Messages struct {
	// Fields are the members of a request that make up the conversation: the
	// messages and, where it is separate, the system prompt.
	Fields session.Fields
	// Notes say which parts of the context could not be sent.
	Notes []Note
}

// Request returns a request: the conversation with further members, such as
// Body.Fields. If a member is in both, the conversation's counts.
func (m *Messages) Request(fields session.Fields) json.RawMessage {
	own := func(name string) bool {
		return slices.ContainsFunc(m.Fields, func(f session.Field) bool { return f.Name == name })
	}
	buf := []byte{'{'}
	add := func(f session.Field) {
		if len(buf) > 1 {
			buf = append(buf, ',')
		}
		buf = append(append(rawjson.AppendString(buf, f.Name), ':'), f.Value...)
	}
	for _, f := range fields {
		if !own(f.Name) {
			add(f)
		}
	}
	for _, f := range m.Fields {
		add(f)
	}
	return append(buf, '}')
}

// Note says which part of an entry could not be encoded, or had to be changed.
type Note struct {
	Entry string // the entry's id
	What  string // such as "thinking of another provider is left out"
}

// String returns the note in one line.
func (n Note) String() string {
	if n.Entry == "" {
		return n.What
	}
	return fmt.Sprintf("%s: %s", n.Entry, n.What)
}
