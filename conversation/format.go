package conversation

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
)

// Format is the shape in which a provider's API takes a conversation.
type Format string

// The formats.
const (
	FormatChat      Format = "openai-chat" // Chat Completions, which most services speak
	FormatResponses Format = "openai-responses"
	FormatAnthropic Format = "anthropic"
	FormatGoogle    Format = "google"
)

// FormatOf returns the format of a provider. For an unknown provider that is FormatChat,
// because that is what services imitate.
func FormatOf(name string) Format {
	switch strings.ToLower(name) {
	case "anthropic", "claude":
		return FormatAnthropic
	case "google", "gemini", "vertex", "vertexai":
		return FormatGoogle
	}
	return FormatChat
}

// Encode writes entries as the messages of a request. An unknown format gives an
// error that matches session.ErrInvalid.
func (f Format) Encode(entries []session.Entry) (*provider.Messages, error) {
	switch f {
	case FormatChat:
		return openai.EncodeChat(entries, nil)
	case FormatResponses:
		return openai.EncodeResponses(entries)
	case FormatAnthropic:
		return anthropic.Encode(entries)
	case FormatGoogle:
		return google.Encode(entries)
	}
	return nil, fmt.Errorf("format %.40q: %w: there is no such format", string(f), session.ErrInvalid)
}

// APIMessage is a message as Chat Completions takes it, in JSON.
type APIMessage = json.RawMessage

// apiMessages returns entries as messages of Chat Completions.
func apiMessages(entries ...session.Entry) ([]APIMessage, error) {
	encoded, err := FormatChat.Encode(entries)
	if err != nil {
		return nil, err
	}
	messages := []APIMessage{}
	for _, field := range encoded.Fields {
		if field.Name == "messages" {
			err = json.Unmarshal(field.Value, &messages)
		}
	}
	return messages, err
}

// APIFormat returns the message in the format of Chat Completions: several messages if it has
// the results of several calls. See Request.Encode for other APIs.
func (m Message) APIFormat() ([]APIMessage, error) { return apiMessages(m.entry()) }

// FormattedHistory returns all messages as Chat Completions takes them.
func (s Session) FormattedHistory() ([]APIMessage, error) {
	entries := make([]session.Entry, len(s.Messages))
	for i, m := range s.Messages {
		entries[i] = m.entry()
	}
	return apiMessages(entries...)
}

// Encode returns the entries as a provider takes them: see Format.
func (r Request) Encode(f Format) (*provider.Messages, error) { return f.Encode(r.Entries) }

// History returns the entries as Chat Completions takes them.
func (r Request) History() ([]APIMessage, error) { return apiMessages(r.Entries...) }
