package conversation

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// Model answers requests. Programs bring their own: this module does not call models. Package
// provider has what such an implementation needs to encode the request and decode the answer.
type Model interface {
	// Respond returns the whole reply.
	Respond(ctx context.Context, r Request) (Reply, error)
}

// StreamingModel is a Model that can also answer piece by piece.
type StreamingModel interface {
	Model
	// Stream calls emit with each piece of text as it arrives, and returns the whole reply
	// as Respond would. If it fails half-way, it returns the error and what it has of the
	// reply. If the reply has no content, the emitted text is used. If emit returns an
	// error, Stream ends and returns it.
	Stream(ctx context.Context, r Request, emit func(text string) error) (Reply, error)
}

// Capable is a Model that knows its capabilities. The context window is set up from them.
type Capable interface {
	Capabilities() Capabilities
}

// Capabilities are what the context window needs to know about a model.
type Capabilities struct {
	Provider, Model string
	// ContextWindow is the size of the window in tokens. Default: DefaultWindow.
	ContextWindow int
	// MaxReply is how much of the window is kept free for the reply.
	MaxReply int
	// MaxRequestBytes is the largest request that the provider accepts. Default:
	// no limit.
	MaxRequestBytes int
	// Counter counts tokens as the model does. Default: the best one for the provider and
	// the model.
	Counter window.Counter
}

// Request is what a model is sent.
type Request struct {
	Conversation string // the id of the original session
	Session      string // the id of the session that the reply will be in
	// Entries are what fits the window of the conversation, in order. They are shared with
	// the conversation: do not change what they point to.
	Entries []session.Entry
	// Report says what was left out and why.
	Report window.Report
}

// Messages returns the entries that are messages, as copies.
func (r Request) Messages() []Message {
	var messages []Message
	for _, e := range r.Entries {
		if e.Message != nil {
			messages = append(messages, fromEntry(e.Clone()))
		}
	}
	return messages
}

// Reply is what a model answered.
type Reply struct {
	Content []session.Content // text, thinking, calls of tools

	Provider, Model, StopReason, ResponseID string
	Usage                                   *session.Usage
}

// ErrEmptyReply means that a model answered nothing at all. Nothing was stored.
var ErrEmptyReply = errors.New("the model's reply is empty")

// The stop reasons of incomplete replies.
const (
	StopCancelled = "cancelled" // the caller no longer wanted it
	StopFailed    = "error"     // the model or the way to it failed
)

// MetaIncomplete is set in the metadata of an incomplete reply, to what ended it.
const MetaIncomplete = "incomplete"
