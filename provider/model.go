package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// Model gives access to a model: a client of a provider, or a built-in model. It may be
// used concurrently.
type Model interface {
	// Info returns what is known about the model. It sends no request.
	Info() Info
	// Encode returns the body of the request that Stream would send: always the
	// same bytes for the same request. For a request that cannot be sent it returns
	// session.ErrInvalid.
	Encode(r *Request) (*Encoded, error)
	// Stream sends a request and yields the answer as it arrives. The last event
	// is EventStop and has the whole response. If the answer breaks off, the last
	// pair is an EventStop with what has arrived, marked by its stop reason, and
	// the error; it is a zero Event and the error if nothing has arrived. What has
	// arrived may be no more than the usage.
	//
	// A caller that stops early ends the request.
	Stream(ctx context.Context, r *Request) iter.Seq2[Event, error]
}

// TokenCounter is a Model whose provider counts the tokens of a request without
// answering it.
type TokenCounter interface {
	CountTokens(ctx context.Context, r *Request) (int, error)
}

// Info is what is known about a model. Zero numbers are not known.
type Info struct {
	Provider string `json:"provider"` // as messages name it: "anthropic"
	Model    string `json:"model"`
	// API is how requests are written, where a provider has several ways: one of
	// client.Providers. Default: Provider.
	API string `json:"api,omitempty"`
	// Window is how many tokens a request and its answer may have together.
	Window int `json:"window,omitempty"`
	// MaxOutput is how many tokens an answer may have.
	MaxOutput int `json:"max_output,omitempty"`
	// MaxBytes is the size of the largest body that the provider accepts.
	MaxBytes int `json:"max_bytes,omitempty"`
	// Retries says when a request that failed should be sent again.
	Retries Retries `json:"-"`
}

// Request is a request to a model.
type Request struct {
	// Entries are the conversation: those of a session.Context, or what a window
	// left of them.
	Entries []session.Entry
	Tools   []Tool
	// Session names the conversation, for providers that use the name to find what they
	// have cached. May be empty.
	Session string
	// Thinking is one of the Thinking levels; "" is the provider's default. It is sent only
	// to models that are known to take it: see Family.
	Thinking string
	// MaxTokens limits the answer. Default: what the provider allows.
	MaxTokens int
	// Temperature is how freely the model chooses its words. Default: the provider's. It is
	// sent only to models that are known to take one: see Family.
	Temperature *float64
	// NoCache leaves out the marks that ask a provider to remember the prompt.
	NoCache bool
	// Fields are further members of the body, for settings that this package does not
	// know. They override its own.
	Fields session.Fields
	// Without are parameters that are left out, because the model turned out not to take
	// them: see Error.Dropped.
	Without []string
	// Once: the request is sent once, because the caller sends it again itself: see
	// Info.Retries.
	Once bool
	// Encoded is what Encode returned for this request, if the caller has it: Stream
	// then need not encode it again.
	Encoded *Encoded
	// Memo, if it is not nil, may be used to write this request as an addition to the one
	// before.
	Memo *Memo
}

// Tool is a tool that a model may call.
type Tool struct {
	// Name has letters, digits, _ and -, and at most 64 of them.
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Schema is the JSON schema of the arguments, which must be an object. Alternatives at its
	// top are merged when it is sent. Default: no arguments.
	Schema json.RawMessage `json:"schema,omitempty"`
}

// The levels of thinking. A provider with other steps uses the nearest.
const (
	ThinkingOff     = "off"
	ThinkingMinimal = "minimal"
	ThinkingLow     = "low"
	ThinkingMedium  = "medium"
	ThinkingHigh    = "high"
	ThinkingXHigh   = "xhigh"
)

// ThinkingLevels lists the levels, least first.
var ThinkingLevels = []string{ThinkingOff, ThinkingMinimal, ThinkingLow, ThinkingMedium, ThinkingHigh, ThinkingXHigh}

// CheckThinking refuses what is not a level, as session.ErrInvalid. "" is the provider's
// default.
func CheckThinking(level string) error {
	if level == "" || slices.Contains(ThinkingLevels, level) {
		return nil
	}
	return session.Invalidf("thinking is %q; it must be one of %s", level, strings.Join(ThinkingLevels, ", "))
}

// KnownThinking returns the level nearest to one that a log names: other programs have
// their own levels. It returns "", the provider's default, if none is near.
func KnownThinking(level string) string {
	level = strings.ToLower(strings.TrimSpace(level))
	switch level {
	case "none", "disabled":
		return ThinkingOff
	case "max", "maximum", "ultra":
		return ThinkingXHigh
	}
	if slices.Contains(ThinkingLevels, level) {
		return level
	}
	return ""
}

// Encoded is a request as it is sent.
type Encoded struct {
	// Before comes before Body, if the request had a Memo: pieces that requests share.
	Before [][]byte
	Body   json.RawMessage
	// Notes say which parts of the conversation could not be sent.
	Notes []Note
	// Without are the parameters that were left out, because the model turned out not to
	// take them.
	Without []string

	sum string // "" if it is not known
}

// Pieces returns the whole body in pieces.
func (e *Encoded) Pieces() [][]byte { return append(slices.Clone(e.Before), e.Body) }

// Size returns the size of the whole body.
func (e *Encoded) Size() int {
	n := 0
	for _, piece := range e.Pieces() {
		n += len(piece)
	}
	return n
}

// Sum returns the SHA-256 of the whole body, in hexadecimal digits.
func (e *Encoded) Sum() string {
	if e.sum == "" {
		h := sha256.New()
		for _, piece := range e.Pieces() {
			h.Write(piece)
		}
		e.sum = hex.EncodeToString(h.Sum(nil))
	}
	return e.sum
}

// EventType says what an Event is about.
type EventType string

// The types of events, and which fields they have besides the type.
const (
	EventText      EventType = "text"       // Block, Text: more of the answer
	EventThinking  EventType = "thinking"   // Block, Text: more of the model's thinking
	EventCallStart EventType = "call_start" // Block, Call: a call begins; the arguments follow
	EventCallDelta EventType = "call_delta" // Block, Text: more of the arguments, as a piece of JSON
	EventCallEnd   EventType = "call_end"   // Block, Call: the call is complete
	EventUsage     EventType = "usage"      // Usage: the counts so far; each replaces the one before
	EventRetry     EventType = "retry"      // Retry: the request failed and will be sent again
	EventStop      EventType = "stop"       // Response: the answer ended
)

// Event is a piece of news from a model that is answering.
type Event struct {
	Type EventType `json:"type"`
	// Block is the number of a block of the answer. Several blocks may grow at the same
	// time; events with the same number belong to one.
	Block    int                     `json:"block,omitempty"`
	Text     string                  `json:"text,omitempty"`
	Call     *session.ToolUseContent `json:"call,omitempty"`
	Usage    *session.Usage          `json:"usage,omitempty"`
	Retry    *Retry                  `json:"retry,omitempty"`
	Response *Response               `json:"response,omitempty"`
}

// Retry means that a request failed and will be sent again.
type Retry struct {
	Attempt int           `json:"attempt"` // the number of the one that follows: 2 or more
	After   time.Duration `json:"after"`   // how long it waits, in nanoseconds
	Reason  string        `json:"reason"`
	// Usage is what the failed attempt cost, if the provider said so before it failed.
	Usage *session.Usage `json:"usage,omitempty"`
}

// Response is a whole answer, or the part of one that arrived.
type Response struct {
	// Message is the model's message as it goes into a log. A call in it may have
	// arguments that are not an object: the answer broke off within them, or the
	// model wrote something else.
	Message *session.MessageEntry `json:"message"`
	// Partial: the answer broke off. The message's stop reason says why.
	Partial bool `json:"partial,omitempty"`
}

// Calls returns the calls that may be run: none of an answer that broke off or was cut
// off.
func (r *Response) Calls() []*session.ToolUseContent {
	if r == nil || r.Message == nil || r.Partial || IsCutOff(r.Message.StopReason) {
		return nil
	}
	var calls []*session.ToolUseContent
	for i := range r.Message.Content {
		if call := r.Message.Content[i].ToolUse; call != nil {
			calls = append(calls, call)
		}
	}
	return calls
}

// Respond asks a model and returns the whole answer. emit, if it is not nil, gets
// the events on the way. After an error the response is the part that arrived, or nil.
func Respond(ctx context.Context, m Model, r *Request, emit func(Event)) (*Response, error) {
	var response *Response
	for event, err := range m.Stream(ctx, r) {
		if event.Type == EventStop {
			response = event.Response
		}
		if err != nil {
			return response, err
		}
		if emit != nil {
			emit(event)
		}
	}
	if response == nil {
		return nil, errors.New("the model ended its answer without saying so")
	}
	return response, nil
}

// Stream decodes an answer as it arrives. Each provider has one; clients feed it.
type Stream interface {
	// Add takes the data of the next event and returns the news in it. An error
	// of the provider is an *Error.
	Add(data []byte) ([]Event, error)
	// Done reports whether the answer is complete.
	Done() bool
	// Message returns the part of the message that has arrived, or nil if nothing has.
	// At the end it equals the decoded whole response.
	Message() (*session.MessageEntry, error)
}
